"""Every question about a cross-entropy gets the answer of its counting kernel, which computes the losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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
from iomodel.testing import SRAMOverflowError, assert_traffic
from iomodel.testing.machine import Run
from tests.laws.test_declarations import Reference, peaks, refused, sums
from tests.reference import cross_entropy as reference
from tests.support.edits import Edit, edits
from tests.support.numeric_view import NumericView, Point
from tests.support.strategies import fraction_of_examples, one_in

GPU = "h100-sxm5"
TILES = ("block_m", "block_n", "block_k")
ALGORITHMS = ("logits_cross_entropy", "cut_cross_entropy")


@dataclass(frozen=True)
class Case:
    """A call with an algorithm, tiles and options."""

    algorithm: str
    call: iomodel.CrossEntropy
    tiles: dict[str, int]
    options: dict[str, bool] = field(default_factory=dict)

    @property
    def cost(self) -> iomodel.Cost:
        return iomodel.cost(self.algorithm, self.call, self.tiles, **self.options)

    @cached_property
    def inputs(self) -> reference.Inputs:
        return reference.inputs(self.call.rows, self.call.in_features, self.call.vocab_size)

    def run(self, capacity: int | None = None) -> Run:
        if self.algorithm == "cut_cross_entropy":
            return reference.cut(self.inputs, **self.tiles, capacity=capacity)
        switches = {**self.options, "gradients": self.call.gradients}
        return reference.through_logits(self.inputs, **self.tiles, **switches, capacity=capacity)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    call = iomodel.CrossEntropy(
        rows=draw(st.integers(1, 7)),
        in_features=draw(st.integers(1, 6)),
        vocab_size=draw(st.integers(1, 12)),
        dtype=draw(st.sampled_from(["bf16", "fp32"])),
        gradients=draw(st.booleans()),
    )
    tiles = {tile: draw(st.integers(1, 13)) for tile in TILES}
    switches = ("adds_dw", "separate_label")
    if call.gradients or draw(st.booleans()):
        return Case("logits_cross_entropy", call, tiles, {name: draw(st.booleans()) for name in switches})
    return Case("cut_cross_entropy", call, tiles)


RAGGED = iomodel.CrossEntropy(rows=5, in_features=7, vocab_size=11)
GRADIENTS = RAGGED.model_copy(update={"gradients": True})
ODD = {"block_m": 2, "block_n": 3, "block_k": 4}


@given(case=cases())
@example(Case("cut_cross_entropy", RAGGED, ODD))
@example(Case("logits_cross_entropy", GRADIENTS, ODD, {"adds_dw": True, "separate_label": True}))
@example(Case("logits_cross_entropy", GRADIENTS, ODD))
def test_its_cost_is_what_the_kernel_counts(case: Case) -> None:
    ran, cost, size = case.run(), case.cost, case.call.element_size
    lse, loss = reference.naive(case.inputs)
    if case.call.gradients:
        for name, expected in zip(("dX", "dW"), reference.naive_gradients(case.inputs), strict=True):
            np.testing.assert_allclose(ran.outputs[name], expected, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_allclose(ran.LSE, lse, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ran.outputs["loss"], loss, rtol=1e-9, atol=1e-9)
    assert_traffic(cost, ran)
    assert (cost.flops, cost.exps, cost.atomics) == (ran.flops, ran.exps, 0)
    assert (cost.footprint_elements, cost.footprint_bytes) == (ran.sram_peak, ran.sram_bytes(size))
    assert (cost.peak_hbm_elements, cost.peak_hbm_bytes) == (ran.hbm_peak, ran.hbm_peak_bytes(size))


@given(case=cases())
@fraction_of_examples(4)
def test_the_kernel_runs_at_its_footprint_and_not_below(case: Case) -> None:
    peak = case.cost.footprint_elements
    assert case.run(capacity=peak).flops == case.cost.flops
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
    trace = iomodel.trace(case.algorithm, w, None, case.tiles, most_events=10**6, **case.options)
    assert trace.whole.reads == {name: n for name, n in cost.reads.items() if n}
    assert (trace.whole.flops, trace.whole.exps) == (cost.flops, cost.exps)
    assert sum(1 for _ in trace.events) == trace.count


@given(case=cases(), elements=st.integers(1, 150))
@fraction_of_examples(4)
def test_its_tiles_are_those_of_an_exhaustive_search(case: Case, elements: int) -> None:
    w = case.call
    rows, columns = w.rows, w.vocab_size
    if w.gradients:  # the tiles of dX and dW are those of the logits
        rows, columns = max(rows, w.in_features), max(columns, w.in_features)
    every = [
        iomodel.cost(case.algorithm, w, {"block_m": m, "block_n": n, "block_k": 1}, **case.options)
        for m, n in product(range(1, rows + 1), range(1, columns + 1))
    ]
    moved = sorted({cost.hbm_bytes for cost in every if cost.footprint_elements <= elements})
    if not moved:
        with pytest.raises(iomodel.InfeasibleError) as error:
            iomodel.solve(case.algorithm, w, sram_elements=elements, **case.options)
        assert error.value.least == min(cost.footprint_elements for cost in every)
        return
    found = iomodel.solve(case.algorithm, w, sram_elements=elements, **case.options)
    assert found.cost.hbm_bytes == found.certificate.least_hbm_bytes == moved[0]
    many = iomodel.solve_array(case.algorithm, sram_elements=[elements], **w.to_dict(), **case.options)
    assert many.hbm_bytes.tolist() == [moved[0]]


@given(case=cases(), rows=st.lists(st.integers(1, 40), min_size=1, max_size=3))
@fraction_of_examples(4)
def test_its_arrays_and_its_bound_are_those_of_each_call(case: Case, rows: list[int]) -> None:
    found = iomodel.cost_array(case.algorithm, **{**case.call.to_dict(), "rows": rows}, **case.tiles, **case.options)
    for i, count in enumerate(rows):
        one = case.call.model_copy(update={"rows": count})
        assert found[i] == iomodel.cost(case.algorithm, one, case.tiles, **case.options)
    (bound,) = iomodel.lower_bounds(case.call, algorithm=case.algorithm, sram_elements=64).values()
    ran = case.run()
    inputs = sum(array.size for array in case.inputs.values())
    results = [ran.outputs[name] for name in ("loss", "dX", "dW") if name in ran.outputs]
    least = inputs + sum(array.size for array in results)
    assert least <= bound.elements <= least + ran.outputs["loss"].size
    assert bound.bytes <= case.cost.hbm_bytes


@pytest.mark.parametrize("device", [GPU, "b200", "mi300x"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_estimate_is_no_quicker_than_memory_and_products(name: str, device: str) -> None:
    w = iomodel.CrossEntropy(rows=4096, in_features=2304, vocab_size=32000)
    found = iomodel.estimate(name, w, device)
    products = 2 * w.logits * w.in_features
    assert found.seconds >= max(found.compulsory_bytes / found.rates.hbm, products / found.rates.matrix)
    assert found.cost == iomodel.cost(name, w, found.tiles)


def test_cut_losses_need_no_room_for_logits() -> None:
    w = iomodel.CrossEntropy(rows=8192, in_features=2304, vocab_size=256000)
    tiles = dict.fromkeys(TILES, 128)
    stored, cut = (iomodel.cost(name, w, tiles).peak_hbm_bytes for name in ALGORITHMS)
    assert stored - cut == 2 * w.logits - 4 * w.rows  # but for the logits of the labels
    compared = iomodel.compare(w, sram_bytes=200_000)
    assert {solution.algorithm for solution in compared.answers} == set(ALGORITHMS)
    assert compared.best.algorithm == "cut_cross_entropy"


REFUSED: list[tuple[dict[str, Any], str]] = [({"vocab_size": 0}, "^vocab_size: "), ({"dtype": "bf8"}, "^dtype: 'bf8'")]


@pytest.mark.parametrize(("fields", "message"), REFUSED, ids=str)
def test_a_wrong_field_is_an_error_of_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message) as error:
        iomodel.CrossEntropy(**{"rows": 1, "in_features": 2, "vocab_size": 3, **fields})
    assert "\n" not in str(error.value)
    with pytest.raises(iomodel.InputError, match="allowed for cross_entropy: cut_cross_entropy, logits_cross_entropy"):
        iomodel.cost("gemm", RAGGED, ODD)


SHAPES: tuple[dict[str, int], ...] = ({}, {"rows": 8, "in_features": 3, "vocab_size": 4})
SIZES = (
    ODD,
    {"block_m": 8, "block_n": 2, "block_k": 1},
    {"block_m": 1, "block_n": 9, "block_k": 8},
    {"block_m": 9, "block_n": 1, "block_k": 7},
    {"block_m": 1, "block_n": 12, "block_k": 1},
)
ONE_IN = one_in(4, "nightly")


def references(kind: Case) -> Iterator[Reference]:
    """Count by the kernel at a few shapes."""
    for shape, tiles in product(SHAPES, SIZES):
        w = kind.call.model_copy(update=shape)
        case = Case(kind.algorithm, w, tiles, kind.options)
        values = {BY_NAME[name]: Integer(number) for name, number in {**w.numbers, **tiles}.items()}
        ran = case.run()
        counted = {f"{side} {name}": n for side in ("reads", "writes") for name, n in getattr(ran, side).items()}
        counted |= {name: getattr(ran, name) for name in ("atomics", "flops", "exps", "tanhs", "randoms")}
        counted |= {"footprint": ran.sram_peak, "footprint_bytes": ran.sram_bytes(w.element_size)}
        yield Reference(case, NumericView(point=Point(values)), {**counted, "peak_hbm": ran.hbm_peak})  # type: ignore[arg-type]


KINDS = [
    *(Case(name, RAGGED, {}) for name in ALGORITHMS),
    Case("logits_cross_entropy", GRADIENTS, {}),
    Case("logits_cross_entropy", GRADIENTS, {}, {"adds_dw": True, "separate_label": True}),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.algorithm} {kind.call.features} {kind.options}")
def test_every_edit_of_a_declaration_is_seen(kind: Case) -> None:
    nest = declared(algorithm(kind.algorithm), kind_of(kind.call), kind.options)
    kernels = list(references(kind))
    assert not any(kernel.differs(nest, quantities) for quantities in (sums, peaks) for kernel in kernels)

    def seen(edit: Edit) -> bool:
        differ = (kernel.differs(edit.nest, quantities) for quantities in (sums, peaks) for kernel in kernels)
        return refused(edit.nest) or any(differ)

    def shows(edit: Edit) -> bool:
        # The losses of rows need less on chip than any product does, so that no peak tells of the width of a buffer.
        return " in losses" not in edit.step or (
            edit.kind not in ("hoisted", "of another width") and "Hold(" not in edit.step
        )

    some = (edit for edit in filter(shows, edits(nest)) if crc32(str(edit).encode()) % ONE_IN == 0)
    assert [str(edit) for edit in some if not seen(edit)] == []
