"""Reference kernels of the backward pass: dQ, dK and dV from dO and what the forward pass left."""
