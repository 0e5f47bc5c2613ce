"""Results are frozen values: equal, hashable, picklable, printable, and JSON."""

from __future__ import annotations

import json
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pytest
from sympy import Symbol

import iomodel
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.tabular import Tabular
from tests.support.public_names import PUBLIC
from tests.support.public_types import MADE

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
    "bound": lambda: iomodel.lower_bounds(W, algorithm="flash2", sram_elements=5000)["compulsory"],
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


def public_types() -> set[str]:
    """The public types, errors apart."""
    return {n for n, kind in PUBLIC.items() if isinstance(kind, type) and not issubclass(kind, iomodel.IOModelError)}


@cache
def example(name: str) -> Any:
    """A value of a public type."""
    return MADE[name]()


def test_every_public_type_is_tried() -> None:
    assert public_types() == MADE.keys()


@pytest.mark.parametrize("name", sorted(public_types()))
def test_every_public_type_reads_back_from_json(name: str) -> None:
    made = example(name)
    again = type(made).from_json(made.to_json())
    assert type(again) is PUBLIC[name]  # a shipped residency or execution reads back as a plain one
    assert isinstance(made, type(again))
    assert again == made
    assert hash(again) == hash(made)
    assert again.to_dict() == made.to_dict()
    assert str(again) == str(made)


@pytest.mark.parametrize("make", RESULTS.values(), ids=list(RESULTS))
def test_a_result_of_every_kind_of_call_reads_back_from_json(make: Callable[[], Any]) -> None:
    made = make()
    assert type(made).from_json(made.to_json(indent=None)) == made


def faults(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Plain data with one fault each: a value of another type."""
    return ({**data, key: [{}] if isinstance(value, dict) else {"no such key": [None]}} for key, value in data.items())


@pytest.mark.parametrize("name", sorted(public_types()))
def test_plain_data_with_a_fault_are_refused_in_one_line(name: str) -> None:
    made = example(name)
    kind, data = type(made), json.loads(made.to_json())
    with pytest.raises(iomodel.IOModelError, match="no such key"):
        kind.from_dict({**data, "no such key": 1})
    for wrong in faults(data):
        try:
            again = kind.from_dict(wrong)
        except iomodel.IOModelError as refusal:
            message = str(refusal)
        else:
            message = ""
            assert again == made, "a key that follows from the others is not read"
        assert "\n" not in message


@pytest.mark.parametrize("name", sorted(public_types()))
@pytest.mark.parametrize("text", ["[]", "{", "null", "[" * 100_000, b"\xff"])
def test_what_is_no_object_is_refused(name: str, text: str) -> None:
    kind = PUBLIC[name]
    with pytest.raises(iomodel.InputError):
        kind.from_json(text)


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("Cost", "flops", "5", "flops: '5' given; allowed: an integer"),
        ("Solution", "cost", {}, "cost.algorithm: not given, but required"),
        (
            "Estimate",
            "hardware",
            "/etc/passwd",
            "hardware: '/etc/passwd' given; allowed: the name of a shipped Hardware",
        ),
    ],
)
def test_the_error_names_the_key(kind: str, key: str, value: Any, message: str) -> None:
    data = example(kind).to_dict()
    with pytest.raises(iomodel.InputError, match=f"^{re.escape(message)}$"):
        PUBLIC[kind].from_dict({**data, key: value})


def test_a_device_of_ones_own_reads_back() -> None:
    data = iomodel.hardware("h100-sxm5").to_dict()
    own = iomodel.Hardware(**{**data, "id": "own", "name": "A device of one's own"})
    estimate = iomodel.estimate("flash2", W, own, {"block_q": 64, "block_kv": 32})
    again = iomodel.Estimate.from_json(estimate.to_json())
    assert again == estimate
    assert again.hardware == own
    assert estimate.to_dict()["hardware"] == "own"


def test_substituted_expressions_read_back() -> None:
    made = iomodel.expressions("split_kv", "causal", splits=3).subs(batch=1, heads=Symbol("h")).subs(block_q=128)
    assert iomodel.results.Expressions.from_json(made.to_json()) == made


def test_arrays_read_back_with_their_shape_and_type() -> None:
    sizes = {"block_q": [[64], [128]], "block_kv": 64, "dtype": ["bf16", "fp8"]}
    made = iomodel.cost_array("flash2", q_len=10**15, heads=10**9, head_dim=8, **sizes)
    again = iomodel.CostArray.from_json(made.to_json())
    assert again == made
    assert again.hbm_bytes.dtype == made.hbm_bytes.dtype
    empty = iomodel.cost_array("flash2", q_len=np.zeros((0, 3), dtype=int), head_dim=8, block_q=64, block_kv=64)
    assert iomodel.CostArray.from_json(empty.to_json()).shape == (0, 3)


@pytest.mark.parametrize("change", ["clear", "popitem", "pop", "setdefault", "update", "__delitem__", "__ior__"])
def test_a_frozen_dict_refuses_every_change(change: str) -> None:
    frozen = FrozenDict(a=1)
    arguments = {"clear": (), "popitem": (), "update": ({"a": 2},), "__ior__": ({"a": 2},)}.get(change, ("a",))
    with pytest.raises(TypeError, match="frozen"):
        getattr(frozen, change)(*arguments)
    assert frozen == {"a": 1}


def test_a_device_with_an_unverified_budget_says_so() -> None:
    w = iomodel.Attention(q_len=100, head_dim=8)
    assert "unverified" in str(iomodel.solve("flash2", w, "apple-m1", implementation="textbook"))
    assert "unverified" not in str(iomodel.solve("flash2", w, "h100-sxm5", implementation="textbook"))


def test_in_a_notebook_a_result_is_text_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich displays whatever is printed in a notebook, even what is printed to a stream."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    cost = iomodel.cost("flash2", iomodel.Attention(q_len=8, head_dim=4), {"block_q": 4, "block_kv": 4})
    assert "reads Q" in str(cost)
    assert "reads Q" in cost._repr_html_()


def test_ipython_prints_tables_and_arrays_of_counts_have_a_short_repr() -> None:
    printed: list[str] = []
    printer = type("Printer", (), {"text": lambda self, text: printed.append(text)})()
    counts = iomodel.cost_array("flash2", q_len=[8, 16], head_dim=4, block_q=4, block_kv=4)
    timed = iomodel.estimate_array(
        "flash3", None, "h100-sxm5", q_len=[512, 1024], head_dim=128, block_q=128, block_kv=128
    )
    for result in (counts, timed):
        result._repr_pretty_(printer, cycle=False)
        assert printed.pop() == str(result)
        assert len(repr(result)) < 1000  # without compiled formulas and further arrays


@pytest.mark.parametrize("name", [n for n in sorted(public_types()) if issubclass(PUBLIC[n], Tabular)])
def test_a_result_that_is_a_table_is_a_data_frame(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    made = example(name)
    frame = made.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) > 0
    records = made.records()
    if isinstance(records, list):
        assert len(frame) == len(records)
    else:
        assert all(frame[column].tolist() == list(values) for column, values in records.items())


def test_an_array_of_costs_is_a_row_per_point() -> None:
    made = iomodel.cost_array("flash2", q_len=[64, 65], head_dim=8, block_q=[[16], [32]], block_kv=16)
    frame = made.to_pandas()
    assert frame["q_len"].tolist() == [64, 65, 64, 65]
    assert frame["block_q"].tolist() == [16, 16, 32, 32]
    assert frame["hbm_bytes"].tolist() == made.hbm_bytes.ravel().tolist()


def test_without_pandas_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(iomodel.InputError, match=re.escape("pip install 'iomodel[sweep]'")):
        example("Estimate").to_pandas()
