"""Hardware specifications: figures with units and sources, and rates derived from them."""
