"""Calls of the algorithms that approximate attention: small ones, at which every statement of a declaration shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting.requirements import met
from iomodel.nests.alphabet import NUMBERS
from tests.support.strategies import UNGROUPED, Case, Variant

SIZES: list[dict[str, int]] = [
    {"q_len": 12, "kv_len": 12, "head_dim": 3, "value_dim": 2, "projected": 5, "features": 5, "rank": 2, "top_k": 5}
    | {"index_heads": 3, "index_queries": 5, "index_dim": 2, "splits": 2}
    | {"stride": 4, "summary": 2, "buckets": 6, "rounds": 2, "clusters": 5, "compress_stride": 2, "compress_block": 4}
    | {"select_block": 4, "selected": 2, "local": 5, "state": 3, "expand": 2},
    {"q_len": 9, "kv_len": 9, "head_dim": 2, "value_dim": 5, "projected": 4, "features": 7, "rank": 1, "top_k": 4}
    | {"index_heads": 1, "index_queries": 2, "index_dim": 4, "splits": 1}
    | {"stride": 3, "summary": 1, "buckets": 4, "rounds": 3, "clusters": 2, "compress_stride": 3, "compress_block": 3}
    | {"select_block": 3, "selected": 1, "local": 2, "state": 1, "expand": 1},
    # Ragged; other lengths of queries and keys where an algorithm takes them.
    {"q_len": 7, "kv_len": 11, "head_dim": 6, "value_dim": 1, "projected": 3, "features": 4, "rank": 5, "top_k": 7}
    | {"index_heads": 2, "index_queries": 3, "index_dim": 3, "splits": 3},
    {"q_len": 11, "kv_len": 11, "head_dim": 1, "value_dim": 4, "projected": 9, "features": 2, "rank": 1, "top_k": 11}
    | {"index_heads": 2, "index_queries": 1, "index_dim": 1, "splits": 4}
    | {"stride": 4, "summary": 3, "buckets": 8, "rounds": 1, "clusters": 4, "state": 6, "expand": 1},
    {"q_len": 20, "kv_len": 20, "head_dim": 1, "value_dim": 1, "projected": 2, "features": 9, "rank": 1, "top_k": 2}
    | {"index_heads": 4, "index_queries": 4, "index_dim": 1, "splits": 2}
    | {"stride": 10, "summary": 9, "buckets": 2, "rounds": 4, "clusters": 9, "compress_stride": 5, "compress_block": 10}
    | {"select_block": 10, "selected": 3, "local": 20, "state": 9, "expand": 3},
    # What is said of blocks decides the footprint, not the blocks.
    {"q_len": 24, "kv_len": 24, "head_dim": 1, "value_dim": 1, "compress_stride": 1, "compress_block": 1}
    | {"select_block": 1, "selected": 50, "local": 1},
    # The most is allocated in HBM while blocks are weighed; single rows, and what chooses them, decide.
    {"q_len": 24, "kv_len": 24, "head_dim": 1, "value_dim": 1, "compress_stride": 1, "compress_block": 1}
    | {"select_block": 2, "selected": 1, "local": 1, "buckets": 2, "rounds": 12, "clusters": 1},
    # Rows of keys so wide that the mean of a block takes the most room.
    {"q_len": 4, "kv_len": 4, "head_dim": 16, "value_dim": 1, "select_block": 2, "selected": 2},
]
TILES: list[dict[str, int]] = [
    {"block_q": 5, "block_kv": 2, "block_proj": 2, "block_sum": 3, "block_channels": 3},
    # Each in its turn decides the footprint.
    {"block_q": 1, "block_kv": 1, "block_proj": 16, "block_sum": 1, "block_channels": 8},
    {"block_q": 1, "block_kv": 1, "block_proj": 1, "block_sum": 16, "block_channels": 1},
    {"block_q": 16, "block_kv": 9, "block_proj": 1, "block_sum": 1, "block_channels": 2},
    {"block_q": 1, "block_kv": 1, "block_proj": 1, "block_sum": 1, "block_channels": 1},
]


@dataclass(frozen=True)
class Calls:
    """The cases of a variant."""

    variant: Variant

    def __iter__(self) -> Iterator[Case]:
        found = algorithm(self.variant.algorithm)
        for mask in found.masks:
            names = self.variant.tiles_under(mask)
            for place, sizes in enumerate(SIZES):
                if not sizes.keys() >= NUMBERS & found.options.keys():
                    continue
                for tiles in TILES:
                    chosen = {name: tiles[name] for name in names}
                    case = self._case(sizes, mask, chosen, place)
                    if met(found, {**case.workload.numbers, "mask": mask, **found.options, **case.options, **chosen}):
                        yield case

    def _options(self, sizes: Mapping[str, int], tiles: Mapping[str, int]) -> dict[str, Any]:
        taken = algorithm(self.variant.algorithm).options
        numbers = {name: sizes[name] for name in NUMBERS & taken.keys() & sizes.keys()}
        if "splits" in numbers:
            numbers["splits"] = min(numbers["splits"], -(-sizes["top_k"] // tiles["block_kv"]))
        return {**self.variant.options, **numbers}

    def _case(self, sizes: Mapping[str, int], mask: Any, tiles: Mapping[str, int], place: int) -> Case:
        lengths = {name: sizes[name] for name in ("q_len", "kv_len", "head_dim", "value_dim")}
        heads, kv_heads = (2, 2) if self.variant.algorithm in UNGROUPED else (4, 2) if place % 2 else (2, 1)
        w = iomodel.Attention(**lengths, heads=heads, kv_heads=kv_heads, batch=1 + place % 2, mask=mask, dtype="bf16")
        return Case(self.variant.algorithm, w, dict(tiles), self._options(sizes, tiles))
