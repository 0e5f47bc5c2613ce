"""Attention calls whose fields are arrays."""
