"""From Spark's tables to a rank's batches."""
