"""Simulation of one serving engine: requests, step table, event loop, and result."""
