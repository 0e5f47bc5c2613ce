"""Configs that PyTorch ships for FlexAttention, read from `specs/tiles/flex-attention.csv`."""

from __future__ import annotations

import csv
from functools import cache

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.yaml_files import specs_folder

KERNELS = {"forward": "block_sparse", "backward": "backward"}
"""Kinds of kernels by pass."""
FIELDS = ("block_q", "block_kv", "warps", "stages")


@cache
def shipped_configs() -> FrozenDict[tuple[str, int, int], tuple[int, ...]]:
    """Read rows, keys, warps and stages by kind of kernel, architecture and width."""
    text = (specs_folder() / "tiles" / "flex-attention.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return FrozenDict(
        {
            (KERNELS[row["direction"]], int(row["arch"]), int(row["head_dim"])): tuple(int(row[f]) for f in FIELDS)
            for row in rows
        }
    )
