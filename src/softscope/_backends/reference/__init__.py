"""The readable definition of everything: NumPy, wider floats than the caller's, rows on the last axis.

Nothing here aims to be fast. Each function takes float64 (or long double) arrays whose last axis is the row,
a `temperature` that is a number or an array with that axis kept, and `visible`, a boolean array or None.
The public functions bring arguments into this form; the engine and the torch backend must agree with it.
"""
