"""Exact counts of an algorithm on a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from iomodel.common import labels
from iomodel.common.display import Result, Table, choice_text, sizes_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.quantities import QUANTITIES, TOTALS, Counts, table_rows
from iomodel.workloads.workload import Workload


@dataclass(frozen=True)
class Cost(Counts[int], Result):
    """The exact counts of an algorithm over all batches and heads.

    Attributes
    ----------
    reads, writes : mapping of tensor name to int
        HBM accesses [elements].
    hbm_bytes, atomics, flops, useful_flops, exps, ... : int
        Each quantity of :class:`~iomodel.counting.quantities.Counts`.
    """

    derived = ("hbm_reads", "hbm_writes", "hbm_elements", "intensity")

    algorithm: str
    workload: Annotated[Any, Workload]
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    reads: Mapping[str, int]
    writes: Mapping[str, int]

    @property
    def hbm_reads(self) -> int:
        """Elements read from HBM [elements]."""
        return sum(self.reads.values())

    @property
    def hbm_writes(self) -> int:
        """Elements written to HBM [elements]."""
        return sum(self.writes.values())

    @property
    def hbm_elements(self) -> int:
        """HBM accesses, reads and writes [elements]."""
        return self.hbm_reads + self.hbm_writes

    @property
    def quantities(self) -> Mapping[str, int]:
        """Every quantity by name, tensors apart; totals included."""
        return FrozenDict({name: getattr(self, name) for name in (*TOTALS, *QUANTITIES)})

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, FLOPs of the visited tiles over requests [FLOP/B]."""
        return self.flops / self.hbm_bytes

    def headline(self) -> str:
        """Return the answer in a few words."""
        return f"{self.algorithm}: {choice_text(self.tiles)}, {self.hbm_bytes:,} B"

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        tiles = sizes_text(self.tiles)
        rows = [(f"reads {name}", f"{count:,}", "elements") for name, count in self.reads.items()]
        rows += [(f"writes {name}", f"{count:,}", "elements") for name, count in self.writes.items()]
        rows += [("HBM accesses", f"{self.hbm_elements:,}", "elements"), *table_rows(self)]
        rows.append((labels.OVER_REQUESTS, f"{self.intensity:,.1f}", "FLOP/B"))
        return [Table(f"{self.algorithm}: {tiles}", ("quantity", ">value", "unit"), rows)]
