"""Workloads: defaults, limits, and errors that name the field."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import iomodel
from iomodel.errors import shown
from iomodel.symbols import WORKLOAD


def test_defaults_follow_heads_q_len_and_head_dim() -> None:
    w = iomodel.Attention(heads=4, q_len=7, head_dim=3)
    assert (w.batch, w.kv_heads, w.kv_len, w.value_dim, w.dtype, w.mask) == (1, 4, 7, 3, "bf16", "full")


def test_numbers_stand_in_the_order_of_the_alphabet() -> None:
    w = iomodel.Attention(q_len=7, head_dim=3, mask=iomodel.Window(left=5, right=None))
    assert list(w.numbers) == [entry.name for entry in WORKLOAD]
    assert w.point == tuple(w.numbers.values())
    assert (w.numbers["window_left"], w.numbers["window_right"]) == (5, 0)


@pytest.mark.parametrize(
    ("dtype", "size"), [("fp32", 4), ("tf32", 4), ("fp16", 2), ("bf16", 2), ("fp8", 1), ("int8", 1)]
)
def test_element_sizes(dtype: Any, size: int) -> None:
    assert iomodel.Attention(q_len=1, head_dim=1, dtype=dtype).element_size == size


def test_numpy_integers_are_integers() -> None:
    w = iomodel.Attention(q_len=np.int64(7), head_dim=np.uint8(3))
    assert w == iomodel.Attention(q_len=7, head_dim=3)
    assert type(w.q_len) is int


def test_frozen_hashable_and_json() -> None:
    w = iomodel.Attention(q_len=7, head_dim=3, mask=iomodel.Window(left=5))
    assert hash(w) == hash(iomodel.Attention(q_len=7, head_dim=3, mask=iomodel.Window(left=5)))
    with pytest.raises(ValueError, match="frozen"):
        w.q_len = 8  # type: ignore[misc]
    assert iomodel.Attention(**json.loads(json.dumps(w.to_dict()))) == w


BAD: list[tuple[dict[str, Any], str]] = [
    ({"q_len": 0}, "q_len: "),
    ({"q_len": -4}, "q_len: Input should be greater than or equal to 1, given -4"),
    ({"q_len": 2.5}, "q_len: Input should be a valid integer, given 2.5"),
    ({"q_len": 8.0}, "q_len: "),
    ({"q_len": float("nan")}, "q_len: Input should be a valid integer, given nan"),
    ({"q_len": "8"}, "q_len: Input should be a valid integer, given '8'"),
    ({"q_len": True}, "q_len: Input should be a valid integer, given True"),
    ({"q_len": 10**400}, "q_len: "),
    ({"q_len": 10**5000}, "q_len: "),
    ({"q_len": None}, "q_len: "),
    ({"head_dim": None}, "head_dim: "),
    ({"batch": 0}, "batch: "),
    ({"heads": 6, "kv_heads": 4}, "kv_heads: 4 does not divide heads = 6; allowed: a divisor of 6, such as 3"),
    ({"heads": 2, "kv_heads": 4}, "kv_heads: 4 does not divide heads = 2; allowed: a divisor of 2, such as 2"),
    ({"heads": 7, "kv_heads": 10**9}, "kv_heads: 1000000000 does not divide heads = 7"),
    ({"dtype": "bf61"}, "dtype: 'bf61' is unknown; did you mean 'bf16'?"),
    ({"dtype": 16}, "dtype: 16 is unknown"),
    ({"mask": "casual"}, "mask: 'casual' is unknown; did you mean 'causal'?"),
    ({"mask": None}, "mask: None is unknown"),
    ({"mask": {"left": -1}}, "mask: left: "),
    ({"mask": ["causal"]}, "mask: ['causal'] is unknown"),
    ({"direction": "sideways"}, "direction: Input should be 'forward', given 'sideways'"),
    ({"causal": True}, "causal: Extra inputs are not permitted, given True"),
]


@pytest.mark.parametrize(("changes", "says"), BAD, ids=[shown(changes, 50) for changes, _ in BAD])
def test_bad_fields_are_named_in_one_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(iomodel.InputError) as caught:
        iomodel.Attention(**{"q_len": 8, "head_dim": 4, **changes})
    message = str(caught.value)
    assert message.startswith(says)
    assert "\n" not in message
    assert len(message) < 300


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(iomodel.InputError, match=r"batch: .*; q_len: .*; head_dim: "):
        iomodel.Attention(batch=0, q_len=0, head_dim=0)


@pytest.mark.parametrize("side", [{"left": -1}, {"right": 1.5}, {"align": "middle"}, {"left": float("inf")}])
def test_bad_windows_are_refused(side: dict[str, Any]) -> None:
    with pytest.raises(iomodel.InputError, match=next(iter(side))):
        iomodel.Window(**side)


def test_a_changed_copy_has_its_own_numbers() -> None:
    """A cached number must not outlive the field that it came from."""
    w = iomodel.Attention(q_len=64, head_dim=4)
    before = iomodel.cost("standard", w)
    longer = w.model_copy(update={"q_len": 128, "kv_len": 128})
    assert longer == iomodel.Attention(q_len=128, head_dim=4)
    assert iomodel.cost("standard", longer) == iomodel.cost("standard", iomodel.Attention(q_len=128, head_dim=4))
    assert iomodel.cost("standard", longer) != before
    with pytest.raises(iomodel.InputError, match="q_len"):
        w.model_copy(update={"q_len": 0})
