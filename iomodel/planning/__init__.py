"""Capacity planning: memory, a replica under load, the smallest fleet, and a simulated engine."""
