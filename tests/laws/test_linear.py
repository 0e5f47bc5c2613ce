"""Every question about a linear layer gets the answer of its counting kernel: cost, formulas, trace, arrays."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Integer

import iomodel
from iomodel.nests.symbols import BY_NAME
from tests.counting.test_linear import Case, cases
from tests.support.strategies import at_most

TILES = ("block_m", "block_n", "block_k")


@at_most(25)
@given(cases())
def test_cost_formulas_and_trace_agree(case: Case) -> None:
    layer, sizes = case.layer, {name: case.tiles[name] for name in TILES}
    splits = case.tiles["splits"]
    cost = iomodel.cost("gemm", layer, sizes, splits=splits)
    formulas = iomodel.expressions("gemm", splits=splits, **dict.fromkeys(layer.features, True))
    point = {BY_NAME[name]: Integer(number) for name, number in {**layer.numbers, **sizes}.items()}
    assert {name: int(expr.xreplace(point)) for name, expr in formulas.reads.items()} == cost.reads
    assert {name: int(expr.xreplace(point)) for name, expr in formulas.writes.items()} == cost.writes
    for name, expr in formulas.quantities.items():
        assert expr.xreplace(point) == getattr(cost, {"footprint": "footprint_elements"}.get(name, name)), name
    trace = iomodel.trace("gemm", layer, None, sizes, splits=splits, most_events=10**6)
    found = trace.whole
    assert found.reads == {name: count for name, count in cost.reads.items() if count}
    assert found.writes == {name: count for name, count in cost.writes.items() if count}
    assert sum(found.read_bytes.values()) + sum(found.written_bytes.values()) == cost.hbm_bytes
    assert (found.flops, found.exps) == (cost.flops, cost.exps)
    assert sum(1 for _ in trace.events) == trace.count


def test_half_bytes_are_whole_in_the_formula() -> None:
    layer = iomodel.Linear(rows=3, in_features=5, out_features=7, weight_dtype="int4")
    cost = iomodel.cost("gemm", layer, dict.fromkeys(TILES, 2))
    assert cost.hbm_bytes == 2 * (cost.reads["X"] + cost.writes["Y"]) + ceil(cost.reads["W"] / 2)
    point = {BY_NAME[name]: number for name, number in {**layer.numbers, **dict.fromkeys(TILES, 2)}.items()}
    assert iomodel.expressions("gemm", splits=1).hbm_bytes.subs(point) == cost.hbm_bytes


@settings(max_examples=10)
@given(cases(), st.data())
def test_arrays_are_the_costs_of_each_layer(case: Case, data: st.DataObject) -> None:
    layer, sizes = case.layer, {name: case.tiles[name] for name in TILES}
    rows, columns = (data.draw(st.lists(st.integers(1, 99), min_size=1, max_size=3)) for _ in range(2))
    fields = {**layer.to_dict(), "rows": rows, "out_features": [[n] for n in columns]}
    splits = case.tiles["splits"]
    found = iomodel.cost_array("gemm", **fields, **{**sizes, "block_m": rows}, splits=splits)
    for i, j in np.ndindex(found.shape):
        one = layer.model_copy(update={"rows": rows[j], "out_features": columns[i]})
        cost = iomodel.cost("gemm", one, {**sizes, "block_m": rows[j]}, splits=splits)
        assert found[i, j] == cost
        assert {name: values[i, j] for name, values in found.reads.items()} == cost.reads
        assert (found.hbm_bytes[i, j], found.flops[i, j]) == (cost.hbm_bytes, cost.flops)
        assert found.footprint_bytes[i, j] == cost.footprint_bytes


def test_arrays_refuse_what_a_layer_refuses() -> None:
    fields = {"rows": 4, "in_features": 8, "out_features": 4, "block_m": 2, "block_n": 2, "block_k": [2, 8]}
    with pytest.raises(iomodel.InputError, match=r"splits: 2 given, at index \(1,\); allowed: up to 1"):
        iomodel.cost_array("gemm", **fields, splits=2)
    with pytest.raises(iomodel.UnknownNameError, match="'q_len' is unknown"):
        iomodel.cost_array("gemm", **fields, q_len=3)
