"""Is the exported model the trained one, and good enough?"""
