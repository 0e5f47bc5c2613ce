"""Random inputs, mostly right, to everything that a user can reach; and what must hold of each."""
