"""The cluster side. Never imports Airflow. Runs on the Spark driver, in the ranks, and in processes of its own."""
