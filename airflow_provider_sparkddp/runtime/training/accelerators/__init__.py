"""Hardware: what a rank computes on."""
