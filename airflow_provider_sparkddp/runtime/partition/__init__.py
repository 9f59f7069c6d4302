"""From any Spark source to balanced Parquet files and what is known of them: sources, splits, groups, writers, description."""
