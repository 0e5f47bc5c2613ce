"""Placement of tiles in shared memory and registers, and the limits of a device."""
