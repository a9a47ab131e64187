"""The record of a run: what is written is read again, whatever happens in between."""
