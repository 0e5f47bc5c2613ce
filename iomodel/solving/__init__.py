"""Search for the best tiles, by traffic or by time, with a certificate."""
