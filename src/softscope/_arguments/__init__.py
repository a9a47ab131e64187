"""What came in: kinds of arrays, axes, numbers, `out` and attention's options, checked before anything is computed."""
