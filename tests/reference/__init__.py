"""Reference kernels: attention run loop by loop on a counting machine, written from the papers alone."""
