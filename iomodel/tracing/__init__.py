"""A trace: an algorithm run tile by tile on a simulated memory."""
