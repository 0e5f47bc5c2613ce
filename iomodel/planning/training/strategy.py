"""Strategy of a training step: sharding, recomputation, fusion and overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iomodel.errors import InputError, shown
from iomodel.planning.numbers import as_choice
from iomodel.planning.training.memory import SHARDS

RECOMPUTE = ("none", "early-stop", "full")
PRECISIONS = ("bf16", "fp8")
GRADIENT_SIZE = {"bf16": 2, "fp32": 4}
"""Bytes of a gradient by its type [B]."""
OVERLAPS = ("data", "tensor", "pipeline", "experts")
"""Collectives that may run beside products: of data parallelism, of tensor parallelism, sends between stages, and the
exchange of the rows of experts."""
DEFAULT_OVERLAPS = ("data", "tensor", "pipeline")
KERNELS = ("fused", "eager")


@dataclass(frozen=True)
class Strategy:
    """Strategy of a step, checked; the fields are those of :func:`iomodel.train_step`."""

    shard: str = "parameters"
    recompute: str = "none"
    gradient_dtype: str = "fp32"
    precision: str = "bf16"
    kernels: str = "fused"
    overlap: tuple[str, ...] = DEFAULT_OVERLAPS

    def __post_init__(self) -> None:
        """Raise an error if a name is unknown."""
        for field, known in (
            ("shard", SHARDS),
            ("recompute", RECOMPUTE),
            ("gradient_dtype", tuple(GRADIENT_SIZE)),
            ("precision", PRECISIONS),
            ("kernels", KERNELS),
        ):
            as_choice(field, getattr(self, field), known)

    @property
    def level(self) -> int:
        """Stage of ZeRO, 0 to 3."""
        return SHARDS.index(self.shard)

    @property
    def gradient_size(self) -> int:
        """Size of a gradient [B]."""
        return GRADIENT_SIZE[self.gradient_dtype]

    @property
    def fused(self) -> bool:
        """True if the framework fuses elementwise operators."""
        return self.kernels == "fused"


def as_overlap(overlap: Any) -> tuple[str, ...]:
    """Return the names of collectives that overlap, in one order.

    >>> as_overlap(["tensor", "data"])
    ('data', 'tensor')
    """
    if isinstance(overlap, str) or not isinstance(overlap, Sequence | set | frozenset):
        raise InputError(f"overlap: {shown(overlap)} given; allowed: a list of {', '.join(OVERLAPS)}, or an empty one")
    for name in overlap:
        as_choice("overlap", name, OVERLAPS)
    return tuple(name for name in OVERLAPS if name in overlap)
