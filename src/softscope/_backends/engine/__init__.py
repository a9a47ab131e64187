"""The compiled kernels as Python calls them: NumPy arrays in, NumPy arrays filled."""
