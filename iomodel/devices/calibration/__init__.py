"""Calibration of the local GPU, and the hardware file made from its measurements."""
