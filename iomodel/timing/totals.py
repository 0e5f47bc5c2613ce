"""Time and DRAM traffic of the kernels of a call together."""

from __future__ import annotations

from collections.abc import Sequence

from iomodel.timing.kernel_time import KernelTime
from iomodel.timing.parameters import Parameters


def seconds_of(times: Sequence[float], parameters: Parameters) -> float:
    """Sum the times of kernels in sequence; the host takes a time to launch each [s]."""
    return max(sum(times), parameters.host_launch * len(times))


def dram_interval(
    kernels: Sequence[KernelTime], compulsory: int, requested: int, l2_capacity: int | None
) -> tuple[int, int]:
    """Bound the DRAM traffic of kernels in sequence, each of which leaves data in the L2 for the next [B]."""
    kept = 2 * (l2_capacity or 0) * (len(kernels) - 1)
    low = max(min(compulsory, requested), sum(kernel.distinct_bytes for kernel in kernels) - kept)
    return low, min(requested, max(low, sum(kernel.dram_bytes[1] for kernel in kernels)))
