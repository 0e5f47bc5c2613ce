"""An algorithm declared outside the package: every answer against a kernel that counts, written from the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.testing import assert_traffic, tiles
from tests.reference import delta_rule as kernel
from tests.support.delta_rule import DELTA_RULE
from tests.support.strategies import fraction_of_examples


@dataclass(frozen=True)
class Case:
    """A call with its options and the width of a tile."""

    call: iomodel.Attention
    options: dict[str, Any]
    block_v: int

    @property
    def cost(self) -> iomodel.Cost:
        return iomodel.cost(DELTA_RULE, self.call, {"block_v": self.block_v}, **self.options)

    def run(self, **more: Any) -> Any:
        return kernel.run(self.inputs, block_v=self.block_v, chunk=self.options["chunk_size"], carry=self.carry, **more)

    @property
    def carry(self) -> bool:
        return bool(self.options["carry"])

    @property
    def inputs(self) -> kernel.Inputs:
        w = self.call
        return kernel.inputs(np.random.default_rng(0), w.batch, w.heads, w.kv_heads, w.q_len, w.head_dim, w.value_dim)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    chunk, kv_heads = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    call = iomodel.Attention(
        batch=draw(st.integers(1, 2)),
        heads=kv_heads * draw(st.integers(1, 2)),
        kv_heads=kv_heads,
        q_len=chunk * draw(st.integers(1, 4)),
        head_dim=draw(st.integers(1, 4)),
        value_dim=draw(st.integers(1, 5)),
        dtype=draw(st.sampled_from(["bf16", "fp32"])),
        mask="causal",
    )
    return Case(call, {"chunk_size": chunk, "carry": draw(st.booleans())}, draw(st.integers(1, 7)))


@given(case=cases())
@fraction_of_examples(2)
def test_the_kernel_computes_the_recurrence(case: Case) -> None:
    ran = case.run()
    outputs, state = kernel.naive(case.inputs, case.carry)
    np.testing.assert_allclose(ran.O, outputs, rtol=1e-9, atol=1e-9)
    if case.carry:
        np.testing.assert_allclose(ran.outputs["state"], state, rtol=1e-9, atol=1e-9)


@given(case=cases())
@fraction_of_examples(2)
def test_its_cost_is_what_the_kernel_counts(case: Case) -> None:
    ran, cost = case.run(), case.cost
    assert_traffic(cost, ran)
    assert (cost.flops, cost.exps, cost.atomics) == (ran.flops, 0, 0)
    assert cost.footprint_elements == ran.sram_peak
    assert cost.footprint_bytes == ran.sram_bytes(case.call.element_size)
    assert cost.peak_hbm_elements == ran.hbm_peak


@given(case=cases())
@fraction_of_examples(4)
def test_the_kernel_runs_at_its_footprint_and_not_below(case: Case) -> None:
    peak = case.cost.footprint_elements
    assert case.run(capacity=peak).flops == case.cost.flops
    with pytest.raises(iomodel.testing.SRAMOverflowError):
        case.run(capacity=peak - 1)


@given(case=cases())
@fraction_of_examples(4)
def test_its_expressions_have_the_value_of_the_cost(case: Case) -> None:
    found = iomodel.expressions(DELTA_RULE, mask="causal", carry=case.carry)
    point = {**case.call.numbers, "chunk_size": case.options["chunk_size"], "block_v": case.block_v}
    values = found.subs({name: number for name, number in point.items() if name in iomodel.nests.symbols.BY_NAME})
    assert int(values.hbm_bytes) == case.cost.hbm_bytes
    assert {name: int(count) for name, count in values.reads.items()} == dict(case.cost.reads)
    assert "L_c  positions of a chunk of the delta rule [positions]" in str(found)


@given(case=cases(), elements=st.integers(1, 200))
@fraction_of_examples(4)
def test_its_tiles_are_those_of_an_exhaustive_search(case: Case, elements: int) -> None:
    every = {
        width: iomodel.cost(DELTA_RULE, case.call, {"block_v": width}, **case.options)
        for width in range(1, case.call.value_dim + 1)
    }
    fitting = {width: cost.hbm_bytes for width, cost in every.items() if cost.footprint_elements <= elements}
    if not fitting:
        with pytest.raises(iomodel.InfeasibleError) as error:
            iomodel.solve(DELTA_RULE, case.call, sram_elements=elements, **case.options)
        assert error.value.least == min(cost.footprint_elements for cost in every.values())
        return
    found = iomodel.solve(DELTA_RULE, case.call, sram_elements=elements, **case.options)
    assert found.cost.hbm_bytes == found.certificate.least_hbm_bytes == min(fitting.values())
    assert fitting[found.tiles["block_v"]] == min(fitting.values())
    more = sorted({moved for moved in fitting.values() if moved > min(fitting.values())})
    assert [found.certificate.runner_up.hbm_bytes] == more[:1] if more else found.certificate.runner_up is None
    many = iomodel.solve_array(
        DELTA_RULE, sram_elements=elements, **case.call.model_dump(include={"q_len", "head_dim", "value_dim", "heads",
        "kv_heads", "batch", "dtype", "mask"}), **case.options
    )  # fmt: skip
    assert (many.hbm_bytes, many.tiles["block_v"]) == (found.cost.hbm_bytes, found.tiles["block_v"])


@given(case=cases())
@fraction_of_examples(4)
def test_no_kernel_moves_less_than_its_lower_bound(case: Case) -> None:
    (bound,) = iomodel.lower_bounds(case.call, algorithm=DELTA_RULE, sram_elements=64).values()
    assert (bound.name, bound.elements) == ("compulsory", case.run().writes["O"])
    assert bound.bytes <= case.cost.hbm_bytes


@given(case=cases())
@fraction_of_examples(4)
def test_its_trace_adds_up_to_what_the_kernel_counts(case: Case) -> None:
    trace = iomodel.trace(DELTA_RULE, case.call, None, {"block_v": case.block_v}, traced_heads="all", **case.options)
    ran = case.run()
    assert (trace.whole.reads, trace.whole.writes) == (ran.reads, ran.writes)
    assert trace.whole.flops == ran.flops
    assert sum(1 for _ in trace.events) == trace.count


@given(case=cases())
@fraction_of_examples(4)
def test_its_arrays_are_what_the_kernel_counts(case: Case) -> None:
    w, chunk = case.call, case.options["chunk_size"]
    found = iomodel.cost_array(
        DELTA_RULE, q_len=[chunk, w.q_len], head_dim=w.head_dim, value_dim=w.value_dim, heads=w.heads,
        kv_heads=w.kv_heads, batch=w.batch, dtype=w.dtype, mask="causal", block_v=[[case.block_v], [1]], **case.options
    )  # fmt: skip
    assert found.shape == (2, 2)
    assert found.hbm_bytes[0, 1] == case.run().hbm_bytes(w.element_size)
    assert found.flops[0, 1] == case.run().flops
    assert found[1, 0].hbm_bytes == found.hbm_bytes[1, 0]


@given(data=st.data(), case=cases())
@fraction_of_examples(8)
def test_the_strategies_draw_its_tiles(data: st.DataObject, case: Case) -> None:
    drawn = data.draw(tiles(DELTA_RULE, case.call, options=case.options))
    assert drawn.keys() == {"block_v"}
    assert iomodel.cost(DELTA_RULE, case.call, drawn, **case.options).flops > 0


def test_its_requirements_are_errors_of_one_line() -> None:
    call = iomodel.Attention(q_len=6, head_dim=2, mask="causal")
    with pytest.raises(iomodel.InputError, match=r"^chunk_size: 4 given; allowed: a divisor of q_len = 6$"):
        iomodel.cost(DELTA_RULE, call, {"block_v": 2}, chunk_size=4)
    with pytest.raises(iomodel.UnknownNameError, match=r"tile of delta_rule: 'block_q' is unknown; .*allowed: block_v"):
        iomodel.cost(DELTA_RULE, call, {"block_q": 2}, chunk_size=3)
    with pytest.raises(iomodel.InputError, match="mask: 'full' given; allowed: 'causal', because delta_rule"):
        iomodel.cost(DELTA_RULE, iomodel.Attention(q_len=6, head_dim=2), {"block_v": 2}, chunk_size=3)
