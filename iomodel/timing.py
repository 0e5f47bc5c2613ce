"""Demands against rates: the seconds of a kernel, and which resource takes them.

A block goes through its phases trip by trip; the blocks of a grid go through the SMs in waves. Requests to the L2 and
DRAM traffic run beside all of that unless the algorithm declares otherwise (:mod:`iomodel.execution`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.demand import Demand
from iomodel.dram import Dram, dram, streamed_bytes
from iomodel.execution import Execution
from iomodel.frozen import FrozenDict
from iomodel.imbalance import merged, spread
from iomodel.parameters import Parameters
from iomodel.rates import Rates
from iomodel.shared_traffic import Layout, shared_bytes
from iomodel.workload import Attention, VarlenAttention

CHIP = frozenset({"l2", "atomics", "hbm"})
"""Resources that all SMs share: one that works alone has them for itself."""
SHOWN = {"softmax": "fp32", "gradient": "fp32", "random": "fp32"}
"""The resource under which a part of the work is listed."""


@dataclass(frozen=True)
class Launched:
    """How the blocks of a kernel run: their layout, how many an SM takes, how much of the softmax is exposed."""

    layout: Layout = Layout()  # noqa: RUF009 - frozen
    blocks_per_sm: int = 1
    exposed: float = 1.0


@dataclass(frozen=True)
class KernelTime:
    """The time of one kernel.

    Attributes
    ----------
    title : str
        The kernel.
    seconds : float
        From its start to the start of the next [s].
    breakdown : mapping of str to float
        What each resource would need by itself; beside them `steps`, `tail` and `launch` [s].
    blocks, waves : int
        Thread blocks, and how many times the SMs fill with them [-].
    streamed_bytes, requested_bytes, distinct_bytes : int
        DRAM traffic that the time reckons with; what is asked for; each byte once [B].
    dram_bytes : tuple of int
        The least and the most DRAM traffic, of a kernel that finds the L2 empty [B].
    lock_step_bytes : int or None
        DRAM traffic if all blocks step together [B]; None under a mask, or without a figure of the L2.
    """

    title: str
    seconds: float
    breakdown: Mapping[str, float]
    blocks: int
    waves: int
    streamed_bytes: int
    requested_bytes: int
    distinct_bytes: int
    dram_bytes: tuple[int, int]
    lock_step_bytes: int | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {**self.__dict__, "breakdown": dict(self.breakdown)}


def amounts(
    demand: Demand, rates: Rates, launched: Launched, parameters: Parameters, streamed: int
) -> dict[str, float]:
    """What each resource would need by itself, without those whose rate nobody knows [s]."""
    matrix = rates.matrix if launched.layout.together else rates.warp_matrix
    grown = rates.grown
    fp32 = None if rates.fp32 is None else rates.fp32 * grown
    wanted: dict[str, tuple[float, float | None]] = {
        "matrix": (demand.flops, matrix * grown),
        "shared memory": (shared_bytes(demand, launched.layout), rates.shared),
        "exp": (demand.exps - demand.exps_once, rates.exp),
        "softmax": (demand.scores * parameters.softmax_ops, fp32),
        "gradient": (demand.gradients * parameters.gradient_ops, fp32),
        "random": (demand.randoms * parameters.random_ops, fp32),
        "atomics": (demand.atomic_bytes, rates.l2),
        "l2": (demand.requested_bytes, rates.l2),
        "hbm": (streamed, rates.hbm),
    }
    return {name: amount / rate for name, (amount, rate) in wanted.items() if rate is not None and amount}


def kernel_time(
    demand: Demand,
    workload: Attention | VarlenAttention | None,
    packed: bool,
    rates: Rates,
    execution: Execution,
    launched: Launched,
    parameters: Parameters,
    quick: bool = False,
) -> KernelTime:
    """The time of one kernel of a call, or of a kernel that is no attention; a quick answer leaves the interval of
    DRAM traffic wide.
    """
    at_once = None if rates.units is None else rates.units * launched.blocks_per_sm
    streamed = streamed_bytes(demand, rates.l2_capacity, at_once)
    needs = amounts(demand, rates, launched, parameters, streamed)
    found = Dram(demand.distinct_bytes, demand.requested_bytes, None)
    if not quick:
        found = dram(demand, workload, packed, rates.l2_capacity, at_once)
    launch = parameters.kernel_launch if rates.launch is None else rates.launch
    inside = {name for phase in execution.phases for name in phase}
    beside = max((seconds for name, seconds in needs.items() if name not in inside), default=0.0)
    work, chip = _phases(needs, execution, launched.exposed)
    if not demand.products and "hbm" not in inside:  # it only streams
        work = chip = max(needs.values(), default=0.0)
    steps = tail = 0.0
    waves = 1
    if rates.units is not None and demand.products and "hbm" not in inside:
        waves = _waves(demand.blocks, rates.units, launched.blocks_per_sm)
        if rates.clock is not None:
            steps = parameters.step_clocks * demand.trips / rates.units / rates.clock
            tail = waves * parameters.block_clocks / rates.clock
        tail += (work - chip + steps) * (_stretch(demand, workload, packed, rates.units) - 1)
    peak = demand.flops / rates.matrix  # however many SMs a file has
    seconds = max(work + steps + tail, beside, peak) + launch
    listed: dict[str, float] = {}
    for name, value in needs.items():
        listed[SHOWN.get(name, name)] = listed.get(SHOWN.get(name, name), 0.0) + value
    listed |= {name: value for name, value in (("steps", steps), ("tail", tail)) if value}
    return KernelTime(
        demand.title,
        seconds,
        FrozenDict({**listed, "launch": launch}),
        demand.blocks,
        waves,
        streamed,
        demand.requested_bytes,
        demand.distinct_bytes,
        (found.low, found.high),
        found.lock_step,
    )


def _phases(needs: Mapping[str, float], execution: Execution, exposed: float) -> tuple[float, float]:
    """One phase after the other, and the part of them that is not an SM's own but all the chip's [s].

    What hides of the softmax hides behind the other phases.
    """
    softmax = others = chip = 0.0
    for phase in execution.phases:
        longest = max((needs[name] for name in phase if name in needs), default=0.0)
        if "exp" in phase or "softmax" in phase:
            softmax += longest
        else:
            others += longest
            chip += longest if CHIP.issuperset(phase) else 0.0
    total = softmax + others - min((1 - exposed) * softmax, others)
    return total, min(chip, total)


def _waves(blocks: int, units: int, at_once: int) -> int:
    per_sm = -(-blocks // units)
    return -(-per_sm // at_once)


def _stretch(demand: Demand, workload: Attention | VarlenAttention | None, packed: bool, units: int) -> float:
    """How much longer the busiest SM works than the average one [-]."""
    blocks = demand.blocks
    if demand.sequences:
        return _stretch_of_many(demand, packed, units)
    if demand.outer is not None and demand.inner is not None:
        assert isinstance(workload, Attention)
        axis, tile = demand.outer
        seen = spread(workload, axis, tile, demand.inner, packed)
        if seen.total:
            return seen.makespan(blocks // seen.blocks, units) * units / (seen.total * (blocks // seen.blocks))
    return -(-blocks // units) * units / blocks


def _stretch_of_many(demand: Demand, packed: bool, units: int) -> float:
    """The same over sequences of different lengths: their blocks share one grid."""
    blocks = demand.blocks
    if demand.outer is None or demand.inner is None:
        return -(-blocks // units) * units / blocks
    (axis, tile), inner = demand.outer, demand.inner
    every = [(spread(call, axis, tile, inner, packed), part.blocks) for part, call in demand.sequences]
    seen = merged((one, many // one.blocks) for one, many in every)
    return seen.makespan(1, units) * units / seen.total if seen.total else 1.0
