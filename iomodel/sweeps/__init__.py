"""Sweeps: what is asked, the store of finished chunks, what computes them, what is written."""
