"""The time of a part of a step, and what it moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iomodel.timing import KernelTime


@dataclass(frozen=True)
class Span:
    """The time of a part of a step.

    Attributes
    ----------
    seconds : float
        Its kernels, one after the other [s].
    hbm_bytes, requested_bytes : int
        DRAM traffic that the time reckons with; what the thread blocks ask for, as counted [B].
    flops : int
        Useful FLOPs of matrix products: of the rows there are, of visible pairs [FLOP].
    breakdown : tuple of (resource, seconds)
        What each resource would need by itself [s].
    tiles : tuple of (name, size)
        The tiles that it runs with.
    """

    seconds: float
    hbm_bytes: int
    requested_bytes: int
    flops: int
    breakdown: tuple[tuple[str, float], ...]
    tiles: tuple[tuple[str, int], ...] = ()


def span_of(kernels: Sequence[KernelTime], flops: int, tiles: tuple[tuple[str, int], ...] = ()) -> Span:
    """Kernels one after the other as one part."""
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
