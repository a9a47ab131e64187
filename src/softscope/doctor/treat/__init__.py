"""Treating: which remedy fits what was found, and the remedies as code."""
