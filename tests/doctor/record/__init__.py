"""The record of a run: what was written can be read back, whatever happens in between."""
