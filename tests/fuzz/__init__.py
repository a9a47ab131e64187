"""Random calls against the definition."""
