"""A calibration: experiments, kernels, figures, the file that is written."""
