"""Workloads: calls that are counted, solved and timed."""
