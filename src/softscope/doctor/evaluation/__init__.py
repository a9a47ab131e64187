"""Heads spoiled on purpose, and how many of them the doctor finds: the table of docs/telling-apart.md."""
