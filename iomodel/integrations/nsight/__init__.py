"""Reports of Nsight Compute against predicted traffic."""
