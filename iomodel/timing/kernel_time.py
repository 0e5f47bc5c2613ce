"""Time of a kernel from its work and the rates of a device, with the time of each resource.

A block executes its phases in every trip; the blocks of a grid run on the SMs in waves. L2 requests and DRAM traffic
overlap with everything unless the algorithm declares otherwise (:mod:`iomodel.nests.execution`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.devices.rates import Rates
from iomodel.nests.execution import Execution
from iomodel.timing.balance import merged, spread
from iomodel.timing.dram import Dram, dram, streamed_bytes
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.parameters import Parameters
from iomodel.timing.shared_memory import WarpLayout, shared_bytes
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention

CHIP = frozenset({"l2", "atomics", "hbm"})
"""Resources shared by all SMs; a single active SM has them to itself."""
SHOWN = {"softmax": "fp32", "gradient": "fp32", "random": "fp32"}
"""Resource in the breakdown for each part of the work."""


@dataclass(frozen=True)
class Launched:
    """Launch of a kernel: warp layout, blocks per SM, and the exposed share of the softmax."""

    layout: WarpLayout = WarpLayout()  # noqa: RUF009 - frozen
    blocks_per_sm: int = 1
    exposed: float = 1.0


@dataclass(frozen=True)
class KernelTime(Record):
    """Time of one kernel.

    Attributes
    ----------
    title : str
        Name of the kernel.
    seconds : float
        Time from its start to the start of the next kernel [s].
    breakdown : mapping of str to float
        Time each resource would take if it were the only limit, and `steps`, `tail` and `launch` [s].
    blocks, waves : int
        Thread blocks, and waves of them on the SMs [-].
    streamed_bytes, requested_bytes, distinct_bytes : int
        DRAM traffic behind the time; requested bytes; each byte once [B].
    dram_bytes : tuple of int
        Lower and upper bound of the DRAM traffic, starting with an empty L2 cache [B].
    lock_step_bytes : int or None
        DRAM traffic of blocks in phase [B]; None under a mask, or with an unknown L2 cache.
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


def amounts(
    demand: KernelWork, rates: Rates, launched: Launched, parameters: Parameters, streamed: int
) -> dict[str, float]:
    """Time each resource would take if it were the only limit [s]; resources without a known rate are omitted."""
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
    demand: KernelWork,
    workload: Attention | VarlenAttention | None,
    packed: bool,
    rates: Rates,
    execution: Execution,
    launched: Launched,
    parameters: Parameters,
    quick: bool = False,
) -> KernelTime:
    """Time one kernel of a call, or a kernel without attention; `quick` skips the bounds of the DRAM traffic."""
    at_once = None if rates.units is None else rates.units * launched.blocks_per_sm
    streamed = streamed_bytes(demand, rates.l2_capacity, at_once)
    needs = amounts(demand, rates, launched, parameters, streamed)
    traffic = Dram(demand.distinct_bytes, demand.requested_bytes, None)
    if not quick:
        traffic = dram(demand, workload, packed, rates.l2_capacity, at_once)
    launch = parameters.kernel_launch if rates.launch is None else rates.launch
    inside = {name for phase in execution.phases for name in phase}
    overlapped = max((seconds for name, seconds in needs.items() if name not in inside), default=0.0)
    work, chip = _phases(needs, execution, launched.exposed)
    if not demand.products and "hbm" not in inside:  # a streaming kernel
        work = chip = max(needs.values(), default=0.0)
    steps = tail = 0.0
    waves = 1
    if rates.units is not None and demand.products and "hbm" not in inside:
        waves = _waves(demand.blocks, rates.units, launched.blocks_per_sm)
        if rates.clock is not None:
            steps = parameters.step_clocks * demand.trips / rates.units / rates.clock
            tail = waves * parameters.block_clocks / rates.clock
        tail += (work - chip + steps) * (_stretch(demand, workload, packed, rates.units) - 1)
    peak = demand.flops / rates.matrix  # independent of the number of SMs in the file
    seconds = max(work + steps + tail, overlapped, peak) + launch
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
        (traffic.low, traffic.high),
        traffic.lock_step,
    )


def _phases(needs: Mapping[str, float], execution: Execution, exposed: float) -> tuple[float, float]:
    """Sum the phases, and the part of them on resources shared by the chip [s].

    The overlapped share of the softmax overlaps with the other phases.
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


def _stretch(demand: KernelWork, workload: Attention | VarlenAttention | None, packed: bool, units: int) -> float:
    """Compute the ratio of the busiest SM's work to the average [-]."""
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


def _stretch_of_many(demand: KernelWork, packed: bool, units: int) -> float:
    """Compute the ratio over sequences of different lengths, whose blocks share one grid."""
    blocks = demand.blocks
    if demand.outer is None or demand.inner is None:
        return -(-blocks // units) * units / blocks
    (axis, tile), inner = demand.outer, demand.inner
    spreads = [(spread(call, axis, tile, inner, packed), part.blocks) for part, call in demand.sequences]
    seen = merged((part, count // part.blocks) for part, count in spreads)
    return seen.makespan(1, units) * units / seen.total if seen.total else 1.0
