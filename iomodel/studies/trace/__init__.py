"""Traces: the events of an algorithm, tile by tile."""
