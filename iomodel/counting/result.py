"""Exact counts of an algorithm on a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Annotated, Any

from iomodel.common import labels
from iomodel.common.display import Result, Table, choice_text, sizes_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.quantities import QUANTITIES, TOTALS, Counts, table_rows
from iomodel.errors import IOModelError
from iomodel.workloads.attention import Attention
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

    derived = ("hbm_reads", "hbm_writes", "hbm_elements", "intensity", "visible_pairs", "reads_bytes", "writes_bytes")

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
    def reads_bytes(self) -> Mapping[str, int]:
        """Bytes read from HBM by tensor; without a tensor that changes its dtype, or of an unlisted algorithm [B]."""
        return self._bytes("reads")

    @property
    def writes_bytes(self) -> Mapping[str, int]:
        """Bytes written to HBM by tensor; without a tensor that changes its dtype, or of an unlisted algorithm [B]."""
        return self._bytes("writes")

    def _bytes(self, side: str) -> Mapping[str, int]:
        from iomodel.counting.bound_call import BoundCall

        try:
            bound = BoundCall.bind(self.algorithm, self.workload, self.options, tiled=bool(self.tiles))
        except IOModelError:  # an algorithm of the user's own, whose declaration is not at hand
            return FrozenDict()
        sizes = bound.element_bytes
        counts: Mapping[str, int] = getattr(self, side)
        return FrozenDict(
            {name: ceil(count * sizes[side, name]) for name, count in counts.items() if (side, name) in sizes}
        )

    @property
    def quantities(self) -> Mapping[str, int]:
        """Every quantity by name, tensors apart; totals included."""
        return FrozenDict({name: getattr(self, name) for name in (*TOTALS, *QUANTITIES)})

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, FLOPs of the visited tiles over requests [FLOP/B]."""
        return self.flops / self.hbm_bytes

    @property
    def visible_pairs(self) -> int | None:
        """Pairs of a query and a key that it sees, over all batches and heads [-]; None but for attention."""
        from iomodel.counting.bounds import visible_pairs

        return visible_pairs(self.workload)

    def headline(self) -> str:
        """Return the answer in a few words."""
        return f"{self.algorithm}: {choice_text(self.tiles)}, {self.hbm_bytes:,} B"

    def _tile_counts(self) -> list[tuple[str, str, str]]:
        """Count the tiles along the queries and along the keys of an attention call, and those that the mask leaves."""
        from iomodel.counting.enumerated import masked_tiles, visible_tiles

        call, sizes = self.workload, self.tiles
        if not isinstance(call, Attention) or not {"block_q", "block_kv"} <= sizes.keys():
            return []
        group = call.group if self.options.get("packed") else 1
        along = ("query tiles (T_r)", call.q_len * group, "block_q"), ("key tiles (T_c)", call.kv_len, "block_kv")
        counts = {label: -(-length // sizes[name]) for label, length, name in along}
        asked = call.mask, (call.q_len, call.kv_len), (sizes["block_q"], sizes["block_kv"]), group
        seen, masked = visible_tiles(*asked), masked_tiles(*asked)
        rows = [(label, f"{count:,}", "-") for label, count in counts.items()]
        rows.append(("T_r x T_c with a visible pair", f"{seen:,}", f"of {prod(counts.values()):,}"))
        return rows if masked is None else [*rows, ("  of these partly masked", f"{masked:,}", "-")]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        tiles = sizes_text(self.tiles)
        moved = (("reads", self.reads, self.reads_bytes), ("writes", self.writes, self.writes_bytes))
        rows = [
            (f"{side} {name}", f"{count:,}", f"elements = {sizes[name]:,} B" if name in sizes else "elements")
            for side, counts, sizes in moved
            for name, count in counts.items()
        ]
        rows += [("HBM accesses", f"{self.hbm_elements:,}", "elements"), *table_rows(self)]
        rows += self._tile_counts()
        rows += [] if self.visible_pairs is None else [("visible pairs", f"{self.visible_pairs:,}", "-")]
        rows.append((labels.OVER_REQUESTS, f"{self.intensity:,.1f}", "FLOP/B"))
        return [Table(f"{self.algorithm}: {tiles}", ("quantity", ">value", "unit"), rows)]
