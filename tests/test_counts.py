"""What the formulas predict is what the reference kernels count, exactly, for every shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.symbols import BY_NAME
from tests.reference.machine import Run
from tests.reference.masks import useful_pairs, visible
from tests.strategies import VARIANTS, Case, Tally, Variant, bounds, cases, fraction_of_examples, workloads

each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)
QUANTITIES = [
    "hbm_elements",
    "hbm_bytes",
    "flops",
    "useful_flops",
    "exps",
    "footprint_elements",
    "footprint_bytes",
    "peak_hbm_elements",
    "peak_hbm_bytes",
]


def predicted(case: Case) -> dict[str, Any]:
    cost = case.cost()
    return {
        "reads": {name: count for name, count in cost.reads.items() if count},
        "writes": {name: count for name, count in cost.writes.items() if count},
        **{name: getattr(cost, name) for name in QUANTITIES},
    }


def measured(case: Case, run: Run) -> dict[str, Any]:
    w = case.workload
    seen = visible(w.q_len, w.kv_len, **{"left": None, "right": None, "align": "bottom-right"} | bounds(w.mask))
    moved = run.reads + run.writes
    return {
        "reads": {name: count for name, count in run.reads.items() if count},
        "writes": {name: count for name, count in run.writes.items() if count},
        "hbm_elements": sum(moved.values()),
        "hbm_bytes": run.hbm_bytes(w.element_size),
        "flops": run.flops,
        "useful_flops": 2 * w.batch * w.heads * (w.head_dim + w.value_dim) * useful_pairs(seen),
        "exps": run.exps,
        "footprint_elements": run.sram_peak,
        "footprint_bytes": run.sram_bytes(w.element_size),
        "peak_hbm_elements": run.hbm_peak,
        "peak_hbm_bytes": run.hbm_peak_bytes(w.element_size),
    }


@each_variant
@given(data=st.data())
def test_counted_equals_predicted(variant: Variant, data: st.DataObject, compared: Tally) -> None:
    case = data.draw(cases(variant))
    compared.shapes += 1
    assert predicted(case) == measured(case, case.run())


@each_variant
@given(data=st.data())
def test_sums_are_sums(variant: Variant, data: st.DataObject) -> None:
    cost = data.draw(cases(variant)).cost()
    assert cost.hbm_reads == sum(cost.reads.values())
    assert cost.hbm_writes == sum(cost.writes.values())
    assert cost.hbm_elements == cost.hbm_reads + cost.hbm_writes
    assert cost.intensity == cost.flops / cost.hbm_bytes
    assert cost.useful_flops <= cost.flops


def at(e: iomodel.Expressions, point: dict[str, int]) -> dict[str, int]:
    """Every quantity by plain substitution, which compiles nothing."""
    values = {BY_NAME[name]: value for name, value in point.items()}
    formulas = {**{f"reads {name}": expr for name, expr in e.reads.items()}, **e.quantities}
    formulas |= {f"writes {name}": expr for name, expr in e.writes.items()}
    return {name: int(expr.subs(values)) for name, expr in formulas.items()}


def numbers(cost: iomodel.Cost) -> dict[str, int]:
    return {
        **{f"reads {name}": count for name, count in cost.reads.items()},
        **{f"writes {name}": count for name, count in cost.writes.items()},
        **{name: getattr(cost, name) for name in ["hbm_reads", "hbm_writes", *QUANTITIES]},
    }


def renamed(found: dict[str, int]) -> dict[str, int]:
    return {"footprint_elements" if name == "footprint" else name: value for name, value in found.items()}


@each_variant
@fraction_of_examples(10)
@given(data=st.data())
def test_a_cost_is_its_expressions_at_a_point(variant: Variant, data: st.DataObject) -> None:
    case = data.draw(cases(variant))
    e = iomodel.expressions(case.algorithm, case.workload.mask, **case.options)
    assert renamed(at(e, {**case.workload.numbers, **case.tiles})) == numbers(case.cost())


LENGTHS = st.integers(1, 40) | st.integers(1, 10**5) | st.integers(10**9, 10**12)


@each_variant
@fraction_of_examples(10)
@given(data=st.data(), lengths=st.lists(st.tuples(LENGTHS, LENGTHS), min_size=1, max_size=4))
def test_arrays_hold_what_costs_hold(variant: Variant, data: st.DataObject, lengths: list[tuple[int, int]]) -> None:
    """Many lengths at once: in int64 where all fit, and as Python integers where one does not."""
    case = data.draw(cases(variant))
    e = iomodel.expressions(case.algorithm, case.workload.mask, **case.options)
    fields = {name: getattr(case.workload, name) for name in type(case.workload).model_fields}
    each = [iomodel.Attention(**{**fields, "q_len": q_len, "kv_len": kv_len}) for q_len, kv_len in lengths]
    expected = [iomodel.cost(case.algorithm, w, case.tiles, **case.options) for w in each]
    q_len, kv_len = np.array(lengths, dtype=np.int64).T
    point = {**case.workload.numbers, **case.tiles, "q_len": q_len, "kv_len": kv_len}
    for name, expr in {**e.quantities, **e.reads}.items():
        found = iomodel.evaluate(expr, point)
        field = "footprint_elements" if name == "footprint" else name
        counts = [cost.reads[name] if name in e.reads else getattr(cost, field) for cost in expected]
        assert list(np.broadcast_to(found, len(lengths))) == counts, name


@given(case=workloads().flatmap(lambda w: st.tuples(st.just(w), st.integers(1, 16), st.integers(1, 16))))
def test_statistics_are_what_lse_adds(case: tuple[iomodel.Attention, int, int]) -> None:
    w, block_q, block_kv = case
    tiles = {"block_q": block_q, "block_kv": block_kv}
    with_lse, without = (iomodel.cost("flash2", w, tiles, lse=lse) for lse in (True, False))
    assert with_lse.hbm_bytes - without.hbm_bytes == 4 * w.batch * w.heads * w.q_len
