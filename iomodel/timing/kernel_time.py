"""Time of a kernel from its work and the rates of a device, with the time of each resource.

A block executes its phases in every trip; blocks that share an SM overlap (:mod:`iomodel.timing.overlap`), and the SM
that ends last decides (:mod:`iomodel.timing.balance`). L2 requests and DRAM traffic overlap with everything unless the
algorithm declares otherwise (:mod:`iomodel.nests.execution`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.devices.rates import Rates
from iomodel.nests.execution import Execution
from iomodel.timing.balance import Spread, merged, spread
from iomodel.timing.dram import Dram, dram, streamed_bytes
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.overlap import times
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
    """Launch of a kernel: warp layout, blocks per SM, the exposed share of the softmax, stages, and overlap.

    `warps` counts the computing warps of a block on each scheduler, None where the kernel is not known; `specialized`
    kernels leave loads to other warps.
    """

    layout: WarpLayout = WarpLayout()  # noqa: RUF009 - frozen
    blocks_per_sm: int = 1
    exposed: float = 1.0
    stages: int = 1
    warps: int | None = None
    specialized: bool = False


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
    matrix, per_sm = rates.warp_matrix, rates.sm_warp_matrix
    if launched.layout.together:
        matrix, per_sm = rates.matrix, rates.sm_matrix
    of_units = matrix if per_sm is None or rates.units is None else per_sm * rates.units
    fp32 = rates.fp32 if rates.sm_fp32 is None or rates.units is None else rates.sm_fp32 * rates.units
    wanted: dict[str, tuple[float, float | None]] = {
        "matrix": (demand.flops, of_units),
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
    steps = tail = 0.0
    waves = 1
    # The peak bounds the chip; the rate of its SMs, which a file may state above or below it, times the blocks.
    capped = demand.flops / (rates.matrix if launched.layout.together else rates.warp_matrix)
    if not demand.products and "hbm" not in inside:  # a streaming kernel
        on_sms = max(needs.values(), default=0.0)
    elif rates.units is None or not demand.products or "hbm" in inside:
        on_sms = _Phases.of(
            {**needs, "matrix": max(capped, needs.get("matrix", 0.0))}, execution, launched.exposed
        ).total
    else:
        waves = _waves(demand.blocks, rates.units, launched.blocks_per_sm)
        on_sms, steps, tail = _on_sms(demand, workload, packed, rates, execution, launched, parameters, needs, capped)
    seconds = max(on_sms, overlapped, capped) + launch
    listed: dict[str, float] = {}
    needs["matrix"] = max(capped, needs.get("matrix", 0.0))
    for name, value in needs.items():
        listed[SHOWN.get(name, name)] = listed.get(SHOWN.get(name, name), 0.0) + value
    listed |= {name: value for name, value in (("steps", steps), ("tail", tail)) if value}
    return KernelTime(
        demand.title,
        seconds,
        FrozenDict({**{name: value for name, value in listed.items() if value}, "launch": launch}),
        demand.blocks,
        waves,
        streamed,
        demand.requested_bytes,
        demand.distinct_bytes,
        (traffic.low, traffic.high),
        traffic.lock_step,
    )


class _Phases(NamedTuple):
    """Phases of a kernel on its SMs, and on the resources that all SMs share [s]."""

    own: list[float]
    chip: float
    longest: float

    @classmethod
    def of(cls, needs: Mapping[str, float], execution: Execution, exposed: float) -> _Phases:
        """List the phases; the hidden share of the softmax overlaps with the other phases of its block."""
        softmax = others = chip = 0.0
        own = []
        for phase in execution.phases:
            longest = max((needs[name] for name in phase if name in needs), default=0.0)
            if "exp" in phase or "softmax" in phase:
                softmax += longest
            elif CHIP.issuperset(phase):
                chip += longest
            else:
                own.append(longest)
        others = sum(own) + chip
        exposed_softmax = softmax - min((1 - exposed) * softmax, others)
        return cls([*own, exposed_softmax], chip, max([*own, softmax]))

    @property
    def total(self) -> float:
        """Time of a block without neighbours, as a share of the chip's [s]."""
        return sum(self.own) + self.chip


def _on_sms(
    demand: KernelWork,
    workload: Attention | VarlenAttention | None,
    packed: bool,
    rates: Rates,
    execution: Execution,
    launched: Launched,
    parameters: Parameters,
    needs: Mapping[str, float],
    capped: float,
) -> tuple[float, float, float]:
    """Time the blocks on the SMs; in it the own cost of trips, and the excess of the SM that ends last [s]."""
    assert rates.units is not None
    units, blocks = rates.units, demand.blocks
    phases = _Phases.of(needs, execution, launched.exposed)
    clock = 0.0 if rates.clock is None else 1 / rates.clock
    steps = waits = parameters.step_clocks * clock * demand.trips / units
    port = demand.staged * parameters.port_clocks * clock / units
    if launched.stages <= execution.waiting:  # each streamed tile is awaited: its latency, and its way to the SM
        waits += parameters.l2_clocks * clock * demand.trips / units + port
    most = min(launched.blocks_per_sm, -(-blocks // units))
    backward, warps = bool(demand.gradients), launched.warps or 1
    together, groups, read_with = warps, 1, (1, 2) if backward else (2, 1)
    if launched.specialized:
        together, groups, read_with = (1, 1, (1, 1)) if backward else (1, warps, (2, 1))
    elif launched.warps is None:
        read_with = (1, 1)

    def of(found: _Phases) -> list[float]:
        least = max(found.longest, port)
        return times(found.own, waits, most, least, together, groups, read_with)

    alone, *_ = each = of(phases)
    grid, copies = _grid_of(demand, workload, packed)
    on_busiest = grid.busiest(
        copies,
        units,
        execution.order,
        visit=alone * units / (grid.shares * copies),
        block=parameters.block_clocks * clock,
        shares=[time / alone for time in each] if alone else (1.0,),
    )
    in_visits, per_block = _latency(demand, workload, packed, execution, launched, parameters)
    if in_visits:
        received = grid.busiest(
            copies,
            units,
            execution.order,
            visit=in_visits * clock / (grid.shares * copies),
            block=per_block * clock,
            shares=[1 / many for many in range(1, most + 1)],
        )
        on_busiest = max(on_busiest, received)
    seconds = on_busiest + phases.chip
    if capped > needs.get("matrix", 0.0):
        whole = _Phases.of({**needs, "matrix": capped}, execution, launched.exposed)
        seconds = max(seconds, min(of(whole)) + whole.chip)
    summed = phases.total + waits
    work = phases.total * min(1.0, (min(each) + phases.chip) / summed) if summed else 0.0
    return seconds, min(steps, seconds), max(0.0, seconds - work - steps)


def _latency(
    demand: KernelWork,
    workload: Attention | VarlenAttention | None,
    packed: bool,
    execution: Execution,
    launched: Launched,
    parameters: Parameters,
) -> tuple[float, float]:
    """Compute the clocks in which blocks receive data by Little's law: in all visits, and once in a full block [clk].

    Blocks in phase ask for the tiles that they share at once, and all of them wait for DRAM.
    """
    in_flight: float | None = execution.in_flight
    if in_flight is None:
        if not demand.staged or not demand.trips:
            return 0.0, 0.0
        in_flight = demand.staged / demand.trips * launched.stages / 2  # the other half of the buffers is in use
    once = _full_block(demand, workload, packed)
    return demand.staged * parameters.dram_clocks / in_flight, once * parameters.dram_clocks / in_flight


def _full_block(demand: KernelWork, workload: Attention | VarlenAttention | None, packed: bool) -> float:
    """Compute the bytes that a block with a whole outer tile moves outside its visits [B]."""
    if demand.sequences:
        return max(_full_block(part, call, packed) for part, call in demand.sequences)
    once = sum(moved.requested for moved in demand.moved if moved.along) / demand.blocks
    if demand.outer is None or not isinstance(workload, Attention):
        return once
    axis, tile = demand.outer
    rows = workload.kv_len if axis == "key" else workload.q_len * (workload.group if packed else 1)
    return once * (-(-rows // tile) * tile / rows if rows > tile else 1.0)


def _waves(blocks: int, units: int, at_once: int) -> int:
    per_sm = -(-blocks // units)
    return -(-per_sm // at_once)


def _grid_of(demand: KernelWork, workload: Attention | VarlenAttention | None, packed: bool) -> tuple[Spread, int]:
    """Return the visits of the outer tiles, and the copies of them that make up the grid."""
    if demand.outer is not None and demand.inner is not None:
        (axis, tile), inner = demand.outer, demand.inner
        if demand.sequences:
            spreads = [(spread(call, axis, tile, inner, packed), part.blocks) for part, call in demand.sequences]
            return merged((seen, blocks // seen.blocks) for seen, blocks in spreads), 1
        assert isinstance(workload, Attention)
        seen = spread(workload, axis, tile, inner, packed)
        if seen.total:
            return seen, demand.blocks // seen.blocks
    return Spread(((1, 1),)), demand.blocks
