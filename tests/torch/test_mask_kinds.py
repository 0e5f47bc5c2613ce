"""Recognition of masks in tables of visible pairs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel
from iomodel import InputError
from iomodel.torch import mask_kinds
from iomodel.torch.flex_masks import mask_of, visited_blocks
from iomodel.torch.mask_kinds import Visible, mask_from_pairs

SIDES = st.none() | st.integers(0, 12)


def seen(mask: Any, q_len: int, kv_len: int) -> np.ndarray[Any, Any]:
    """The visible pairs of a mask, by its definition."""
    if isinstance(mask, iomodel.BlockMask | iomodel.Documents):
        return mask.seen(q_len, kv_len)
    window = {"full": iomodel.Window(), "causal": iomodel.Window(right=0)}.get(mask, mask)
    place = np.arange(q_len)[:, None] + (kv_len - q_len if window.align == "bottom-right" else 0)
    key = np.arange(kv_len)[None, :]
    left = True if window.left is None else key >= place - window.left
    right = True if window.right is None else key <= place + window.right
    return np.broadcast_to(left & right, (q_len, kv_len))


@given(st.integers(1, 12), st.integers(1, 12), SIDES, SIDES, st.sampled_from(["bottom-right", "top-left"]))
@example(q_len=12, kv_len=3, left=None, right=0, align="bottom-right")  # the first queries see nothing
@example(q_len=2, kv_len=1, left=None, right=0, align="bottom-right")  # the first query sees nothing
@example(q_len=1, kv_len=1, left=0, right=0, align="bottom-right")
def test_a_window_is_recognised(q_len: int, kv_len: int, left: int | None, right: int | None, align: Any) -> None:
    table = seen(iomodel.Window(left=left, right=right, align=align), q_len, kv_len)
    mask = mask_from_pairs(Visible(table))
    assert (seen(mask, q_len, kv_len) == table).all()
    if table.any():
        assert isinstance(mask, str | iomodel.Window), mask


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.booleans())
def test_documents_are_recognised(lengths: list[int], causal: bool) -> None:
    documents = iomodel.Documents(lengths, causal=causal)
    total = sum(lengths)
    mask = mask_from_pairs(Visible(documents.seen(total, total)))
    assert (seen(mask, total, total) == documents.seen(total, total)).all()
    assert not isinstance(mask, iomodel.BlockMask)


@given(st.data(), st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))
def test_any_table_is_a_mask(data: st.DataObject, rows: int, columns: int, high: int, wide: int) -> None:
    table = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=columns, max_size=columns), min_size=rows,
                                        max_size=rows)))  # fmt: skip
    pairs = table.repeat(high, axis=0).repeat(wide, axis=1)
    mask = mask_from_pairs(Visible(pairs))
    assert (seen(mask, *pairs.shape) == pairs).all()
    if isinstance(mask, iomodel.BlockMask):
        assert mask.block_q % high == 0
        assert mask.block_kv % wide == 0


def test_every_small_table_is_a_mask() -> None:
    for q_len, kv_len in product((1, 2, 3), repeat=2):
        for bits in product((False, True), repeat=q_len * kv_len):
            table = np.array(bits).reshape(q_len, kv_len)
            assert (seen(mask_from_pairs(Visible(table)), q_len, kv_len) == table).all()


def test_a_table_of_too_many_blocks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_kinds, "MOST_BLOCKS", 20)
    with pytest.raises(InputError, match="a table of 5 x 5 blocks of 1 x 1 pairs; allowed: up to 20 blocks"):
        mask_from_pairs(Visible(np.tri(5, k=-1, dtype=bool)))


class Numbers:
    """What a tensor of PyTorch shows to the reader of its blocks."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)
        self.shape = self.values.shape

    def numpy(self, *, force: bool) -> Any:
        assert force
        return self.values


def test_partial_and_full_blocks_are_visited() -> None:
    partial = Numbers([[[1, 2]]]), Numbers([[[[0, 1], [1, 0]]]])
    full = Numbers([[[1, 0]]]), Numbers([[[[1, 0], [0, 1]]]])
    found = visited_blocks((8, 7, *partial, *full, 4, 4, None))
    assert found == [(1, iomodel.BlockMask([[1, 1], [1, 1]], 4, 4))]
    assert visited_blocks((8, 7, *partial, None, None, 4, 4, None)) == [(1, iomodel.BlockMask([[1, 0], [1, 1]], 4, 4))]


SEEN = {
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q >= k) & (q - k < 3),
    "documents": lambda b, h, q, k: np.repeat([0, 1], 4)[q] == np.repeat([0, 1], 4)[k],
    "prefix": lambda b, h, q, k: (k < 4) | (q >= k),
    "full": lambda b, h, q, k: True,
}
MASKS = {
    "causal": "causal",
    "window": iomodel.Window(left=2, right=0),
    "documents": iomodel.Documents([4, 4]),
    "full": "full",
}


@pytest.mark.parametrize("kind", SEEN)
def test_without_pytorch_a_function_is_evaluated_on_arrays(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    mask = mask_of(SEEN[kind], 8, 8, batch=2, heads=2)
    assert mask == MASKS.get(kind, mask)
    pairs = [[bool(SEEN[kind](0, 0, np.int32(q), np.int32(k))) for k in range(8)] for q in range(8)]
    assert (seen(mask, 8, 8) == pairs).all()


def test_a_function_that_needs_pytorch_or_captures_data_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    document = np.repeat([0, 1], 4)
    documents = lambda b, h, q, k: document[q] == document[k]  # noqa: E731
    with pytest.raises(InputError, match=r"captures a tensor \(document\), so it depends on data"):
        mask_of(documents, 8, 8)
    assert mask_of(documents, 8, 8, data=True) == iomodel.Documents([4, 4])
    with pytest.raises(InputError, match=r"fails on tensors of queries and keys: .*'where'"):
        mask_of(lambda b, h, q, k: q.where(k), 4, 4)
    with pytest.raises(InputError, match="differs between sequence 0, head 0 and sequence 0, head 1"):
        mask_of(lambda b, h, q, k: q >= k + h, 4, 4, heads=2)
    with pytest.raises(InputError, match="torch: not installed; TrafficMode"), iomodel.torch.TrafficMode():
        pass
