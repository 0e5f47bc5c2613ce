"""Masks given by data."""
