"""What becomes of partitions after they were written: reused, cleaned up, removed when they are old."""
