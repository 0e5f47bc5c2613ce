"""A diagnosis: a kernel as measured, facts, what would change it."""
