"""What the formulas predict is what the reference kernels count, exactly, for every shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Integer

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting.quantities import QUANTITIES, TOTALS
from iomodel.nests.alphabet import NUMBERS
from iomodel.nests.symbols import BY_NAME
from iomodel.testing.machine import Run
from tests.reference.masks import useful_pairs, visible
from tests.support.enumeration import with_counts
from tests.support.strategies import EVERY, Case, Tally, Variant, bounds, cases, fraction_of_examples, workloads

each_variant = pytest.mark.parametrize("variant", EVERY, ids=str, scope="module")


def predicted(case: Case) -> dict[str, Any]:
    cost = case.cost()
    return {
        "reads": {name: count for name, count in cost.reads.items() if count},
        "writes": {name: count for name, count in cost.writes.items() if count},
        **{name: getattr(cost, name) for name in ["hbm_elements", *QUANTITIES]},
    }


PRODUCTS = {"forward": (1, 1), "backward": (3, 2), "two_pass": (4, 3), "standard": (2, 2), "eager": (2, 2)}
"""Products of width head_dim and of width value_dim."""


def measured(case: Case, run: Run) -> dict[str, Any]:
    w = case.workload
    with_depth, with_value = PRODUCTS[w.direction]
    if w.direction == "backward" and case.algorithm in PRODUCTS:
        with_depth, with_value = PRODUCTS[case.algorithm]
    moved = run.reads + run.writes
    sizes = w.element_size, w.kv_element_size
    return {
        "reads": {name: count for name, count in run.reads.items() if count},
        "writes": {name: count for name, count in run.writes.items() if count},
        "hbm_elements": sum(moved.values()),
        "hbm_bytes": run.hbm_bytes(*sizes),
        "atomics": run.atomics,
        "flops": run.flops,
        "useful_flops": run.flops
        if algorithm(case.algorithm).approximates
        else 2 * w.batch * w.heads * (with_depth * w.head_dim + with_value * w.value_dim) * useful_pairs(seen(w)),
        "exps": run.exps,
        "tanhs": run.tanhs,
        "randoms": run.randoms,
        "footprint_elements": run.sram_peak,
        "footprint_bytes": run.sram_bytes(*sizes),
        "peak_hbm_elements": run.hbm_peak,
        "peak_hbm_bytes": run.hbm_peak_bytes(*sizes),
    }


@each_variant
@given(data=st.data())
def test_counted_equals_predicted(variant: Variant, data: st.DataObject, compared: Tally) -> None:
    """A count is what its kernel counts, and a sum of counts is their sum."""
    case = data.draw(cases(variant))
    compared.shapes += 1
    assert predicted(case) == measured(case, case.run())
    cost = case.cost()
    assert cost.hbm_reads == sum(cost.reads.values())
    assert cost.hbm_writes == sum(cost.writes.values())
    assert cost.hbm_elements == cost.hbm_reads + cost.hbm_writes
    assert cost.intensity == cost.flops / cost.hbm_bytes
    assert cost.useful_flops <= cost.flops


def seen(w: iomodel.Attention) -> np.ndarray:
    """Which query sees which key."""
    given: dict[str, Any] = {"left": None, "right": None, "align": "bottom-right"} | bounds(w)
    found: np.ndarray = given["seen"] if "seen" in given else visible(w.q_len, w.kv_len, **given)
    return found


def numbers_of(case: Case) -> dict[str, Any]:
    """The options of a case that enter a formula as symbols."""
    return {name: value for name, value in case.options.items() if name in NUMBERS}


def formulas(case: Case) -> iomodel.results.Expressions:
    w = case.workload
    switches = {name: value for name, value in case.options.items() if name not in NUMBERS}
    return iomodel.expressions(case.algorithm, w.mask, w.direction, **switches, **dict.fromkeys(w.features, True))


def at(case: Case) -> dict[str, int]:
    """Every quantity by plain substitution, which compiles nothing."""
    e, w = formulas(case), case.workload
    values = {BY_NAME[name]: Integer(n) for name, n in {**w.numbers, **numbers_of(case), **case.tiles}.items()}
    every = {**{f"reads {name}": expr for name, expr in e.reads.items()}, **e.quantities}
    every |= {f"writes {name}": expr for name, expr in e.writes.items()}
    shown, page = seen(w), w.page_size or 1

    def sighted(left: bool, more: int) -> np.ndarray:
        given: dict[str, Any] = {"left": None, "right": None, "align": "bottom-right"} | bounds(w)
        return visible(w.q_len, w.kv_len, **given | ({} if left else {"left": None}), more=more)

    found = {name: with_counts(expr.xreplace(values), shown, page, sighted) for name, expr in every.items()}
    return {name: int(value) for name, value in found.items()}


def numbers(cost: iomodel.Cost) -> dict[str, int]:
    return {
        **{f"reads {name}": count for name, count in cost.reads.items()},
        **{f"writes {name}": count for name, count in cost.writes.items()},
        **{name: getattr(cost, name) for name in [*TOTALS, *QUANTITIES]},
    }


def renamed(found: dict[str, int]) -> dict[str, int]:
    return {"footprint_elements" if name == "footprint" else name: value for name, value in found.items()}


LENGTHS = st.integers(1, 40) | st.integers(1, 10**5) | st.integers(10**9, 10**12)


@each_variant
@fraction_of_examples(10)
@given(data=st.data())
def test_a_cost_is_its_expressions_at_a_point(variant: Variant, data: st.DataObject) -> None:
    case = data.draw(cases(variant))
    assert renamed(at(case)) == numbers(case.cost())


def lengthened(w: iomodel.Attention, q_len: int, kv_len: int) -> iomodel.Attention:
    """The same call at other lengths, under a mask whose counts have formulas at any."""
    known = isinstance(w.mask, str | iomodel.Window) and w.page_size is None
    return w.model_copy(update={"q_len": q_len, "kv_len": kv_len, "mask": w.mask if known else "full"})


@each_variant
@fraction_of_examples(10)
@given(data=st.data(), lengths=st.lists(st.tuples(LENGTHS, LENGTHS), min_size=1, max_size=4))
def test_arrays_hold_what_costs_hold(variant: Variant, data: st.DataObject, lengths: list[tuple[int, int]]) -> None:
    """Many lengths at once: in int64 where all fit, and as Python integers where one does not."""
    case = data.draw(cases(variant))
    if algorithm(variant.algorithm).approximates:  # what divides a length, or is as long, does and is times anything
        lengths = [(case.workload.q_len * times, case.workload.kv_len * times) for times, _ in lengths]
    each = [lengthened(case.workload, *both) for both in lengths]
    options = dict(case.options)
    if "splits" in options:
        options["splits"] = min(options["splits"], *(-(-w.kv_len // case.tiles["block_kv"]) for w in each))
    case = replace(case, workload=each[0], options=options)
    e = formulas(case)
    expected = [replace(case, workload=w).cost() for w in each]
    q_len, kv_len = np.array(lengths, dtype=np.int64).T
    point = {**case.workload.numbers, **numbers_of(case), **case.tiles, "q_len": q_len, "kv_len": kv_len}
    for name, expr in {**e.quantities, **e.reads}.items():
        found = iomodel.theory.evaluate(expr, point)
        field = "footprint_elements" if name == "footprint" else name
        counts = [cost.reads[name] if name in e.reads else getattr(cost, field) for cost in expected]
        assert list(np.broadcast_to(found, len(lengths))) == counts, name


@given(case=workloads().flatmap(lambda w: st.tuples(st.just(w), st.integers(1, 16), st.integers(1, 16))))
def test_statistics_are_what_lse_adds(case: tuple[iomodel.Attention, int, int]) -> None:
    w, block_q, block_kv = case
    tiles = {"block_q": block_q, "block_kv": block_kv}
    with_lse, without = (iomodel.cost("flash2", w, tiles, lse=lse) for lse in (True, False))
    assert with_lse.hbm_bytes - without.hbm_bytes == 4 * w.batch * w.heads * w.q_len
