"""From rows to balanced Parquet files and what is known of them: types, splits, groups, writers, description, drift."""
