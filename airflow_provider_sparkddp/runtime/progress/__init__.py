"""What the ranks tell while they train: small files and logs in the try's folder, read by Airflow's side and by people."""
