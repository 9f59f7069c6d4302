"""The built wheel in clean virtual environments."""
