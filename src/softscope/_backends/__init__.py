"""The backends: `reference` defines everything, `engine` calls the compiled kernels, `numpy` and `torch` choose."""
