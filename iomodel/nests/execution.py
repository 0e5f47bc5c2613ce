"""Overlap of the resources of a kernel, and the loops that are thread blocks, declared with an algorithm.

The counts of a nest give the work of each resource; the time depends on the overlap. A kernel is a sequence of phases;
within a phase its resources work in parallel, so the slowest determines the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from iomodel.common.results import Record
from iomodel.errors import InputError, shown
from iomodel.nests.axis import Axis

Resource = Literal[
    "matrix", "shared memory", "exp", "softmax", "gradient", "random", "addresses", "atomics", "l2", "hbm"
]
"""Matrix units; shared memory; special functions; fp32 work of the softmax, of its gradient and of random numbers;
addresses of single elements; atomic additions; requests to the L2; DRAM."""
Order = Literal["grid", "descending", "longest first", "persistent", "paired"]
"""Order in which blocks start, each on the first free slot of an SM: outer tiles ascending, as the grid counts, or
descending; or all blocks by their length. Persistent blocks, one for each slot, take the tiles of the grid in turn:
slot i of P the tiles i, i + P, i + 2 P, ...; paired blocks take one tile from either end of an outer axis whose tiles
differ."""
Fastest = Literal["tiles", "heads", "heads of a slice", "heads of a section"]
"""Index of a grid that counts fastest: the outer tiles, so that the blocks of a head are consecutive, or the heads of a
call of the batch. On an L2 of private slices the heads may be renumbered, so that each slice has consecutive ones. The
heads of a section are those whose streamed tensors fit `section_bytes`, a power of two of them; sections follow each
other."""


@dataclass(frozen=True)
class Execution(Record):
    """Phases and grid of the kernels of an algorithm.

    Attributes
    ----------
    cite : str
        Source of the declaration.
    phases : tuple of tuples of resource
        Consecutive phases; the resources of one phase overlap. Resources in no phase overlap with everything.
    serial : tuple of Axis
        Axes whose outermost loop runs within one block.
    spread : tuple of Axis
        Axes whose loop runs over different blocks although buffers are declared outside it: partitions of an axis, and
        any other axis in kernels where the body around its loop only loads.
    order : {"grid", "descending", "longest first", "persistent", "paired"}
        Order in which blocks start.
    fastest : {"tiles", "heads", "heads of a slice", "heads of a section"}
        Index of the grid that counts fastest.
    section_bytes : int, optional
        Most bytes of the streamed tensors of a section, if the heads of a section count fastest [B].
    in_flight : int, optional
        Bytes that a block has requested and not yet received while it streams [B]; by default the streamed tiles that
        its stages hold.
    waiting : int
        Most stages with which a block waits for each streamed tile before it uses it; with more, loads overlap with
        products. Triton's pipeline waits with one stage [-].
    awaited_clocks : float, optional
        Time of such a wait, for each stage that lacks [clk]; with one stage also that of the bytes on the port of the
        SM. None for the latency of the L2.
    address_clocks : float
        Time of an SM per element that a strided kernel loads or stores [clk].
    paged_clocks : float
        Time of an SM per byte of a key tile that spans several pages or parts of them, where each copy of 16 bytes has
        an address of its own [clk/B]; 0 where the kernel loads such a tile like any other.
    part_clocks : float
        Time of each partial result of a row that a kernel without products adds to those before it [clk]; 0 where their
        loads overlap.
    start_clocks : float
        Cost of a block that starts for one tile in addition to that of any block [clk]; without a mask blocks persist,
        and half of the trips of a tile beyond the second hide the start of the next tile.
    slabs : bool
        True if a sum in a fixed order goes into slabs of its own, one for each SM over the heads of all sequences, and
        a block adds every so many-th outer tile to its slab; else the blocks of a sum take turns.
    dependent : bool
        True if the kernels without products start beside the end of the one before (programmatic dependent launch).
    host_launch : float
        Least host time per kernel launch [s].
    """

    cite: str
    phases: tuple[tuple[Resource, ...], ...]
    serial: tuple[Axis, ...] = ()
    spread: tuple[Axis, ...] = ()
    order: Order = "grid"
    fastest: Fastest = "tiles"
    section_bytes: int | None = None
    in_flight: int | None = None
    waiting: int = 0
    awaited_clocks: float | None = None
    address_clocks: float = 0.0
    host_launch: float = 0.0
    paged_clocks: float = 0.0
    part_clocks: float = 0.0
    start_clocks: float = 0.0
    slabs: bool = False
    dependent: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.cite, str):
            raise InputError(f"cite: {shown(self.cite)} given; allowed: a text")
        for name in ("serial", "spread"):
            if not _all(Axis, getattr(self, name)):
                raise InputError(f"{name}: {shown(getattr(self, name))} given; allowed: a tuple of axes")
        if not isinstance(self.phases, tuple | list) or not all(_all(str, phase) for phase in self.phases):
            raise InputError(f"phases: {shown(self.phases)} given; allowed: a tuple of tuples of resources")
        named = [resource for phase in self.phases for resource in phase]
        unknown = [resource for resource in named if resource not in get_args(Resource)]
        if unknown or len(set(named)) < len(named):
            allowed = ", ".join(get_args(Resource))
            raise InputError(f"phases: {shown(unknown or named)} given; allowed: each at most once of {allowed}")
        for name, words in (("order", get_args(Order)), ("fastest", get_args(Fastest))):
            if getattr(self, name) not in words:
                raise InputError(f"{name}: {shown(getattr(self, name))} given; allowed: {', '.join(words)}")
        if (self.section_bytes is None) == (self.fastest == "heads of a section"):
            allowed = "a positive number of bytes with the heads of a section, else None"
            raise InputError(f"section_bytes: {shown(self.section_bytes)} given; allowed: {allowed}")
        if self.section_bytes is not None and (type(self.section_bytes) is not int or self.section_bytes < 1):
            raise InputError(f"section_bytes: {shown(self.section_bytes)} given; allowed: a positive number of bytes")
        if self.in_flight is not None and (type(self.in_flight) is not int or self.in_flight < 1):
            raise InputError(f"in_flight: {shown(self.in_flight)} given; allowed: a positive number of bytes, or None")
        if type(self.waiting) is not int or self.waiting < 0:
            raise InputError(f"waiting: {shown(self.waiting)} given; allowed: a number of stages from 0 up")
        for name in ("dependent", "slabs"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name}: {shown(getattr(self, name))} given; allowed: True or False")
        for name in ("address_clocks", "host_launch", "paged_clocks", "part_clocks", "start_clocks", "awaited_clocks"):
            value = getattr(self, name)
            if value is None and name == "awaited_clocks":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise InputError(f"{name}: {shown(value)} given; allowed: a number from 0 up")

    def without_pages(self) -> Execution:
        """Copy the execution without the clocks of pages; the axes of a shipped one are not read."""
        copy: Execution = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, paged_clocks=0.0)
        return copy

    def same_axes(self, other: Execution) -> bool:
        """Check that two executions have the same serial and spread axes."""
        return (self.serial, self.spread) == (other.serial, other.spread)


def _all(kind: type, value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(element, kind) for element in value)


PIPELINED = Execution(
    cite="arXiv:2307.08691, sections 3.1 and 3.3: tiles are fetched while others are multiplied; a warp takes its "
    "exponentials between its products",
    phases=(("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",), ("atomics",)),
)
"""Loads overlap with products; the softmax does not."""

BARRIERS = Execution(
    cite="arXiv:2205.14135, section 3.1 and Algorithm 1: all warps of a block wait for each other between the steps of "
    "a tile, for each has a part of the keys of every row",
    phases=(("matrix",), ("shared memory",), ("exp", "softmax"), ("gradient",), ("random",), ("l2",)),
)
"""Nothing overlaps within a block."""

UNFUSED = Execution(
    cite="arXiv:2205.14135, Algorithm 0: a kernel for each product and each elementwise step; a product over as few "
    "as d terms has no loop to hide its loads and stores in",
    phases=(("hbm", "l2"), ("matrix",), ("exp", "softmax"), ("gradient",), ("random",)),
)
"""A kernel reads, then computes, then writes."""
