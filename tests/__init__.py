"""All tests. A package, so that the folders tests/airflow and tests/spark never hide the packages of those names."""
