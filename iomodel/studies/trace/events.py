"""Events of a trace: statements of the nest, each run on one tile."""

from __future__ import annotations

from typing import Any, NamedTuple

READING = frozenset({"Load", "Lookup", "Accumulate"})
WRITING = frozenset({"Store", "Fill", "Accumulate"})


class Event(NamedTuple):
    """A statement run on one tile, with the levels of both memories after it.

    A buffer is on chip from the statement that declares it, or from the first loop in the same body if that comes
    first, to the end of the body. It has room for a full tile. HBM holds what the whole call has allocated in this
    kernel.

    Attributes
    ----------
    kernel : str
        Title of the kernel.
    batch, head : int
        The program, as its sequence and its query head; its key/value head if a kernel has a program for each of
        those, and zeros if it runs once per call [-].
    op : str
        Load, Lookup, Store, Fill, Accumulate, Hold, MatMul, Exp, Tanh or Random.
    tensor : str
        The tensor moved or held; "" for a computation.
    tile : tuple of (axis, start, stop)
        The range of each axis [rows]. Where a call is cut into pieces, such as sections, the rows of a piece follow
        those of the piece before; where pieces share rows, such as gathered keys, they count from the first of a piece.
    elements, bytes : int
        The size of the tile, of a buffer its full size; 0 for a computation [elements], [B].
    work : int
        FLOPs of a MatMul [FLOP], function values of an Exp, Tanh or Random [-].
    sram, hbm : int
        The bytes on chip, and those allocated in HBM, after the event [B].
    hbm_time, compute_time : float or None
        Traffic over the device's bandwidth, FLOPs over its peak [clk], or [s] if it has no clock; None if
        unknown.
    atomic : bool
        True for an Accumulate of atomic additions.
    buffers : tuple of (tensor, bytes)
        The buffers on chip after the event [B].
    """

    kernel: str
    batch: int
    head: int
    op: str
    tensor: str
    tile: tuple[tuple[str, int, int], ...]
    elements: int
    bytes: int
    work: int
    sram: int
    hbm: int
    hbm_time: float | None
    compute_time: float | None
    atomic: bool
    buffers: tuple[tuple[str, int], ...]

    @property
    def reads(self) -> int:
        """Elements read from HBM [elements]."""
        return self.elements if self.op in READING else 0

    @property
    def writes(self) -> int:
        """Elements written to HBM [elements]."""
        return self.elements if self.op in WRITING else 0

    @property
    def hbm_bytes(self) -> int:
        """Traffic: an Accumulate moves its tile both ways [B]."""
        return self.bytes * ((self.op in READING) + (self.op in WRITING))

    @property
    def where(self) -> str:
        """The tensor with its tile, or the tile of a computation."""
        if self.tensor:
            return f"{self.tensor}[{', '.join(f'{start}:{stop}' for _, start, stop in self.tile)}]"
        return ", ".join(f"{axis} {start}:{stop}" for axis, start, stop in self.tile)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return {
            **self._asdict(),
            "tile": {axis: [start, stop] for axis, start, stop in self.tile},
            "buffers": dict(self.buffers),
        }


CSV_FIELDS = tuple(name for name in Event._fields if name != "buffers")


def csv_row(event: Event) -> list[object]:
    """Format an event as a row of a file, with the tile as text such as "key 0:64, depth 0:32"."""
    tile = ", ".join(f"{axis} {start}:{stop}" for axis, start, stop in event.tile)
    return [tile if name == "tile" else getattr(event, name) for name in CSV_FIELDS]
