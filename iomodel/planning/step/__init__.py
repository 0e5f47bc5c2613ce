"""One forward step of a model on a group of devices."""
