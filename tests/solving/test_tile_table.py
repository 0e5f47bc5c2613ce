"""Tiles that a call allows: none without rows, and as many key tiles as splits."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from iomodel.solving.tile_table import TileTable


class Tiles(SimpleNamespace):
    """As many tiles as steps."""

    def __len__(self) -> int:
        return len(self.steps["block_kv"])


@given(st.integers(1, 200), st.integers(1, 12))
@example(200, 5)
@example(17, 2)
def test_a_key_tile_is_allowed_where_every_split_has_one(keys: int, splits: int) -> None:
    tiles = np.arange(1, 260)
    placement: Any = SimpleNamespace(tiles=("block_q", "block_kv"))
    steps, ones = {name: np.ones_like(tiles) for name in placement.tiles}, np.ones_like(tiles)
    sizes = {"block_q": ones, "block_kv": tiles}
    table: Any = Tiles(placement=placement, steps=steps, sizes=sizes)
    point = {"q_len": 1, "kv_len": keys, "group": 1}
    options = {"packed": False, "splits": splits * ones}
    enough = (-(-keys // tiles) >= splits) & (tiles <= keys)
    assert TileTable.allowed(table, point, options, 1, np.arange(len(tiles))).tolist() == enough.tolist()
