"""Programs of a simulated memory: kernels as steps and loops over slots; a slot is the current tile of an axis."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.workloads.masks.spans import MaskSpans

Coordinate = tuple[str, int, int]
"""Axis, start, stop [rows]."""
Held = tuple[tuple[str, int], ...]
"""The tensors on chip, each with the size of its buffer [B]."""


@dataclass(frozen=True)
class TraceStep:
    """A statement without a body: the slots of its tile, its traffic or work, and the buffers after it."""

    op: str
    tensor: str
    slots: tuple[int, ...]
    held: Held
    width: int = 0
    """The size of an element [B]."""
    moves: int = 0
    """The number of transfers of the tile through HBM [-]."""
    factor: int = 0
    """Work per element: 2 for a product, 1 for a function value [-]."""
    atomic: bool = False
    size: int | None = None
    """The size of a buffer, regardless of the current tile [elements]."""
    after: int | None = None
    """The slot of the loop at whose first trip the step is skipped, or of the earlier visits of its tile."""
    only: int | None = None
    """The slot of the loop at whose first trip alone the step runs."""
    stays: int | None = None
    """The slot of the serpentine loop whose tile the step finds on chip after a turn."""


@dataclass(frozen=True)
class TraceLoop:
    """A loop over the tiles of an axis, or a guard, with its bounds."""

    axis: str
    rows: int
    """The length of the whole axis [rows]."""
    body: tuple[TraceStep | TraceLoop | TraceCut, ...]
    tile: int = 0
    """The tile of a loop [rows]; 0 for a guard."""
    slot: int = 0
    stored: tuple[int, int] | None = None
    """The slot of the tile that includes rows stored beyond the last key, and the end of the storage [rows]."""
    pages: tuple[int, int] | None = None
    """The slot of the pages of the tile, and the rows of a page [rows]."""
    seer: int | None = None
    """The slot of the tile that the mask relates to this axis, if a mask may bind."""
    part: int | None = None
    """The slot of a partition of the axis, in chunks."""
    chunk: int = 0
    clipped: int | None = None
    """The slot of the tile up to the last row that the other tile sees."""
    padded: int | None = None
    """The slot of the whole tile, the last one too."""
    again: int | None = None
    """The slot of the earlier visits of the tile."""
    heads: tuple[int, int] | None = None
    """The slot of the query heads of a tile of packed rows, and the heads of a group."""
    left: bool = True
    """False if the left side of a window skips nothing."""
    query_tile: int = 0
    """The tile of query rows of which the padding sees keys; 0 if it sees none [rows]."""
    turns: int | None = None
    """The slot of the loop around a serpentine loop, which walks backwards at its tiles 1, 3, 5, ..."""
    live: bool = True
    """True for a guard that passes where something is visible, False where nothing is."""


@dataclass(frozen=True)
class TracePiece:
    """A piece of a call, with the body, the mask and the repetitions of its own."""

    times: int
    body: tuple[TraceStep | TraceLoop | TraceCut, ...]
    mask: MaskSpans
    shares: tuple[tuple[str, int], ...]
    """The axes whose rows the pieces share out, each with the rows of this piece."""
    whole: tuple[int, ...]
    """The slots of those axes that no loop walks."""


@dataclass(frozen=True)
class TraceCut:
    """Pieces of the call, one after the other."""

    pieces: tuple[TracePiece, ...]


@dataclass(frozen=True)
class Program:
    """A kernel: its body, its initial slots, its multiplicity and its allocations in HBM.

    `group` heads of queries are rows of one program.
    """

    title: str
    per: str
    group: int
    body: tuple[TraceStep | TraceLoop | TraceCut, ...]
    slots: tuple[Coordinate, ...]
    allocated: int
    """The allocations of the whole call in HBM [B]."""
