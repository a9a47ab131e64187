"""Spoils heads on purpose and counts how many the doctor finds: the table of docs/telling-apart.md."""
