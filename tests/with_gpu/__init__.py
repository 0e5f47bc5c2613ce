"""Tests of the GPU that is present, run by name."""
