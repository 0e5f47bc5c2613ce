"""Time and DRAM traffic of the kernels of a call together."""

from __future__ import annotations

from collections.abc import Sequence

from iomodel.timing.kernel_time import KernelTime
from iomodel.timing.parameters import Parameters


def seconds_of(times: Sequence[float], parameters: Parameters) -> float:
    """Sum the times of kernels in sequence; the host takes a time to launch each [s]."""
    return max(sum(times), parameters.host_launch * len(times))


def dram_interval(
    kernels: Sequence[KernelTime], compulsory: int, requested: int, cached: int | None
) -> tuple[int, int]:
    """Bound the DRAM traffic of kernels in sequence, each of which leaves data in the caches for the next [B]."""
    return _in_sequence(kernels, [kernel.dram_bytes for kernel in kernels], compulsory, requested, cached)


def leaving_interval(
    kernels: Sequence[KernelTime], compulsory: int, requested: int, cached: int | None
) -> tuple[int, int]:
    """Bound what leaves the L2 in kernels in sequence [B]."""
    return _in_sequence(kernels, [kernel.l2_bytes for kernel in kernels], compulsory, requested, cached)


def _in_sequence(
    kernels: Sequence[KernelTime], ends: Sequence[tuple[int, int]], compulsory: int, requested: int, cached: int | None
) -> tuple[int, int]:
    kept = 2 * (cached or 0) * (len(kernels) - 1)
    low = max(min(compulsory, requested), sum(least for least, _ in ends) - kept)
    return low, min(requested, max(low, sum(most for _, most in ends)))
