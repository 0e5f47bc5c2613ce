"""Masks and lengths as frameworks have them: arrays with a value per query and key, and cumulative lengths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import Attention, InputError, VarlenAttention, cost
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents

TILES = {"block_q": 16, "block_kv": 16}
SIZES = st.integers(1, 40)


class Sparse:
    """A sparse array as SciPy has it, as far as it is read."""

    def __init__(self, table):
        self.table = table

    def toarray(self):
        return np.where(self.table, 0.5, 0.0)


@given(SIZES, SIZES, st.sampled_from([1, 2, 8]), st.integers(0, 2**32 - 1))
def test_a_mask_with_a_value_per_pair_sees_these_pairs(rows, columns, block, seed):
    rng = np.random.default_rng(seed)
    small = rng.random((-(-rows // block), -(-columns // block))) < 0.5
    table = np.kron(small, np.ones((block, block), bool)).astype(bool)[:rows, :columns]
    forms = (table, table.astype(int), np.where(table, 0.0, -np.inf), np.where(table, 0.0, -1e9), Sparse(table))
    masks = [BlockMask.of(form) for form in forms]
    assert all(mask == masks[0] for mask in masks)
    assert (masks[0].seen(rows, columns) == table).all()
    assert masks[0].visible_pairs(rows, columns) == table.sum()
    assert masks[0].block_q >= block or rows < block
    if table.any():
        call = Attention(q_len=rows, kv_len=columns, head_dim=8, mask=table)
        assert call.mask == masks[0]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_cumulative_lengths_are_those_of_the_sequences(lengths):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    assert Documents.of_offsets(offsets, causal=True) == Documents(lengths, causal=True)
    packed = VarlenAttention.of_offsets(offsets, offsets, head_dim=8)
    assert (
        packed
        == VarlenAttention.of_offsets(offsets.tolist(), head_dim=8)
        == VarlenAttention(q_lens=lengths, head_dim=8)
    )
    decode = VarlenAttention.of_offsets(np.arange(len(lengths) + 1), seqused_k=lengths, head_dim=8, page_size=16)
    assert decode.kv_lens == tuple(lengths)
    alone = sum(cost("flash2", Attention(q_len=n, head_dim=8), TILES).hbm_bytes for n in lengths)
    assert cost("flash2", packed, TILES).hbm_bytes == alone


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array([[0.5]]), "mask: 0.5 given; allowed: 0 where a query sees a key, and -inf"),
        (np.array([[np.nan]]), "mask: nan given"),
        (np.zeros(3), "a 2-D table"),
        (np.array([[2]]), "2 given in"),
    ],
)
def test_a_mask_of_other_values_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        BlockMask.of(given)


@pytest.mark.parametrize("offsets", [[1, 2], [0], [0, 3, 2], [0, 0], [0, -1], "01", [0, 1.5], None])
def test_offsets_that_shrink_are_refused(offsets):
    with pytest.raises(InputError, match="cu_seqlens"):
        Documents.of_offsets(offsets)
    with pytest.raises(InputError, match="cu_seqlens_q"):
        VarlenAttention.of_offsets(offsets, head_dim=8)


def test_a_block_table_has_pages_for_all_keys():
    table = np.array([[7, 3, 9], [2, -1, -1]], np.int32)
    arguments = {"cu_seqlens_q": [0, 1, 2], "seqused_k": [40, 5], "head_dim": 8, "page_size": 16}
    plain = VarlenAttention.of_offsets(**arguments)
    assert VarlenAttention.of_offsets(**arguments, block_table=table) == plain
    assert plain.sequences[0].page_size == 16
    for wrong, message in (
        (table[:, :2], r"shape \(2, 2\) given; allowed: integers of shape \(2, 3 or more\)"),
        (table[:1], "shape"),
        ([[1, 2], [3]], "shape"),
        (table.astype(float), "shape"),
        ([[7, 3, -1], [2, 0, 0]], "row 0 ends before its 40 keys"),
    ):
        with pytest.raises(InputError, match=f"block_table: .*{message}"):
            VarlenAttention.of_offsets(**arguments, block_table=wrong)
    with pytest.raises(InputError, match="page_size: none given with a block_table"):
        VarlenAttention.of_offsets([0, 1], seqused_k=[4], block_table=[[0]], head_dim=8)


def test_keys_are_given_once():
    with pytest.raises(InputError, match="seqused_k: given beside cu_seqlens_k"):
        VarlenAttention.of_offsets([0, 1], [0, 1], [1], head_dim=8)


def test_empty_sequences_among_offsets_change_no_count():
    tiles = {"block_q": 64, "block_kv": 64}
    packed = [0, 128, 128, 512]
    for whole, part in [
        (
            VarlenAttention.of_offsets(packed, head_dim=64, mask="causal"),
            VarlenAttention(q_lens=[128, 384], head_dim=64, mask="causal"),
        ),
        (
            VarlenAttention.of_offsets(packed, seqused_k=[200, 7, 500], head_dim=64, page_size=16,
                                               block_table=[[*range(32)], [-1] * 32, [*range(32)]]),
            VarlenAttention(q_lens=[128, 384], kv_lens=[200, 500], head_dim=64, page_size=16),
        ),
        (
            Attention(q_len=512, head_dim=64, mask=Documents.of_offsets(packed, causal=True)),
            Attention(q_len=512, head_dim=64, mask=Documents([128, 384], causal=True)),
        ),
    ]:  # fmt: skip
        assert whole == part
        assert cost("flash2", whole, tiles) == cost("flash2", part, tiles)
    with pytest.raises(InputError, match="cu_seqlens: 0 given last"):
        Documents.of_offsets([0, 0])
