"""Judging: from a history of snapshots to states of heads, findings of checks, and a diagnosis."""
