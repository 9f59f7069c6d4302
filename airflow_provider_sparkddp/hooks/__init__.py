"""Airflow's side of a job: plan it, write it down, submit it, wait for it, cancel it."""
