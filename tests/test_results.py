"""Results are frozen values: equal, hashable, picklable, printable, and JSON."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

import iomodel
from iomodel.frozen import FrozenDict

W = iomodel.Attention(heads=4, kv_heads=2, q_len=100, head_dim=8, mask="causal")
BACKWARD = W.model_copy(update={"direction": "backward"})
MANY = iomodel.VarlenAttention(q_lens=[100, 7], head_dim=8, mask="causal")
SPARSE = iomodel.Attention(q_len=16, head_dim=8, mask=iomodel.BlockMask([[1, 0], [0, 1]], 8, 8))
RESULTS: dict[str, Callable[[], Any]] = {
    "cost": lambda: iomodel.cost("flash2", W, {"block_q": 8, "block_kv": 8}),
    "solution": lambda: iomodel.solve("flash2", W, sram_bytes=5000),
    "backward": lambda: iomodel.cost("two_pass", BACKWARD, {"block_q": 8, "block_kv": 8}),
    "sequences": lambda: iomodel.solve("flash2", MANY, sram_bytes=5000),
    "both passes": lambda: iomodel.solve("flash2", W.model_copy(update={"direction": "both"}), sram_bytes=9000),
    "block mask": lambda: iomodel.cost("flash2", SPARSE, {"block_q": 8, "block_kv": 8}),
    "splits": lambda: iomodel.solve("split_kv", W, sram_bytes=5000, splits=3),
    "sequences compared": lambda: iomodel.compare(MANY, sram_bytes=5000),
    "backward compared": lambda: iomodel.compare(BACKWARD, sram_bytes=9000),
    "backward expressions": lambda: iomodel.expressions("flash2", direction="backward"),
    "backward optimum": lambda: iomodel.optimum("two_pass", direction="backward"),
    "many": lambda: MANY,
    "blocks": lambda: SPARSE,
    "on a device": lambda: iomodel.solve("flash1", W, "h100-sxm5"),
    "comparison": lambda: iomodel.compare(W, sram_bytes=5000),
    "expressions": lambda: iomodel.expressions("flash2", mask="causal"),
    "optimum": lambda: iomodel.optimum("flash2"),
    "bound": lambda: iomodel.lower_bounds("flash2", W, 5000)["compulsory"],
    "workload": lambda: W,
}


@pytest.mark.parametrize("make", RESULTS.values(), ids=list(RESULTS))
def test_a_result_is_a_value(make: Callable[[], Any]) -> None:
    result = make()
    assert result == make()
    assert hash(result) == hash(make())
    assert pickle.loads(pickle.dumps(result)) == deepcopy(result) == result
    assert json.loads(json.dumps(result.to_dict()))
    assert str(result)
    name = next(iter(vars(result)))
    with pytest.raises((AttributeError, ValueError)):
        setattr(result, name, None)


@pytest.mark.parametrize("change", ["clear", "popitem", "pop", "setdefault", "update", "__delitem__", "__ior__"])
def test_a_frozen_dict_refuses_every_change(change: str) -> None:
    frozen = FrozenDict(a=1)
    arguments = {"clear": (), "popitem": (), "update": ({"a": 2},), "__ior__": ({"a": 2},)}.get(change, ("a",))
    with pytest.raises(TypeError, match="frozen"):
        getattr(frozen, change)(*arguments)
    assert frozen == {"a": 1}


def test_a_device_with_an_unverified_budget_says_so() -> None:
    w = iomodel.Attention(q_len=100, head_dim=8)
    assert "unverified" in str(iomodel.solve("flash2", w, "apple-m1"))
    assert "unverified" not in str(iomodel.solve("flash2", w, "h100-sxm5"))


def test_in_a_notebook_a_result_is_text_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich displays whatever is printed in a notebook, even what is printed to a stream."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    cost = iomodel.cost("flash2", iomodel.Attention(q_len=8, head_dim=4), {"block_q": 4, "block_kv": 4})
    assert "reads Q" in str(cost)
    assert "reads Q" in cost._repr_html_()
