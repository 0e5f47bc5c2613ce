"""Linear layers and elementwise kernels as loop nests, and their time."""
