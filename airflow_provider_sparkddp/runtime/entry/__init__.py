"""Where a job starts on the cluster."""
