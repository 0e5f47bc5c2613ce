"""Tiles that public kernels ship, and tiles that their sources call too large; each file names where it is from."""

from __future__ import annotations

import csv
from pathlib import Path

DEVICES = {
    "sm_80": "a100-sxm4-80gb",
    "sm_86": "rtx3090",
    "sm_87": "jetson-agx-orin",
    "sm_89": "rtx4090",
    "sm_90": "h100-sxm5",
    "sm_120": "rtx5090",
}
"""A device of each architecture."""
SHIPPED = Path(__file__).resolve().parents[2] / "specs" / "tiles"
OTHER_DEVICES = {"sm_75": "t4", "sm_100": "b200", "sm_120": "rtx5090", "gfx942": "mi300x", "gfx950": "mi355x"}
"""A device of each other architecture in a table."""


def table(name: str) -> list[dict[str, str]]:
    """The rows of a file, without its comments."""
    own = Path(__file__).with_name(f"{name}.csv")
    text = (own if own.is_file() else SHIPPED / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
