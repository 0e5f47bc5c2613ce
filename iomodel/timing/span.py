"""Time and traffic of a part of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iomodel.timing.kernel_time import KernelTime


@dataclass(frozen=True)
class Span:
    """Time and traffic of a part of a step.

    Attributes
    ----------
    seconds : float
        Time of its kernels in sequence [s].
    hbm_bytes, requested_bytes : int
        DRAM traffic behind the time; requests of the thread blocks, as counted [B].
    flops : int
        Useful FLOPs of matrix products: of actual rows and visible pairs [FLOP].
    breakdown : tuple of (resource, seconds)
        Time each resource would take if it were the only limit [s].
    tiles : tuple of (name, size)
        Tiles of the part.
    sent_bytes : int
        Bytes that a rank sends to others [B].
    """

    seconds: float
    hbm_bytes: int
    requested_bytes: int
    flops: int
    breakdown: tuple[tuple[str, float], ...]
    tiles: tuple[tuple[str, int], ...] = ()
    sent_bytes: int = 0


def span_of(kernels: Sequence[KernelTime], flops: int, tiles: tuple[tuple[str, int], ...] = ()) -> Span:
    """Combine kernels in sequence into one part."""
    breakdown: dict[str, float] = {}
    for kernel in kernels:
        for name, seconds in kernel.breakdown.items():
            breakdown[name] = breakdown.get(name, 0.0) + seconds
    return Span(
        sum(kernel.seconds for kernel in kernels),
        sum(kernel.streamed_bytes for kernel in kernels),
        sum(kernel.requested_bytes for kernel in kernels),
        flops,
        tuple(breakdown.items()),
        tiles,
    )
