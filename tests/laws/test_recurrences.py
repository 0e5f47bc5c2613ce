"""Every question about a recurrence gets the answer of its counting kernel, which computes the recurrence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sympy import Integer, expand, sympify

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting.expressions import declared
from iomodel.counting.kinds import kind_of
from iomodel.nests.symbols import BY_NAME
from iomodel.studies.sweeps.sweep import sweep
from iomodel.testing import SRAMOverflowError
from tests.laws.test_declarations import Reference, peaks, refused, sums
from tests.reference import recurrence as reference
from tests.support.edits import Edit, edits
from tests.support.numeric_view import NumericView, Point
from tests.support.recurrences import ALGORITHMS, GATES, Case, assert_counted, cases
from tests.support.strategies import fraction_of_examples, one_in

GPU = "h100-sxm5"
QWEN3_NEXT = {"heads": 32, "key_heads": 16, "head_dim": 128, "gate": "head", "delta": True, "stateful": True}
RAGGED = iomodel.Recurrence(
    tokens=7, heads=2, key_heads=1, head_dim=3, value_dim=5, gate="channel", delta=True, stateful=True
)


WRITTEN = {"stored_gates": True, "stored_inverse": True}


@given(case=cases())
@example(Case("chunked_scan", RAGGED, {"block_chunk": 3, "block_value": 2}, {"materialize": True}))
@example(Case("chunked_scan", RAGGED, {"block_chunk": 9, "block_value": 6}, {"materialize": False}))
@example(Case("chunked_scan", RAGGED, {"block_chunk": 3, "block_value": 2}, {"materialize": True, **WRITTEN}))
def test_its_cost_is_what_the_kernel_counts(case: Case) -> None:
    ran = assert_counted(case)
    outputs, state = reference.naive(case.inputs)
    np.testing.assert_allclose(ran.O, outputs, rtol=1e-9, atol=1e-9)
    if case.call.stateful:
        np.testing.assert_allclose(ran.outputs["STATE"], state, rtol=1e-9, atol=1e-9)


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
    assert {name: int(expr.xreplace(point)) for name, expr in formulas.writes.items()} == cost.writes
    for name, expr in formulas.quantities.items():
        assert expr.xreplace(point) == getattr(cost, {"footprint": "footprint_elements"}.get(name, name)), name
    trace = iomodel.trace(case.algorithm, w, None, case.tiles, traced_heads="all", **case.options)
    assert (trace.whole.reads, trace.whole.writes) == (cost.reads, cost.writes)
    assert (trace.whole.flops, trace.whole.exps) == (cost.flops, cost.exps)
    assert sum(1 for _ in trace.events) == trace.count


def test_a_trace_follows_the_chunks() -> None:
    w = iomodel.Recurrence(tokens=10, head_dim=3, value_dim=5)
    trace = iomodel.trace("chunked_scan", w, None, {"block_chunk": 4, "block_value": 3})
    stored = [event.where for event in trace.events if event.op == "Store" and event.tensor == "O"]
    assert stored == [f"O[{rows}, {columns}]" for rows in ("0:4", "4:8", "8:10") for columns in ("0:3", "3:5")]
    mamba = iomodel.trace("mamba2", iomodel.Attention(q_len=10, head_dim=4, mask="causal"), None, {"block_q": 4})
    loads = [event.where for event in mamba.events if event.tensor == "X"][:3]
    assert loads == ["X[0:4, 0:4]", "X[4:8, 0:4]", "X[8:10, 0:4]"]


@given(case=cases(), elements=st.integers(1, 300))
@fraction_of_examples(2)
def test_its_tiles_are_those_of_an_exhaustive_search(case: Case, elements: int) -> None:
    w = case.call
    lengths = {"block_value": w.value_dim, "block_chunk": w.tokens}
    grids = [range(1, lengths[name] + 1) for name in case.tiles]
    every = [
        iomodel.cost(case.algorithm, w, dict(zip(case.tiles, sizes, strict=True)), **case.options)
        for sizes in product(*grids)
    ]
    moved = sorted({cost.hbm_bytes for cost in every if cost.footprint_elements <= elements})
    if not moved:
        with pytest.raises(iomodel.InfeasibleError) as error:
            iomodel.solve(case.algorithm, w, sram_elements=elements, **case.options)
        assert error.value.least == min(cost.footprint_elements for cost in every)
        return
    found = iomodel.solve(case.algorithm, w, sram_elements=elements, **case.options)
    assert found.cost.hbm_bytes == found.certificate.least_hbm_bytes == moved[0]
    runner_up = found.certificate.runner_up
    assert [runner_up.hbm_bytes] == moved[1:2] if runner_up is not None else not moved[1:]
    assert found.certificate.lower_bound.bytes <= moved[0]
    many = iomodel.solve_array(case.algorithm, sram_elements=[elements], **w.to_dict(), **case.options)
    assert many.hbm_bytes.tolist() == [moved[0]]
    assert many[0] == found


@given(case=cases())
@fraction_of_examples(4)
def test_its_compulsory_traffic_is_that_of_inputs_and_results(case: Case) -> None:
    ran, w = case.run(), case.call
    (bound,) = iomodel.lower_bounds(w, algorithm=case.algorithm, sram_elements=64).values()
    results = {"O": ran.O, **({"STATE": ran.outputs["STATE"]} if w.stateful else {})}
    moved = {**case.inputs}
    assert bound.elements == sum(data.size for each in (moved, results) for data in each.values())
    assert bound.bytes <= case.cost.hbm_bytes


@given(case=cases(), tokens=st.lists(st.integers(1, 40), min_size=1, max_size=3), heads=st.sampled_from([2, 4]))
@fraction_of_examples(4)
def test_its_arrays_are_the_costs_of_each_call(case: Case, tokens: list[int], heads: int) -> None:
    widths = np.array([[3], [5]])
    fields = {**case.call.to_dict(), "tokens": tokens, "heads": heads, "head_dim": widths}
    del fields["value_dim"], fields["key_heads"]  # as wide as keys, as many as heads
    found = iomodel.cost_array(case.algorithm, **fields, **case.tiles, **case.options)
    for i, j in np.ndindex(found.shape):
        one = iomodel.Recurrence(**{**fields, "tokens": tokens[j], "head_dim": int(widths[i, 0])})
        cost = iomodel.cost(case.algorithm, one, case.tiles, **case.options)
        assert found[i, j] == cost
        assert {name: values[i, j] for name, values in found.reads.items()} == cost.reads
        assert (found.hbm_bytes[i, j], found.flops[i, j]) == (cost.hbm_bytes, cost.flops)


def test_a_sweep_and_a_comparison_have_the_answers_of_each_call() -> None:
    pytest.importorskip("xarray")
    sizes = {"tokens": [64, 100], "gate": ["head", "channel"], "materialize": [True, False]}
    tiles = {"block_chunk": 16, "block_value": 8}
    found = sweep("chunked_scan", **sizes, head_dim=16, heads=4, **tiles)
    for tokens, gate, materialize in product(*sizes.values()):
        w = iomodel.Recurrence(tokens=tokens, heads=4, head_dim=16, gate=gate)
        moved = iomodel.cost("chunked_scan", w, tiles, materialize=materialize).hbm_bytes
        assert found.hbm_bytes.sel(tokens=tokens, gate=gate, materialize=materialize) == moved
    w = iomodel.Recurrence(tokens=100, head_dim=16)
    compared = iomodel.compare(w, sram_bytes=20_000)
    assert {solution.algorithm for solution in compared.answers} == set(ALGORITHMS)
    assert compared.best == min(
        (iomodel.solve(name, w, sram_bytes=20_000) for name in ALGORITHMS), key=lambda s: s.cost.hbm_bytes
    )


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("device", [GPU, "b200", "mi300x"])
def test_an_estimate_is_no_quicker_than_the_memory(name: str, device: str) -> None:
    w = iomodel.Recurrence(tokens=300, **QWEN3_NEXT)
    found = iomodel.estimate(name, w, device)
    assert found.seconds * found.rates.hbm >= found.compulsory_bytes
    assert found.cost == iomodel.cost(name, w, found.tiles)
    again = iomodel.estimate(name, w, device, found.tiles)
    assert again == found
    others = ({**found.tiles, tile: 16} for tile in found.tiles)
    assert all(iomodel.estimate(name, w, device, tiles).seconds >= found.seconds for tiles in others)


def test_a_decode_step_takes_as_long_as_its_state_is_moved() -> None:
    w = iomodel.Recurrence(batch=256, tokens=1, **QWEN3_NEXT)
    step = iomodel.estimate("stepwise_scan", w, GPU)
    assert step.limited_by == "hbm"
    assert 0.98 < 2 * 4 * w.state_elements / step.compulsory_bytes < 1
    assert step.cost.flops == 6 * w.state_elements


def test_the_products_are_those_of_the_papers() -> None:
    letters = {"d": BY_NAME["head_dim"], "d_v": BY_NAME["value_dim"]}
    # Whole chunks of c: K K^T, Q K^T, T K in d; T V, S V in d_v; three with the state; the inverse row by row.
    chunk = iomodel.expressions("chunked_scan", delta=True, head_decay=True).subs(
        batch=1, heads=1, key_heads=1, tokens=64, block_chunk=64
    )
    assert expand(chunk.flops - sympify("2*64**2*(3*d + 2*d_v) + 6*64*d*d_v + 2*64**3", letters)) == 0
    plain = iomodel.expressions("chunked_scan").subs(batch=1, heads=1, key_heads=1, tokens=64, block_chunk=64)
    assert expand(plain.flops - sympify("2*64**2*(d + d_v) + 4*64*d*d_v", letters)) == 0
    step = iomodel.expressions("stepwise_scan", delta=True).subs(batch=1, heads=1, key_heads=1, tokens=1)
    assert expand(step.flops - sympify("6*d*d_v", letters)) == 0


def test_one_chunk_of_one_position_is_a_step() -> None:
    w = iomodel.Recurrence(tokens=5, head_dim=3, value_dim=4, gate="head", stateful=True)
    step, chunks = (
        iomodel.cost("stepwise_scan", w, {"block_value": 2}),
        iomodel.cost("chunked_scan", w, {"block_value": 2, "block_chunk": 1}, materialize=False),
    )
    assert chunks.reads == step.reads
    assert chunks.writes == step.writes


REFUSED = [
    ({"key_heads": 3}, r"^key_heads: 3 given; allowed: a divisor of heads = 4$"),
    ({"gate": "heads"}, r"^gate: 'heads' is unknown; did you mean 'head'\?"),
    ({"tokens": 0}, "^tokens: "),
    ({"delta": 1}, "^delta: "),
    ({"mask": "causal"}, "^mask: "),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED, ids=str)
def test_a_wrong_field_is_an_error_of_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message) as error:
        iomodel.Recurrence(**{"tokens": 8, "heads": 4, "head_dim": 4, **fields})
    assert "\n" not in str(error.value)


def test_wrong_calls_are_errors_of_one_line() -> None:
    w = iomodel.Recurrence(tokens=8, heads=4, head_dim=4)
    with pytest.raises(iomodel.InputError, match="allowed for recurrence: chunked_scan, stepwise_scan"):
        iomodel.cost("flash2", w, {"block_q": 2, "block_kv": 2})
    with pytest.raises(iomodel.InputError, match="allowed for attention: "):
        iomodel.cost("chunked_scan", iomodel.Attention(q_len=8, head_dim=4), {"block_chunk": 2, "block_value": 2})
    with pytest.raises(iomodel.InputError, match="head_decay: given with constant_decay; allowed: one of the two"):
        iomodel.expressions("chunked_scan", constant_decay=True, head_decay=True)
    with pytest.raises(iomodel.InputError, match=r"key_heads: 3 given, at index \(1,\); allowed: a divisor of heads"):
        iomodel.cost_array("stepwise_scan", tokens=8, heads=4, key_heads=[2, 3], head_dim=4, block_value=1)
    with pytest.raises(iomodel.InputError, match="allowed: none, with a recurrence workload"):
        iomodel.estimate("chunked_scan", w, GPU, implementation="triton")
    for name, allowed in (("stored_gates", "a gate per position"), ("stored_inverse", "with the delta rule")):
        with pytest.raises(iomodel.InputError, match=f"^{name}: True given; allowed: {allowed}$"):
            iomodel.cost(
                "chunked_scan",
                w.model_copy(update={"gate": "constant", "delta": False}),
                {"block_chunk": 2, "block_value": 2},
                **{name: True},
            )
    with pytest.raises(iomodel.UnknownNameError, match="'block_q' is unknown"):
        iomodel.cost("stepwise_scan", w, {"block_value": 2, "block_q": 4})


KINDS = [
    Case(name, RAGGED.model_copy(update={"gate": gate, "delta": delta, "stateful": stateful}), {}, options)
    for name, gate, delta, stateful in product(ALGORITHMS, GATES, (False, True), (False, True))
    for options in ([{"materialize": True}, {"materialize": False}] if name == "chunked_scan" else [{}])
] + [Case("chunked_scan", RAGGED.model_copy(update={"gate": gate}), {}, {"materialize": True, **WRITTEN})
     for gate in ("head", "channel")]  # fmt: skip
# With chunks of one position the state is the most of what is on chip.
TILES = (
    {"block_chunk": 1, "block_value": 5},
    {"block_chunk": 3, "block_value": 2},
    {"block_chunk": 8, "block_value": 2},
    {"block_chunk": 2, "block_value": 5},
)
SHAPES: tuple[dict[str, int], ...] = ({}, {"batch": 2, "tokens": 5, "head_dim": 4, "value_dim": 4, "key_heads": 2})
SAME = "hoisted: Store(STATES) in states > Loop(value) > Cut(2)"
"""Outside the pieces the axis of the chunks is whole, so that one store of all states has as many elements."""
ONE_IN = one_in(8, "nightly")


def references(kind: Case) -> Iterator[Reference]:
    """Count by the kernel at a few shapes of a kind."""
    for shape, tiles in product(SHAPES, TILES):
        w = kind.call.model_copy(update=shape)
        own = tiles if kind.algorithm == "chunked_scan" else {"block_value": tiles["block_value"]}
        case = Case(kind.algorithm, w, own, kind.options)
        values = {BY_NAME[name]: Integer(number) for name, number in {**w.numbers, **own}.items()}
        ran = case.run()
        counted = {f"{side} {name}": n for side in ("reads", "writes") for name, n in getattr(ran, side).items()}
        counted |= {name: getattr(ran, name) for name in ("atomics", "flops", "exps", "tanhs", "randoms")}
        counted |= {"footprint": ran.sram_peak, "footprint_bytes": ran.sram_bytes(w.element_size)}
        yield Reference(case, NumericView(point=Point(values)), {**counted, "peak_hbm": ran.hbm_peak})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.algorithm} {kind.call.features} {kind.options}")
def test_every_edit_of_a_declaration_is_seen(kind: Case) -> None:
    nest = declared(algorithm(kind.algorithm), kind_of(kind.call), kind.options)
    kernels = list(references(kind))
    assert not any(kernel.differs(nest, quantities) for quantities in (sums, peaks) for kernel in kernels)

    def seen(edit: Edit) -> bool:
        differ = (kernel.differs(edit.nest, quantities) for quantities in (sums, peaks) for kernel in kernels)
        return refused(edit.nest) or any(differ)

    some = (edit for edit in edits(nest) if str(edit) != SAME and crc32(str(edit).encode()) % ONE_IN == 0)
    assert [str(edit) for edit in some if not seen(edit)] == []
