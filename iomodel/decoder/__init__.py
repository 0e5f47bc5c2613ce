"""One step of a decoder: its layers, how ranks share them, how long they take."""
