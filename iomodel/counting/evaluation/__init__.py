"""Formulas as generated code, run on integers, NumPy blocks or machine code."""
