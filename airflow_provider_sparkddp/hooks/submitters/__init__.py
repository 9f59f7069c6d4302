"""One way each of reaching a place to run."""
