"""Python calls to the compiled kernels; they read NumPy arrays and fill NumPy arrays."""
