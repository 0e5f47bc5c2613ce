"""The time of a call as a sum: what its slowest resources take, and what is added to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

ADDED = ("steps", "tail", "launch")
"""Entries of a breakdown that are no resource."""
EXPOSED = "not overlapped"
"""Time of the other resources that does not overlap with the slowest one."""

HOST = "host"
ROUNDING = 1e-12
"""Share of a time that is an error of rounding [-]."""


class TimedKernel(Protocol):
    """A kernel with its time and breakdown."""

    @property
    def seconds(self) -> float:
        """Time from the start of the kernel to the start of the next [s]."""

    @property
    def breakdown(self) -> Mapping[str, float]:
        """Time of each resource alone, and `steps`, `tail` and `launch` [s]."""


def time_shares(kernels: Iterable[TimedKernel], seconds: float) -> dict[str, float]:
    """Divide the time of a call into parts that sum to it [s].

    Each kernel takes the time of its slowest resource. What is left is first its launch, its tail and its steps, as far
    as they show, and then time of other resources that does not overlap with the slowest. Time of the call beyond that
    of its kernels is that of the host, which launches them.

    >>> import iomodel
    >>> w = iomodel.Attention(heads=32, q_len=4096, head_dim=128)
    >>> e = iomodel.estimate("flash2", w, "a100-sxm4-80gb")
    >>> shares = time_shares(e.kernels, e.seconds)
    >>> list(shares), abs(sum(shares.values()) / e.seconds - 1) < 1e-12
    (['matrix', 'not overlapped', 'steps', 'tail', 'launch'], True)
    """
    shares: dict[str, float] = {}
    for kernel in kernels:
        resources = {name: time for name, time in kernel.breakdown.items() if name not in ADDED}
        slowest = max(resources, key=resources.__getitem__, default=EXPOSED)
        rest = kernel.seconds
        parts = {slowest: min(rest, resources.get(slowest, 0.0))}
        rest -= parts[slowest]
        for name in reversed(ADDED):
            parts[name] = min(rest, kernel.breakdown.get(name, 0.0))
            rest -= parts[name]
        parts[EXPOSED] = parts.get(EXPOSED, 0.0) + rest
        for name, time in parts.items():
            shares[name] = shares.get(name, 0.0) + time
    beyond = seconds - sum(shares.values())
    shares[HOST] = beyond if beyond > ROUNDING * seconds else 0.0
    order = [*(name for name in shares if name not in (*ADDED, EXPOSED, HOST)), EXPOSED, *ADDED, HOST]
    return {name: shares[name] for name in order if shares.get(name, 0.0) > 0}
