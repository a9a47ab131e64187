"""Who computes: `reference` defines everything, `engine` calls the compiled kernels, `numpy` and `torch` choose."""
