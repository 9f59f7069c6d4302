"""The compose file, checked and started without Docker."""
