"""Frozen mappings, tables, validation and files, shared by every room."""
