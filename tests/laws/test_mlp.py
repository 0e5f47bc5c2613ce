"""Every question about a two-layer MLP gets the answer of its counting kernel, which computes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sympy import Integer

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting.expressions import declared
from iomodel.counting.kinds import kind_of
from iomodel.nests.symbols import BY_NAME
from iomodel.studies.sweeps.sweep import sweep
from iomodel.testing import SRAMOverflowError
from iomodel.testing.machine import Run
from iomodel.workloads.linear import WEIGHT_QUARTERS
from tests.laws.test_declarations import Reference, peaks, refused, sums
from tests.reference import mlp as reference
from tests.support.edits import Edit, edits
from tests.support.numeric_view import NumericView, Point
from tests.support.strategies import fraction_of_examples, one_in

GPU = "h100-sxm5"
TILES = ("block_m", "block_n", "block_k")


@dataclass(frozen=True)
class Case:
    """A call with an algorithm, tiles and options."""

    algorithm: str
    call: iomodel.MLP
    tiles: dict[str, int]
    options: dict[str, bool]

    @property
    def cost(self) -> iomodel.Cost:
        return iomodel.cost(self.algorithm, self.call, self.tiles, **self.options)

    @cached_property
    def loads(self) -> list[int]:
        return [self.call.rows] * self.call.groups

    @cached_property
    def inputs(self) -> reference.Inputs:
        w = self.call
        return reference.inputs(w.groups, w.in_features, w.hidden_features, self.loads, w.gated)

    def run(self, capacity: int | None = None) -> Run:
        kernel: Any = {"split_mlp": reference.split, "fused_mlp": reference.fused}[self.algorithm]
        ran: Run = kernel(self.inputs, self.loads, **self.tiles, **self.options, capacity=capacity)
        return ran


@st.composite
def cases(draw: st.DrawFn) -> Case:
    call = iomodel.MLP(
        rows=draw(st.integers(1, 6)),
        in_features=draw(st.integers(1, 6)),
        hidden_features=draw(st.integers(1, 7)),
        groups=draw(st.integers(1, 3)),
        dtype=draw(st.sampled_from(["bf16", "fp32"])),
        weight_dtype=draw(st.sampled_from(["bf16", "fp8", "int4", "mxfp4"])),
        gated=draw(st.booleans()),
    )
    name = draw(st.sampled_from(["split_mlp", "fused_mlp"]))
    switches = ["resident"] if name == "fused_mlp" else ["separate_activation", "wrapped_columns"]
    options = {switch: draw(st.booleans()) for switch in switches}
    return Case(name, call, {tile: draw(st.integers(1, 8)) for tile in TILES}, options)


RAGGED = iomodel.MLP(rows=5, in_features=7, hidden_features=4, groups=2, weight_dtype="nvfp4")
ODD = {"block_m": 2, "block_n": 3, "block_k": 4}


@given(case=cases())
@example(Case("split_mlp", RAGGED, ODD, {}))
@example(Case("split_mlp", RAGGED, ODD, {"separate_activation": True, "wrapped_columns": True}))
@example(Case("split_mlp", RAGGED, ODD, {"separate_activation": False, "wrapped_columns": True}))
@example(Case("fused_mlp", RAGGED, ODD, {"resident": False}))
@example(Case("fused_mlp", RAGGED, ODD, {"resident": True}))
def test_its_cost_is_what_the_kernel_counts(case: Case) -> None:
    ran, cost, w = case.run(), case.cost, case.call
    np.testing.assert_allclose(ran.outputs["Y"], reference.naive(case.inputs, case.loads), rtol=1e-9, atol=1e-9)
    assert {name: n for name, n in cost.reads.items() if n} == +ran.reads
    assert {name: n for name, n in cost.writes.items() if n} == +ran.writes
    assert (cost.flops, cost.exps, cost.atomics) == (ran.flops, ran.exps, ran.atomics)
    assert (cost.footprint_elements, cost.peak_hbm_elements) == (ran.sram_peak, ran.hbm_peak)
    quarters = {"io": 32 * w.element_size, "kv": WEIGHT_QUARTERS[w.weight_dtype], "fp32": 128}
    moved = sum(n * quarters[ran.widths[name]] for name, n in (ran.reads + ran.writes).items())
    assert cost.hbm_bytes == -(-moved // 32)


@given(case=cases(), unequal=st.booleans())
@example(case=Case("split_mlp", RAGGED, ODD, {}), unequal=True)
def test_its_gradients_cost_what_the_kernel_counts(case: Case, unequal: bool) -> None:
    w, loads = case.call, case.loads
    if unequal:
        loads = [1 + (rows + i) % 5 for i, rows in enumerate(loads)]
    data = reference.inputs(len(loads), w.in_features, w.hidden_features, loads, w.gated)
    dy = np.random.default_rng(1).standard_normal(data["X"].shape)
    ran = reference.backward(data, loads, dy, **case.tiles)
    for name, expected in reference.naive_backward(data, loads, dy).items():
        np.testing.assert_allclose(ran.outputs[name], expected, rtol=1e-9, atol=1e-9)
    call: Any = experts_of(w, loads) if unequal else w
    call = call.model_copy(update={"direction": "backward"})
    cost = iomodel.cost("split_mlp", call, case.tiles)
    assert {name: n for name, n in cost.reads.items() if n} == +ran.reads
    assert {name: n for name, n in cost.writes.items() if n} == +ran.writes
    assert (cost.flops, cost.exps, cost.atomics) == (ran.flops, ran.exps, ran.atomics)
    assert cost.flops == call.flops
    assert (cost.footprint_elements, cost.peak_hbm_elements) == (ran.sram_peak, ran.hbm_peak)
    forward = iomodel.cost(
        "split_mlp", call.model_copy(update={"direction": "forward"}), case.tiles, separate_activation=True
    )
    both = iomodel.cost("split_mlp", call.model_copy(update={"direction": "both"}), case.tiles)
    assert both.flops == forward.flops + cost.flops
    assert both.hbm_reads == forward.hbm_reads + cost.hbm_reads
    with pytest.raises(iomodel.InputError, match=r"^direction: 'backward' given; allowed: forward"):
        iomodel.cost("fused_mlp", call, case.tiles)


@given(case=cases())
@fraction_of_examples(4)
def test_the_kernel_runs_at_its_footprint_and_not_below(case: Case) -> None:
    peak = case.cost.footprint_elements
    assert case.run(capacity=peak).flops == case.cost.flops == case.call.flops
    with pytest.raises(SRAMOverflowError):
        case.run(capacity=peak - 1)


@given(case=cases())
@fraction_of_examples(2)
def test_its_formulas_and_its_trace_have_the_values_of_the_cost(case: Case) -> None:
    w, cost = case.call, case.cost
    formulas = iomodel.expressions(case.algorithm, **case.options, **dict.fromkeys(w.features, True))
    point = {BY_NAME[name]: Integer(number) for name, number in {**w.numbers, **case.tiles}.items()}
    assert {name: int(expr.xreplace(point)) for name, expr in formulas.reads.items()} == cost.reads
    for name, expr in formulas.quantities.items():
        assert expr.xreplace(point) == getattr(cost, {"footprint": "footprint_elements"}.get(name, name)), name
    if WEIGHT_QUARTERS[w.weight_dtype] % 32:
        return  # a trace has whole bytes
    trace = iomodel.trace(case.algorithm, w, None, case.tiles, most_events=10**6, **case.options)
    assert trace.whole.reads == {name: n for name, n in cost.reads.items() if n}
    assert (trace.whole.flops, trace.whole.exps) == (cost.flops, cost.exps)
    assert sum(1 for _ in trace.events) == trace.count


@given(loads=st.lists(st.integers(1, 7), min_size=1, max_size=5), case=cases())
@fraction_of_examples(2)
def test_experts_of_unequal_loads_are_the_sum_over_their_loads(loads: list[int], case: Case) -> None:
    w = case.call
    data = reference.inputs(len(loads), w.in_features, w.hidden_features, loads, w.gated)
    kernel: Any = {"split_mlp": reference.split, "fused_mlp": reference.fused}[case.algorithm]
    ran = kernel(data, loads, **case.tiles, **case.options)
    np.testing.assert_allclose(ran.outputs["Y"], reference.naive(data, loads), rtol=1e-9, atol=1e-9)
    experts = experts_of(w, loads)
    cost = iomodel.cost(case.algorithm, experts, case.tiles, **case.options)
    assert {name: n for name, n in cost.reads.items() if n} == +ran.reads
    assert {name: n for name, n in cost.writes.items() if n} == +ran.writes
    assert (cost.flops, cost.exps, cost.atomics) == (ran.flops, ran.exps, ran.atomics)
    assert (cost.footprint_elements, cost.peak_hbm_elements) == (ran.sram_peak, ran.hbm_peak)
    assert cost.flops == experts.flops
    (bound,) = iomodel.lower_bounds(experts, algorithm=case.algorithm, sram_elements=64).values()
    assert bound.elements == sum(array.size for array in (*data.values(), ran.outputs["Y"]))
    calls = [w.model_copy(update={"rows": rows, "groups": times}) for rows, times in Counter(loads).items()]
    parts = [iomodel.cost(case.algorithm, call, case.tiles, **case.options) for call in calls]
    assert cost.hbm_bytes == sum(part.hbm_bytes for part in parts)


def experts_of(w: iomodel.MLP, loads: list[int]) -> iomodel.Experts:
    fields = {name: getattr(w, name) for name in ("in_features", "hidden_features", "dtype", "weight_dtype", "gated")}
    return iomodel.Experts(loads=loads, **fields)


@given(loads=st.lists(st.integers(1, 6), min_size=1, max_size=3), case=cases(), elements=st.integers(1, 120))
@fraction_of_examples(4)
def test_tiles_of_experts_are_those_of_an_exhaustive_search(loads: list[int], case: Case, elements: int) -> None:
    experts = experts_of(case.call, loads)
    longest = max(experts.in_features, experts.hidden_features * (1 + experts.gated))
    every = [
        iomodel.cost(case.algorithm, experts, {"block_m": m, "block_n": n, "block_k": 1}, **case.options)
        for m, n in product(range(1, max(loads) + 1), range(1, longest + 1))
    ]
    moved = [cost.hbm_bytes for cost in every if cost.footprint_elements <= elements]
    if not moved:
        with pytest.raises(iomodel.InfeasibleError):
            iomodel.solve(case.algorithm, experts, sram_elements=elements, **case.options)
        return
    found = iomodel.solve(case.algorithm, experts, sram_elements=elements, **case.options)
    assert found.cost.hbm_bytes == found.certificate.least_hbm_bytes == min(moved)


def test_an_estimate_of_experts_lies_between_those_of_even_loads() -> None:
    sizes = {"in_features": 2048, "hidden_features": 768, "weight_dtype": "fp8"}
    times = [
        iomodel.estimate("split_mlp", iomodel.Experts(loads=loads, **sizes), GPU).seconds
        for loads in ([16] * 32, [16] * 16 + [256] * 16, [256] * 32)
    ]
    assert times == sorted(times)
    alike = iomodel.estimate("split_mlp", iomodel.MLP(rows=16, groups=32, **sizes), GPU)
    assert alike.seconds == times[0]


@given(case=cases(), elements=st.integers(1, 120))
@fraction_of_examples(4)
def test_its_tiles_are_those_of_an_exhaustive_search(case: Case, elements: int) -> None:
    w = case.call
    longest = max(w.in_features, w.hidden_features * (1 + w.gated))
    sizes = product(range(1, w.rows + 1), range(1, longest + 1))  # no smaller slice moves more, and none less
    every = [
        iomodel.cost(case.algorithm, w, {"block_m": m, "block_n": n, "block_k": 1}, **case.options) for m, n in sizes
    ]
    moved = sorted({cost.hbm_bytes for cost in every if cost.footprint_elements <= elements})
    if not moved:
        with pytest.raises(iomodel.InfeasibleError) as error:
            iomodel.solve(case.algorithm, w, sram_elements=elements, **case.options)
        assert error.value.least == min(cost.footprint_elements for cost in every)
        return
    found = iomodel.solve(case.algorithm, w, sram_elements=elements, **case.options)
    assert found.cost.hbm_bytes == found.certificate.least_hbm_bytes == moved[0]
    assert found.certificate.lower_bound.bytes <= moved[0]
    many = iomodel.solve_array(case.algorithm, sram_elements=[elements], **w.to_dict(), **case.options)
    assert many.hbm_bytes.tolist() == [moved[0]]


@given(case=cases(), elements=st.integers(1, 120), direction=st.sampled_from(["backward", "both"]))
@fraction_of_examples(8)
def test_tiles_of_gradients_are_those_of_an_exhaustive_search(case: Case, elements: int, direction: str) -> None:
    w = case.call.model_copy(update={"direction": direction})
    longest = max(w.in_features, w.hidden_features * (1 + w.gated))
    sizes = product(range(1, max(w.rows, longest) + 1), range(1, longest + 1))
    every = [iomodel.cost("split_mlp", w, {"block_m": m, "block_n": n, "block_k": 1}) for m, n in sizes]
    moved = [cost.hbm_bytes for cost in every if cost.footprint_elements <= elements]
    if not moved:
        with pytest.raises(iomodel.InfeasibleError):
            iomodel.solve("split_mlp", w, sram_elements=elements)
        return
    assert iomodel.solve("split_mlp", w, sram_elements=elements).cost.hbm_bytes == min(moved)
    many = iomodel.solve_array("split_mlp", sram_elements=[elements], **w.to_dict())
    assert many.hbm_bytes.tolist() == [min(moved)]


@given(case=cases(), rows=st.lists(st.integers(1, 40), min_size=1, max_size=3))
@fraction_of_examples(4)
def test_its_arrays_and_its_bound_are_those_of_each_call(case: Case, rows: list[int]) -> None:
    fields = {**case.call.to_dict(), "rows": rows}
    found = iomodel.cost_array(case.algorithm, **fields, **case.tiles, **case.options)
    for i, count in enumerate(rows):
        one = case.call.model_copy(update={"rows": count})
        assert found[i] == iomodel.cost(case.algorithm, one, case.tiles, **case.options)
    (bound,) = iomodel.lower_bounds(case.call, algorithm=case.algorithm, sram_elements=64).values()
    w = case.call
    assert bound.elements == w.parameters + 2 * w.groups * w.rows * w.in_features
    assert bound.bytes <= case.cost.hbm_bytes


@pytest.mark.parametrize("device", [GPU, "b200", "mi300x"])
@pytest.mark.parametrize("name", ["split_mlp", "fused_mlp"])
def test_an_estimate_is_no_quicker_than_memory_and_products(name: str, device: str) -> None:
    for rows in (1, 64, 2048):
        w = iomodel.MLP(rows=rows, in_features=2048, hidden_features=5632)
        found = iomodel.estimate(name, w, device)
        assert found.seconds >= max(found.compulsory_bytes / found.rates.hbm, w.flops / found.rates.matrix)
        assert found.cost == iomodel.cost(name, w, found.tiles)


def test_a_comparison_and_a_sweep_have_the_answers_of_each_call() -> None:
    pytest.importorskip("xarray")
    w = iomodel.MLP(rows=64, in_features=128, hidden_features=256)
    compared = iomodel.compare(w, sram_bytes=20_000)
    names = iomodel.list_algorithms(w)
    assert {solution.algorithm for solution in compared.answers} == set(names) == {"split_mlp", "fused_mlp"}
    found = sweep("fused_mlp", rows=[3, 64], resident=[True, False], in_features=128, hidden_features=256, **ODD)
    for rows, resident in product([3, 64], [True, False]):
        cost = iomodel.cost("fused_mlp", w.model_copy(update={"rows": rows}), ODD, resident=resident)
        assert found.hbm_bytes.sel(rows=rows, resident=resident) == cost.hbm_bytes


def test_wrong_calls_are_errors_of_one_line() -> None:
    with pytest.raises(iomodel.InputError, match=r"^hidden_features: "):
        iomodel.MLP(rows=1, in_features=2, hidden_features=0)
    with pytest.raises(iomodel.InputError, match=r"^weight_dtype: 'fp4' is unknown; did you mean"):
        iomodel.MLP(rows=1, in_features=2, hidden_features=2, weight_dtype="fp4")
    with pytest.raises(iomodel.InputError, match=r"^loads: length 0 given"):
        iomodel.Experts(loads=[1, 0], in_features=2, hidden_features=2)
    experts = iomodel.Experts(loads=[1, 2], in_features=2, hidden_features=2)
    with pytest.raises(iomodel.InputError, match=r"allowed: one of a single shape"):
        iomodel.trace("split_mlp", experts, None, ODD)
    w = iomodel.MLP(rows=1, in_features=2, hidden_features=2)
    with pytest.raises(iomodel.InputError, match="allowed for mlp: fused_mlp, split_mlp"):
        iomodel.cost("gemm", w, ODD)
    with pytest.raises(iomodel.UnknownNameError, match="'residents' is unknown"):
        iomodel.cost("fused_mlp", w, ODD, residents=True)


KINDS = [
    Case(name, RAGGED.model_copy(update={"gated": gated, "weight_dtype": "fp8"}), {}, options)
    for name, gated in product(("split_mlp", "fused_mlp"), (False, True))
    for options in (
        [{"resident": False}, {"resident": True}] if name == "fused_mlp" else [{}, {"separate_activation": True}]
    )
]
SHAPES: tuple[dict[str, int], ...] = ({}, {"rows": 9, "in_features": 3, "hidden_features": 8})
SIZES = (
    ODD,
    {"block_m": 6, "block_n": 2, "block_k": 1},
    {"block_m": 1, "block_n": 9, "block_k": 8},
    dict.fromkeys(TILES, 1),
)
ONE_IN = one_in(8, "nightly")


def references(kind: Case) -> Iterator[Reference]:
    """Count by the kernel at a few shapes of a kind."""
    for shape, tiles in product(SHAPES, SIZES):
        w = kind.call.model_copy(update=shape)
        case = Case(kind.algorithm, w, tiles, kind.options)
        values = {BY_NAME[name]: Integer(number) for name, number in {**w.numbers, **tiles}.items()}
        ran = case.run()
        counted = {f"{side} {name}": n for side in ("reads", "writes") for name, n in getattr(ran, side).items()}
        counted |= {name: getattr(ran, name) for name in ("atomics", "flops", "exps", "tanhs", "randoms")}
        counted |= {"footprint": ran.sram_peak, "footprint_bytes": ran.sram_bytes(w.element_size, 1)}
        yield Reference(case, NumericView(point=Point(values)), {**counted, "peak_hbm": ran.hbm_peak})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.algorithm} {kind.call.features} {kind.options}")
def test_every_edit_of_a_declaration_is_seen(kind: Case) -> None:
    nest = declared(algorithm(kind.algorithm), kind_of(kind.call), kind.options)
    kernels = list(references(kind))
    assert not any(kernel.differs(nest, quantities) for quantities in (sums, peaks) for kernel in kernels)

    def seen(edit: Edit) -> bool:
        differ = (kernel.differs(edit.nest, quantities) for quantities in (sums, peaks) for kernel in kernels)
        return refused(edit.nest) or any(differ)

    some = (edit for edit in edits(nest) if crc32(str(edit).encode()) % ONE_IN == 0)
    assert [str(edit) for edit in some if not seen(edit)] == []
