"""Search for the best tiles of arrays of problems."""
