"""Language models: their layers, model files, and the reading of Hugging Face config.json files."""
