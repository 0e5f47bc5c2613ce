"""What :func:`iomodel.crossovers` is made of: contenders, their curves, where they cross, and formulas of it."""
