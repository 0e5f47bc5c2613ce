"""Rules that choose launches, learned from answers of the solver and written as functions without imports."""
