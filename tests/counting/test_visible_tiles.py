"""The count of tiles with a visible pair, against the mask position by position."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.counting.enumerated import masked_tiles, visible_tiles

MASKS = st.one_of(
    st.sampled_from(["full", "causal"]),
    st.builds(
        iomodel.Window,
        st.none() | st.integers(0, 9),
        st.integers(0, 9),
        align=st.sampled_from(["bottom-right", "top-left"]),
    ),
)
SIZES = st.integers(1, 9)


def seen(mask, q_len, kv_len):
    """Which query sees which key, from the definition of the mask."""
    diagonal = 0 if getattr(mask, "align", "") == "top-left" else kv_len - q_len
    distance = np.arange(kv_len)[None, :] - np.arange(q_len)[:, None] - diagonal
    left, right = (
        {"full": (None, None), "causal": (None, 0)}.get(mask) if isinstance(mask, str) else (mask.left, mask.right)
    )
    shown = np.ones(distance.shape, dtype=bool)
    shown &= True if left is None else distance >= -left
    return shown & (True if right is None else distance <= right)


@given(
    mask=MASKS,
    q_len=st.integers(1, 24),
    kv_len=st.integers(1, 24),
    block_q=SIZES,
    block_kv=SIZES,
    group=st.integers(1, 4),
)
def test_tiles_with_a_visible_pair_are_those_of_the_mask(mask, q_len, kv_len, block_q, block_kv, group):
    rows = np.repeat(seen(mask, q_len, kv_len), group, axis=0)
    tiles = [
        rows[row : row + block_q, column : column + block_kv].any()
        for row in range(0, len(rows), block_q)
        for column in range(0, kv_len, block_kv)
    ]
    assert visible_tiles(mask, (q_len, kv_len), (block_q, block_kv), group) == sum(tiles)


def masked(rows, block_q, block_kv):
    """Count the tiles of a table with a visible and a hidden pair."""
    parts = [
        rows[row : row + block_q, column : column + block_kv]
        for row in range(0, rows.shape[0], block_q)
        for column in range(0, rows.shape[1], block_kv)
    ]
    return sum(part.any() and not part.all() for part in parts)


@given(
    mask=MASKS,
    q_len=st.integers(1, 24),
    kv_len=st.integers(1, 24),
    block_q=SIZES,
    block_kv=SIZES,
    group=st.integers(1, 4),
)
def test_masked_tiles_have_a_visible_and_a_hidden_pair(mask, q_len, kv_len, block_q, block_kv, group):
    rows = np.repeat(seen(mask, q_len, kv_len), group, axis=0)
    assert masked_tiles(mask, (q_len, kv_len), (block_q, block_kv), group) == masked(rows, block_q, block_kv)


DATA = st.one_of(
    st.builds(iomodel.Documents, st.lists(st.integers(1, 9), min_size=1, max_size=5), st.booleans()),
    st.integers(0, 2**16 - 1).map(
        lambda bits: iomodel.BlockMask(
            np.array([bits >> place & 1 for place in range(16)], bool).reshape(4, 4), block_q=3, block_kv=2
        )
    ),
)


@given(mask=DATA, block_q=SIZES, block_kv=SIZES, group=st.integers(1, 4))
def test_masked_tiles_of_a_mask_given_by_data_are_those_of_its_table(mask, block_q, block_kv, group):
    lengths = (mask.total,) * 2 if isinstance(mask, iomodel.Documents) else (12, 8)
    rows = np.repeat(mask.seen(*lengths), group, axis=0)
    assert masked_tiles(mask, lengths, (block_q, block_kv), group) == masked(rows, block_q, block_kv)


def test_masked_tiles_of_long_calls_are_exact():
    length, block_q = 10**18, 10**14
    diagonal = sum(block_q // 128 for _ in range(length // block_q))
    assert masked_tiles("causal", (length, length), (block_q, 128)) == diagonal
