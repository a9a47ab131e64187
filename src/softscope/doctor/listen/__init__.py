"""Listening: which functions to observe in a model, when a step ends, which rows to read, and what stays unseen."""
