"""How fast this is, as ratios against a baseline that runs beside it. Start with README.md, or `python -m benchmarks.run --help`."""
