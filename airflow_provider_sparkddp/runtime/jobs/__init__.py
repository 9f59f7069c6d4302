"""One file a kind of job, each with `run`: from a Job to the values and the summary of its result."""
