"""Implementations: the kernels of a library that run an algorithm, with their layout, execution and shipped tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.errors import InputError, shown
from iomodel.nests.execution import Execution
from iomodel.nests.front_end import FrontEnd
from iomodel.nests.residency import Residency

DIRECTIONS = ("forward", "backward")
FEATURES = ("paged", "softcap")
"""Words of a table for features of a call."""


@dataclass(frozen=True)
class ShippedTile(Record):
    """A tile that an implementation ships, and the calls that it is shipped for.

    Attributes
    ----------
    tiles : mapping of str to int
        Tiles [rows], with ``warps`` and ``stages`` [-].
    head_dim, value_dim : int
        The largest width of a row that the tile is compiled for [elements].
    direction : {"forward", "backward"}
        The pass.
    dtypes : tuple of str
        Types of Q, K and V; empty for any.
    architecture : str
        The architecture, as "sm_90"; empty for any.
    variants : tuple of str
        Kinds of call, each by the words that must hold together, as "causal with no dropout": "full", "causal" or
        "window", "paged", "softcap",
        "dropout" or "no dropout", "one split" or "several splits", "up to 16 rows" (or 64, 128: queries of the heads of
        a group).
    shared_bytes : int, optional
        Shared memory of a block by the kernel's source [B].
    """

    tiles: Mapping[str, int]
    head_dim: int
    value_dim: int
    direction: str = "forward"
    dtypes: tuple[str, ...] = ()
    architecture: str = ""
    variants: tuple[str, ...] = ("",)
    shared_bytes: int | None = None

    def match(self, words: frozenset[str]) -> int | None:
        """Count the words of the most specific variant that a call has; None if it has no variant.

        A table names pages and caps only where a kernel for them differs, so that they outweigh the other words.
        """
        variants = [[word for word in variant.split(" with ") if word] for variant in self.variants]
        held = [variant for variant in variants if words.issuperset(variant)]
        return max((sum(10 if word in FEATURES else 1 for word in variant) for variant in held), default=None)


@dataclass(frozen=True, repr=False)
class Implementation(Record):
    """The layout of an algorithm by the kernels of a library, and its execution on a device.

    Attributes
    ----------
    name, title, cite : str
        Name of the library, as ``"flash-attention-2"``; description; source.
    residency : mapping of direction to tuple of Residency
        Layouts of the tiles in shared memory and registers, one per kernel. Empty for one memory that holds all live
        data of a thread block, the M of the papers.
    execution : mapping of direction to Execution
        Overlap of resources and order of blocks, where they differ from those of the algorithm.
    searched : mapping of str to tuple
        Options of the algorithm that the kernels choose per call, each with its candidates: ``{"packed": (False,
        True)}``. A solver chooses those that are not given.
    tiles : tuple of ShippedTile
        Tiles that the library ships.
    aliases : tuple of str
        Further names of the kernels, which name the schedule too where an algorithm is asked for. Kernels of several
        devices may share one, as "cudnn"; the device tells which are meant.
    superseded : bool
        True if a later release of the library replaced the kernels, so that they answer by name alone.
    front_end : FrontEnd
        The calls and options that the kernels take.
    symbols : tuple of str
        Parts of the names of its functions, by which a profiler's trace names the kernels.

    Examples
    --------
    >>> import iomodel
    >>> iomodel.kernels.implementation("flash2", "flash-attention-2").title
    'FlashAttention-2 (CUDA)'
    """

    name: str
    title: str = ""
    cite: str = ""
    residency: Mapping[str, tuple[Residency, ...]] = field(default_factory=dict)
    execution: Mapping[str, Execution] = field(default_factory=dict)
    searched: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    tiles: tuple[ShippedTile, ...] = ()
    aliases: tuple[str, ...] = ()
    superseded: bool = False
    front_end: FrontEnd = field(default_factory=FrontEnd)
    symbols: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Implementation {self.name}: {self.title}>"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"name: {shown(self.name)} given; allowed: the name of an implementation")
        for part, kind in (("residency", tuple), ("execution", Execution)):
            entries = getattr(self, part)
            if not isinstance(entries, Mapping) or not all(
                direction in DIRECTIONS and isinstance(entry, kind) for direction, entry in entries.items()
            ):
                allowed = "a tuple of Residency" if kind is tuple else "an Execution"
                raise InputError(f"{part}: {shown(entries)} given; allowed: {allowed} per direction")
        for part in ("residency", "execution", "searched"):
            object.__setattr__(self, part, FrozenDict(getattr(self, part)))

    def __hash__(self) -> int:
        return hash((self.name, self.title))

    @classmethod
    def of(cls, *residencies: Residency, execution: Execution | None = None) -> Implementation:
        """Return an implementation of a caller's kernel, with the same layouts in either direction.

        >>> import iomodel
        >>> layouts = iomodel.kernels.implementation("flash2", "flash-attention-2").residency["forward"]
        >>> Implementation.of(layouts[0]).name
        'own'
        """
        executions = {} if execution is None else dict.fromkeys(DIRECTIONS, execution)
        return cls("own", residencies[0].title, residencies[0].cite, dict.fromkeys(DIRECTIONS, residencies), executions)


TEXTBOOK = Implementation(
    "textbook",
    "one on-chip memory for all live data of a thread block",
    "Dao et al. 2022, FlashAttention, arXiv:2205.14135, section 2.1: M elements of SRAM",
)
"""The papers' machine: no registers, warps or stages."""


def kernels_title(algorithm: str, implementation: str) -> str:
    """Name a schedule with the kernels that run it, in the title of a table."""
    return algorithm if implementation == TEXTBOOK.name else f"{algorithm}, {implementation}"


PACKED: Mapping[str, tuple[Any, ...]] = {"packed": (False, True)}
"""The choice of packing the query heads that share keys into one tile."""
