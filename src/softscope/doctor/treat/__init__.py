"""Treating: which remedy fits a finding, and the remedies as code."""
