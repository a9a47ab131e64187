"""The doctor: what it reads, what it keeps and what it tells you."""
