"""Time of kernels, from their work on each resource and the rates of a device."""
