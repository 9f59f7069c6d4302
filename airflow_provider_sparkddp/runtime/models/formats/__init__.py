"""How weights lie in a file. One format a file."""
