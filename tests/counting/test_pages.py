"""Pages of a cache are moved whole: a tile that covers all keys moves the last page to its end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel


@pytest.mark.parametrize("algorithm", ["flash2", "split_kv"])
@given(
    keys=st.integers(1, 100), page=st.sampled_from([1, 4, 16, 48]), kv_heads=st.integers(1, 3), width=st.integers(1, 9)
)
def test_one_tile_moves_every_page_once(algorithm: Any, keys: int, page: int, kv_heads: int, width: int) -> None:
    w = iomodel.Attention(heads=kv_heads, q_len=1, kv_len=keys, head_dim=width, page_size=page)
    cost = iomodel.cost(algorithm, w, {"block_q": 1, "block_kv": 160})
    pages = -(-keys // page)
    assert cost.reads["K"] == cost.reads["V"] == kv_heads * pages * page * width
    assert cost.reads["block_table"] == kv_heads * pages
