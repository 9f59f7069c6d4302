"""Number format: what a rank computes in."""
