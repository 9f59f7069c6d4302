"""The contract between Airflow's side and the cluster's side: plain data, standard library only."""
