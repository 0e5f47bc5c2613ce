"""What a linear layer or an elementwise kernel costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.frozen import FrozenDict
from iomodel.linear.fold import Moves
from iomodel.show import Shown, table


@dataclass(frozen=True)
class LinearCost(Shown):
    """What a linear layer, or an elementwise kernel, moves and computes.

    Attributes
    ----------
    reads, writes : mapping of tensor name to int
        HBM accesses [elements].
    hbm_bytes : int
        All of them; half bytes add up to whole ones, the last rounded up [B].
    flops, exps : int
        2 m n k for each product of tiles [FLOP]; exponentials [-].
    footprint, footprint_bytes : int
        The most that is live on chip at once, sums in fp32 [elements], [B].
    """

    title: str
    reads: Mapping[str, int]
    writes: Mapping[str, int]
    hbm_bytes: int
    flops: int
    exps: int
    footprint: int
    footprint_bytes: int

    @property
    def hbm_elements(self) -> int:
        """HBM accesses, reads and writes [elements]."""
        return sum(self.reads.values()) + sum(self.writes.values())

    @property
    def intensity(self) -> float:
        """Arithmetic intensity [FLOP/B]."""
        return self.flops / self.hbm_bytes

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {**self.__dict__, "reads": dict(self.reads), "writes": dict(self.writes)}

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        moved = [(f"reads {name}", count, "elements") for name, count in self.reads.items()]
        moved += [(f"writes {name}", count, "elements") for name, count in self.writes.items()]
        rest = [
            ("HBM traffic", self.hbm_bytes, "B"),
            ("FLOPs", self.flops, "FLOP"),
            ("footprint", self.footprint_bytes, "B"),
        ]
        return table(self.title, ("", ">value", "unit"), [(a, f"{b:,}", c) for a, b, c in (*moved, *rest)])


def cost_of(title: str, moves: Moves) -> LinearCost:
    """The counts of a nest under a title."""
    fields = {**moves.__dict__, "reads": FrozenDict(moves.reads), "writes": FrozenDict(moves.writes)}
    return LinearCost(title, **fields)
