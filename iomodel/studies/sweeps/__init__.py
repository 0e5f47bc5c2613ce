"""Sweeps: exact costs over named dimensions, in memory or on disk."""
