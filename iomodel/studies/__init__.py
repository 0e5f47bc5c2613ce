"""Studies of one or many calls: time estimates, comparisons, crossovers, sweeps, traces and diagnoses."""
