"""How ranks agree."""
