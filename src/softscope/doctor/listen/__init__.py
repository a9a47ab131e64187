"""Listening: which functions are overheard in whose model, when a step ends, which rows are read, what stays unseen."""
