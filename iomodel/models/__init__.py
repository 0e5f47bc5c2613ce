"""Models: their layers, files of them, and a config.json as it is."""
