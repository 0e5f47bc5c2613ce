"""What a simulated memory runs: kernels as steps and walks over slots, each slot the tile that an axis is at."""

from __future__ import annotations

from dataclasses import dataclass

Coordinate = tuple[str, int, int]
"""Axis, start, stop [rows]."""
Held = tuple[tuple[str, int], ...]
"""The tensors on chip, each with the bytes of its buffer [B]."""


@dataclass(frozen=True)
class Step:
    """A statement without a body: the slots of its tile, what it moves or computes, what is on chip after it."""

    op: str
    tensor: str
    slots: tuple[int, ...]
    held: Held
    width: int = 0
    """Bytes of an element [B]."""
    moves: int = 0
    """How often the tile goes through HBM [-]."""
    factor: int = 0
    """Work an element: 2 for a product, 1 for a function value [-]."""
    atomic: bool = False
    size: int | None = None
    """Elements of a buffer, which is full whatever its tile is [elements]."""
    after: int | None = None
    """Not at the first trip of the loop with this slot."""


@dataclass(frozen=True)
class Walk:
    """A loop over the tiles of an axis, or a guard, with what bounds it."""

    axis: str
    rows: int
    """Of the whole axis [rows]."""
    body: tuple[Step | Walk, ...]
    tile: int = 0
    """Of a loop [rows]; 0 for a guard."""
    slot: int = 0
    stored: tuple[int, int] | None = None
    """The slot of the tile with what memory stores beyond the last key, and where the storage ends [rows]."""
    pages: tuple[int, int] | None = None
    """The slot of the pages that the tile lies in, and the rows of a page [rows]."""
    seer: int | None = None
    """The slot of the tile that does the seeing, if a mask may bind."""
    part: int | None = None
    """The slot of a partition of the axis, in chunks."""
    chunk: int = 0
    live: bool = True
    """Whether a guard lets through where something is seen, or where nothing is."""


@dataclass(frozen=True)
class Program:
    """A kernel: its body, its slots as they are at first, how many run, what HBM holds meanwhile."""

    title: str
    per: str
    body: tuple[Step | Walk, ...]
    slots: tuple[Coordinate, ...]
    allocated: int
    """Over the whole call [B]."""
