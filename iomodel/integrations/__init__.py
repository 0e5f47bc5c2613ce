"""Tools around kernels: reports of Nsight Compute, a server for agents, a plugin of pytest."""
