"""Argument checks: array kinds, axes, numbers, `out` and attention's options, all before anything is computed."""
