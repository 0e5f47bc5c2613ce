"""Capacity: what fits, what a replica does under load, the least fleet."""
