"""Crossovers of algorithms: points at which their order changes."""
