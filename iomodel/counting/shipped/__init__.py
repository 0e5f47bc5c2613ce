"""Compiled formulas of the shipped algorithms, one generated module each (:mod:`iomodel.counting.store`)."""
