"""Calls of recurrences with tiles, and the kernels that count them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

import iomodel
from iomodel.testing import assert_traffic
from iomodel.testing.machine import Run
from tests.reference import recurrence as reference

ALGORITHMS = ("chunked_scan", "stepwise_scan")
GATES = ("none", "constant", "head", "channel")


@dataclass(frozen=True)
class Case:
    """A call with an algorithm, tiles and options."""

    algorithm: str
    call: iomodel.Recurrence
    tiles: dict[str, int]
    options: dict[str, Any]

    @property
    def cost(self) -> iomodel.Cost:
        return iomodel.cost(self.algorithm, self.call, self.tiles, **self.options)

    @cached_property
    def inputs(self) -> reference.Inputs:
        w = self.call
        sizes = w.batch, w.heads, w.key_heads, w.tokens, w.head_dim, w.value_dim
        return reference.inputs(*sizes, gate=w.gate, delta=w.delta, stateful=w.stateful)

    def run(self, capacity: int | None = None) -> Run:
        """Run the kernel of the algorithm."""
        kernel = {"chunked_scan": reference.chunked, "stepwise_scan": reference.stepwise}[self.algorithm]
        return kernel(self.inputs, **self.tiles, **self.options, capacity=capacity)


def assert_counted(case: Case) -> Run:
    """Hold every count of a case equal to what its kernel counts."""
    ran, cost = case.run(), case.cost
    assert_traffic(cost, ran)
    assert (cost.flops, cost.exps, cost.atomics) == (ran.flops, ran.exps, 0)
    size = case.call.element_size
    assert (cost.footprint_elements, cost.footprint_bytes) == (ran.sram_peak, ran.sram_bytes(size))
    assert (cost.peak_hbm_elements, cost.peak_hbm_bytes) == (ran.hbm_peak, ran.hbm_peak_bytes(size))
    return ran


@st.composite
def cases(draw: st.DrawFn, longest: int = 9) -> Case:
    """Draw small ragged calls of every kind of recurrence."""
    key_heads = draw(st.integers(1, 2))
    call = iomodel.Recurrence(
        batch=draw(st.integers(1, 2)),
        tokens=draw(st.integers(1, longest)),
        heads=key_heads * draw(st.integers(1, 2)),
        key_heads=key_heads,
        head_dim=draw(st.integers(1, 4)),
        value_dim=draw(st.integers(1, 5)),
        dtype=draw(st.sampled_from(["bf16", "fp32", "fp8"])),
        gate=draw(st.sampled_from(GATES)),
        delta=draw(st.booleans()),
        stateful=draw(st.booleans()),
    )
    algorithm = draw(st.sampled_from(ALGORITHMS))
    tiles = {"block_value": draw(st.integers(1, 6))}
    if algorithm == "stepwise_scan":
        return Case(algorithm, call, tiles, {})
    tiles["block_chunk"] = draw(st.integers(1, longest + 1))
    meaningful = {"stored_gates": call.gate in ("head", "channel"), "stored_inverse": call.delta}
    written = {name: True for name, means in meaningful.items() if means and draw(st.booleans())}
    return Case(algorithm, call, tiles, {"materialize": draw(st.booleans()), **written})
