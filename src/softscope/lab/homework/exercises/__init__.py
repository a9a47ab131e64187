"""One file per exercise, each defining `EXERCISE`."""
