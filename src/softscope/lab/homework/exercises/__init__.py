"""One file an exercise: `EXERCISE`."""
