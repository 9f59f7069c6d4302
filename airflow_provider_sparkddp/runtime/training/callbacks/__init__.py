"""What the trainer tells us while it trains."""
