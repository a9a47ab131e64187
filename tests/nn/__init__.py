"""`softscope.nn` against PyTorch's own modules and functions."""
