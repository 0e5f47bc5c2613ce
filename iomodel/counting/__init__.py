"""Exact counts: a nest becomes formulas, formulas become integers, for one call or 10^8."""
