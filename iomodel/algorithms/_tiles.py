"""Tables of the tiles that public kernels ship, read from `specs/tiles`, one file per implementation and direction."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import cache

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.yaml_files import specs_folder
from iomodel.nests.implementation import ShippedTile

SIZES = ("block_q", "block_kv", "warps", "stages")
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of splits that a solver tries; FlashAttention-2 takes up to 128."""
PAIRED = ("128", "192")
"""Widths of FlashAttention-4 with and without pairs of blocks."""
WORDS = {"plain": "full", "local": "window"}
"""Words for a call by those of the tables."""
DROPOUT = {"yes": ("dropout",), "no": ("no dropout",)}
SEVERAL = {"one": ("one split",), "several": ("several splits",)}


@cache
def shipped_tiles(implementation: str, algorithm: str) -> tuple[ShippedTile, ...]:
    """Read the tiles that an implementation ships for an algorithm; none if there is no table of it.

    A release of a year without a table of its own has the tiles of today's.
    """
    library = re.sub("-20[0-9]{2}$", "", implementation)
    name = implementation if (specs_folder() / "tiles" / f"{implementation}.csv").is_file() else library
    return tuple(
        _tile(row)
        for suffix, direction in (("", "forward"), ("-backward", "backward"))
        for row in _rows(f"{name}{suffix}", direction)
        if row.get("algorithm", algorithm) == algorithm and not _by_hand(row)
    )


def _rows(name: str, direction: str) -> Iterator[dict[str, str]]:
    file = specs_folder() / "tiles" / f"{name}.csv"
    if file.is_file():
        lines = (line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
        for row in csv.DictReader(lines):
            yield {"direction": direction, **row}


def _by_hand(row: dict[str, str]) -> bool:
    """Check that a caller chooses a tile by hand."""
    return "short queries" in row.get("variant", "")


def _tile(row: dict[str, str]) -> ShippedTile:
    always = (*DROPOUT.get(row.get("dropout", "any"), ()), *SEVERAL.get(row.get("splits", "any"), ()))
    always += (f"up to {row['rows']} rows",) if row.get("rows", "any") != "any" else ()
    always += ("pair",) if row.get("pair") == "2" and row["head_dim"] in PAIRED else ()
    named = row.get("variant", row.get("mask", "any"))
    alternatives = (
        [] if named in ("any", "default", "fp32", "pe") else [part.split(" with ") for part in named.split(" or ")]
    )
    variants = tuple(
        " with ".join((*(WORDS.get(word, word) for word in words), *always)) for words in alternatives or [[]]
    )
    dtype = row.get("dtype", "bf16")
    return ShippedTile(
        tiles=FrozenDict({name: int(row[name]) for name in SIZES if name in row}),
        head_dim=int(row["head_dim"]),
        value_dim=int(row.get("value_dim") or row["head_dim"]),
        direction=row["direction"],
        dtypes=("fp16", "bf16") if dtype == "bf16" else (dtype,),
        architecture=row.get("architecture", ""),
        variants=variants,
        shared_bytes=int(row["shared_bytes"]) if row.get("shared_bytes") else None,
    )
