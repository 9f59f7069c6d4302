"""One Spark task a rank: how the ranks find one another, and how the driver starts them."""
