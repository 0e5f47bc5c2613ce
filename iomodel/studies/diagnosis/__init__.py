"""Explanations of a measured time."""
