"""Formulas at arrays: checked, cut into blocks that fit a cache, run by NumPy or as machine code."""
