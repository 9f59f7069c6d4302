"""What rank 0 tells while it trains: small files in the try's folder, read by Airflow's side and by nobody else."""
