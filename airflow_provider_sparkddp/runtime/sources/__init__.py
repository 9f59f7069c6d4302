"""Spark in: tables, files, databases, SQL and functions of the user, and what is wrong with them."""
