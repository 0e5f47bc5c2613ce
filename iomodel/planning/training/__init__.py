"""Training steps: time and memory of forward and backward passes, optimizer and collectives."""
