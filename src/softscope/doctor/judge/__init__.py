"""Judging: turns a history of snapshots into head states, check findings and a diagnosis."""
