"""Capacity planning: memory, a replica under load, and the smallest fleet."""
