"""Time of a kernel from its work and the rates of a device, with the time of each resource.

A block executes its phases in every trip; blocks that share an SM overlap (:mod:`iomodel.timing.overlap`), and the SM
that ends last decides (:mod:`iomodel.timing.balance`). L2 requests and DRAM traffic overlap with everything unless the
algorithm declares otherwise (:mod:`iomodel.nests.execution`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from iomodel.common.arithmetic import anywhere, ceil_div, floor_div, larger, pick, ratio, smaller
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.devices.rates import Rates
from iomodel.nests.execution import Execution
from iomodel.timing.balance import Grid, GridRows, Rows, Spread, merged, needs_list, spread, visits
from iomodel.timing.dram import dram
from iomodel.timing.in_phase import Caches, Turns, leaving_bytes, streamed_bytes
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.listed_visits import ListedVisits
from iomodel.timing.overlap import times
from iomodel.timing.parameters import Parameters
from iomodel.timing.shared_memory import WarpLayout, block_parts, gradient_rows, shared_bytes, staged_again, sums_in_hbm
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.varlen import VarlenAttention

CHIP = frozenset({"l2", "atomics", "llc", "hbm"})
"""Resources shared by all SMs; a single active SM has them to itself."""
MOST_AT_ONCE = 64
"""Largest number of concurrent blocks per SM whose waits for data are distinguished; no GPU runs as many."""
MOST_DOUBLINGS = 16
"""Doublings of a section that are tried; no call has as many heads [-]."""
TURN = 4
"""Latencies of the L2 from one block's addition to that of the next in turn: the addition and the flag on their way
there, the flag to the block that waits for it, and its request [-]."""
UNTHROTTLED = 0.025
"""Time of a kernel at which half of the fall of its clock counts [s]: backward passes of 8k, 16k and 32k causal tokens
at head dimension 128 and forward passes of 7.8k to 75.6k tokens on a GB200, in tests/measured/published_2.csv."""
DEPENDENT = 0.52
"""Time of a dependent launch over that of any other, where the file has no graph node [-]: A100 0.51, H200 0.52, A40
0.53 (their files)."""
MOST_LISTED = 1 << 18
"""Runs of tiles of many grids that are laid out at once [-]."""
SHOWN = {"softmax": "fp32", "gradient": "fp32", "random": "fp32"}
"""Resource in the breakdown for each part of the work."""


@dataclass(frozen=True)
class Launched:
    """Launch of a kernel: warp layout, blocks per SM, the exposed share of the softmax, stages, and overlap.

    `warps` counts the computing warps of a block on each scheduler, None where the kernel is not known; `specialized`
    kernels leave loads to other warps. `blocks_per_sm`, `exposed`, `stages` and `warps` may be arrays; `layouts` are
    then the layouts of their points, each with a mask, in place of `layout`. A block stores and loads `spilled` bytes
    of registers in each iteration, in the L1 and beyond it; `repeated` warps compute the same rows. With `turns`, as
    many tiles of scores take the units in turn, and `exposed` is not used.
    """

    layout: WarpLayout = WarpLayout()  # noqa: RUF009 - frozen
    blocks_per_sm: Any = 1
    exposed: Any = 1.0
    stages: Any = 1
    warps: Any = None
    specialized: bool = False
    layouts: tuple[tuple[Any, WarpLayout], ...] = ()
    spilled: tuple[Any, Any] = (0.0, 0.0)
    repeated: Any = 1
    turns: int = 0

    def shared_bytes(self, demand: KernelWork) -> Any:
        """Compute the bytes read from and written to shared memory [B]."""
        if not self.layouts:
            return shared_bytes(demand, self.layout)
        return sum(where * shared_bytes(demand, layout) for where, layout in self.layouts)


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
    l2_bytes : tuple of int
        Lower and upper bound of the traffic that leaves the L2 [B]: the DRAM traffic, or more if a last-level cache is
        behind the L2.
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
    l2_bytes: tuple[int, int]
    lock_step_bytes: int | None


class Elapsed(NamedTuple):
    """Time of one kernel and what it is made of; numbers, or arrays over the points of its work.

    `needs` has the time that each resource would take if it were the only limit, by the names of the work; `launch` is
    the time between the start of a kernel of its kind and that of the one before it.
    """

    seconds: Any
    needs: Mapping[str, Any]
    steps: Any
    tail: Any
    waves: Any
    streamed: Any
    at_once: Any
    launch: Any

    @property
    def breakdown(self) -> dict[str, Any]:
        """Time by resource, with `steps`, `tail` and `launch` [s]."""
        listed: dict[str, Any] = {}
        for name, value in self.needs.items():
            shown = SHOWN.get(name, name)
            listed[shown] = listed[shown] + value if shown in listed else value
        return {**listed, "steps": self.steps, "tail": self.tail, "launch": self.launch}


class Setting(NamedTuple):
    """The device and the call that all kernels of a pass share.

    `workload` holds the rows that a mask relates, None without attention; `packed` is true if the rows of a group of
    query heads share a tile, `warm` if the L2 holds the tensors of a kernel when it starts.
    """

    rates: Rates
    execution: Execution
    parameters: Parameters
    workload: Rows | VarlenAttention | None = None
    packed: bool = False
    warm: Any = False

    @property
    def launch(self) -> float:
        """Time between the starts of consecutive kernels [s]."""
        return self.parameters.kernel_launch if self.rates.launch is None else self.rates.launch

    @property
    def node(self) -> float:
        """Time between the starts of kernels that depend on each other, or are nodes of a graph [s]."""
        if self.rates.node is not None:
            return self.rates.node
        return DEPENDENT * self.launch

    def start(self, with_products: bool) -> float:
        """Compute the time of a kernel in addition to its work and its blocks [s].

        Blocks of kernels without products start and end as others do, which is not timed by itself.
        """
        return self.launch + (self.parameters.in_graph * (self.node - self.launch) if with_products else 0.0)

    def warmed(self, demand: KernelWork) -> Setting:
        """Return the setting of a kernel whose tensors the L2 holds when it starts, where they fit.

        An L2 without a bandwidth on file serves what the ports of the SMs take.
        """
        share, rates, capacity = self.parameters.warm_l2, self.rates, self.rates.l2_for_all
        if share == 0 or capacity is None or rates.units is None or rates.clock is None:
            return self
        if rates.l2 is None:
            rates = replace(rates, l2=rates.units * rates.clock / self.parameters.port_clocks)
        return self._replace(rates=rates, warm=demand.distinct_bytes <= share * capacity)

    @property
    def first_loads(self) -> Any:
        """Bandwidth at which blocks in phase receive what they read once [B/s]."""
        return self.rates.hbm if self.rates.l2 is None else pick(self.warm, self.rates.l2, self.rates.hbm)

    @property
    def data_clocks(self) -> Any:
        """Time from the request of a byte to its arrival, from the L2 if it holds the tensors, else from DRAM [clk]."""
        return pick(self.warm, self.parameters.l2_clocks, self.parameters.dram_clocks)


def kernel_time(demand: KernelWork, at: Setting, launched: Launched) -> KernelTime:
    """Time one kernel of a call, or a kernel without attention, with the bounds of its DRAM traffic."""
    return described(demand, at, elapsed(demand, at, launched))


def described(demand: KernelWork, at: Setting, took: Elapsed) -> KernelTime:
    """Add the bounds of its traffic behind the caches to a timed kernel."""
    assert at.workload is None or isinstance(at.workload, Attention | VarlenAttention)
    section = int(_section(demand, at))
    traffic = dram(demand, at.workload, at.packed, Caches.of(at.rates), took.at_once, at.execution.fastest, section)
    return KernelTime(
        demand.title,
        took.seconds,
        FrozenDict({name: float(value) for name, value in took.breakdown.items() if value}),
        demand.blocks,
        took.waves,
        took.streamed,
        demand.requested_bytes,
        demand.distinct_bytes,
        (traffic.low, traffic.high),
        traffic.leaving,
        traffic.lock_step,
    )


def elapsed(demand: KernelWork, at: Setting, launched: Launched, bounded: bool = False) -> Elapsed:
    """Time one kernel, elementwise: its work, the lengths of the call and the launch may be arrays.

    If `bounded`, the seconds are a lower bound that takes no account of the order of the blocks.
    """
    at = at.warmed(demand)
    rates, execution, parameters, workload, _, warm = at
    at_once = None if rates.units is None else rates.units * launched.blocks_per_sm
    leaving, streamed = (pick(warm, 0, moved) for moved in _in_phase(demand, at, at_once))
    inside: set[str] = {name for phase in execution.phases for name in phase}
    if "hbm" in inside:
        inside.add("llc")
    if "hbm" in inside:  # the products are those of a library, which take the fastest instruction
        launched = replace(launched, layout=replace(launched.layout, accumulates=rates.asynchronous))
    needs = amounts(demand, rates, launched, parameters, streamed, leaving)
    if rates.dirty and workload is not None and demand.products and "hbm" not in inside:
        needs["hbm"] = needs["hbm"] + _dirty(demand, streamed, parameters.dirty_l2, rates.dirty) / rates.hbm
    singles = _single_bytes(demand, workload)
    if anywhere(singles) and rates.units is not None and rates.clock is not None:
        accesses = singles / ELEMENT_SIZE[rates.dtype]
        needs["addresses"] = accesses * execution.address_clocks / (rates.units * rates.clock)
    copied = _by_pages(demand, workload, execution)
    if anywhere(copied) and rates.units is not None and rates.clock is not None:
        needs["addresses"] = copied * execution.paged_clocks / (rates.units * rates.clock)
    start = at.start(bool(demand.products))
    launch = at.node if execution.dependent and not demand.products else start
    if rates.simulated:  # as a trace counts: every load, product and store after the other
        return Elapsed(sum(needs.values()), needs, 0.0, 0.0, 1, streamed, at_once, start)
    overlapped = larger(0.0, *(seconds for name, seconds in needs.items() if name not in inside))
    steps = tail = on_sms = 0.0
    over: Any = rates.throttled
    waves: Any = 1
    # The peak bounds the chip; the rate of its SMs, which a file may state above or below it, times the blocks.
    # A measured rate, which includes trips and tails, bounds the time instead of adding to them.
    capped = demand.flops / (rates.matrix if launched.layout.fastest else rates.warp_matrix)
    at_peak = capped * rates.matrix / rates.peak
    on_chip = {**needs, "matrix": larger(capped, needs["matrix"])}
    if not demand.products and "hbm" not in inside:  # a streaming kernel
        on_sms = larger(0.0, *needs.values())
        if execution.part_clocks and rates.clock is not None:
            on_sms = on_sms + pick(demand.parts > 1, demand.parts * (execution.part_clocks / rates.clock), 0.0)
    elif rates.units is None or not demand.products or "hbm" in inside:
        on_sms = _Phases.of(on_chip, execution, launched).total
        if rates.asynchronous and demand.reduces_rows:  # the next operands arrive during a product
            on_sms = on_sms - smaller(on_chip["matrix"], larger(0.0, *(needs[name] for name in CHIP if name in needs)))
    else:
        waves = ceil_div(ceil_div(demand.blocks, rates.units), launched.blocks_per_sm)
        on_sms, steps, tail, over = _on_sms(demand, at, launched, needs, at_peak, bounded)
        if rates.clock is not None:  # no byte moves before the first blocks have started, half of what a block costs
            overlapped = overlapped + parameters.block_clocks / 2 / rates.clock
    at_limit = rates.throttled > 1 and (launched.layout.fastest or not rates.asynchronous)
    if at_limit and demand.products and "hbm" not in inside:
        on_sms = on_sms * (1 + larger(0.0, over - 1) * on_sms / (on_sms + UNTHROTTLED))
    seconds = larger(on_sms, overlapped, capped)
    if rates.reached and "hbm" not in inside:  # the products of a library have rates of their own
        at_best = demand.flops / rates.reached
        on_chip["matrix"] = pick(at_best > seconds, at_best, on_chip["matrix"])
        seconds = larger(seconds, at_best)
    spills = _spills(demand, rates, launched)
    if anywhere(spills):
        on_chip["spills"] = spills
    return Elapsed(seconds + spills + launch, on_chip, steps, tail, waves, streamed, at_once, start)


def _spills(demand: KernelWork, rates: Rates, launched: Launched) -> Any:
    """Time the registers that are stored and loaded in each iteration, which no product hides [s]."""
    near, far = launched.spilled
    if not demand.products or rates.shared is None or not anywhere(near + far > 0):
        return 0.0
    beyond = rates.hbm if rates.l2 is None else rates.l2
    return 2 * demand.trips * (near / rates.shared + far / beyond)


def _by_pages(demand: KernelWork, workload: Rows | VarlenAttention | None, execution: Execution) -> Any:
    """Return the bytes of key tiles that are no part of one page, where their copies take time [B]."""
    if not execution.paged_clocks or workload is None or isinstance(workload, VarlenAttention):
        return 0
    if workload.page_size is None or demand.inner is None:
        return 0
    return pick(workload.page_size % demand.inner == 0, 0, demand.staged)


def _dirty(demand: KernelWork, streamed: Any, share: float, most: float) -> Any:
    """Estimate the bytes of earlier kernels that a kernel writes back [B].

    What it streams evicts as many lines of earlier kernels, of which a share is to be written back. A kernel that
    writes leaves lines of its own behind instead, so that more of what its blocks move once saves no more than it
    moves. More splits write more partial results, and evict no fewer lines.
    """
    once = sum(moved.requested for moved in demand.moved if moved.along) / demand.parts
    return larger(0.0, smaller(most - once, share * streamed - (1 + share) * once))


def _single_bytes(demand: KernelWork, workload: Rows | VarlenAttention | None) -> Any:
    """Return the bytes that a kernel loads and stores as single elements [B]."""
    if demand.strided:
        return demand.requested_bytes
    if demand.single_keys == 0 or workload is None:
        return 0
    if demand.sequences:
        return sum(_single_bytes(part, call) for part, call in demand.sequences)
    assert not isinstance(workload, VarlenAttention)
    return demand.requested_bytes * (workload.kv_len <= demand.single_keys)


def _in_phase(demand: KernelWork, at: Setting, at_once: Any) -> tuple[Any, Any]:
    """Estimate what leaves the L2 and the DRAM traffic, once for launches with as many blocks at once [B]."""
    caches = Caches.of(at.rates)
    if isinstance(at_once, np.ndarray):
        return _traffic(demand, at, caches, at_once)
    known = demand.memo.get("streamed")
    if known is not None and known[0] == caches and known[1] == at_once and known[2] == at.execution.fastest:
        traffic: tuple[Any, Any] = known[3]
        return traffic
    traffic = _traffic(demand, at, caches, at_once)
    demand.memo["streamed"] = (caches, at_once, at.execution.fastest, traffic)
    return traffic


def _traffic(demand: KernelWork, at: Setting, caches: Caches, at_once: Any) -> tuple[Any, Any]:
    execution, workload, turns = at.execution, at.workload, None
    if workload is not None and execution.fastest != "tiles":
        calls = [call for _, call in demand.sequences] if isinstance(workload, VarlenAttention) else [workload]
        heads = floor_div(calls[0].heads, calls[0].group) if at.packed else calls[0].heads
        turns = Turns.of(execution.fastest, sum(call.batch for call in calls), heads)
        if turns is not None and execution.section_bytes is not None:  # each section has heads of its own
            turns = turns.in_sections(_section(demand, at))
    leaving = leaving_bytes(demand, caches, at_once, turns)
    return leaving, leaving if caches.last is None else streamed_bytes(demand, caches, at_once, turns)


def amounts(
    demand: KernelWork, rates: Rates, launched: Launched, parameters: Parameters, streamed: Any, leaving: Any
) -> dict[str, Any]:
    """Time each resource would take if it were the only limit [s]; resources without a known rate are omitted."""
    matrix, per_sm = rates.warp_matrix, rates.sm_warp_matrix
    if launched.layout.fastest:
        matrix, per_sm = rates.matrix, rates.sm_matrix
    of_units = matrix if per_sm is None or rates.units is None else per_sm * rates.units
    fp32 = rates.fp32 if rates.sm_fp32 is None or rates.units is None else rates.sm_fp32 * rates.units
    dropped = pick(demand.randoms > 0, demand.gradients, 0)
    layout = launched.layout
    again = staged_again(demand, layout) + sums_in_hbm(demand, layout) + gradient_rows(demand, layout)
    wanted: dict[str, tuple[Any, float | None]] = {
        "matrix": (demand.flops, of_units),
        "shared memory": (launched.shared_bytes(demand), rates.shared),
        "exp": (demand.exps - demand.exps_once, rates.exp),
        "softmax": (demand.scores * parameters.softmax_ops, fp32),
        "gradient": (demand.gradients * parameters.gradient_ops, fp32),
        "random": (demand.randoms * parameters.random_ops + dropped * parameters.dropout_ops, fp32),
        "atomics": (demand.atomic_bytes, rates.l2),
        "l2": (demand.requested_bytes + again, rates.l2),
        "llc": (leaving, None if rates.llc_capacity is None else rates.llc),
        "hbm": (streamed, rates.hbm),
    }
    return {name: amount / rate for name, (amount, rate) in wanted.items() if rate is not None}


class _Phases(NamedTuple):
    """Phases of a kernel on its SMs, and on the resources that all SMs share [s]."""

    own: list[Any]
    chip: Any
    longest: Any

    @classmethod
    def of(cls, needs: Mapping[str, Any], execution: Execution, launched: Launched, filled: Any = 0.0) -> _Phases:
        """List the phases; the hidden share of the softmax runs beside the products of its block.

        Where tiles take turns, the unit that takes longest decides, or the sum over the units of one tile.
        `filled` is the share of a block's trips in which the two do not overlap: products come first and last [-].
        """
        products = softmax = chip = 0.0
        own = []
        for phase in execution.phases:
            behind = ("llc",) if "hbm" in phase else ()  # what leaves the L2 passes the cache on its way
            longest = larger(0.0, *(needs[name] for name in (*phase, *behind) if name in needs))
            if "exp" in phase or "softmax" in phase:
                softmax = softmax + longest
            elif "matrix" in phase:
                products = products + longest
            elif CHIP.issuperset(phase):
                chip = chip + longest
            else:
                own.append(longest)
        if launched.turns:
            units = products, *(needs.get(name, 0.0) for name in ("exp", "softmax"))
            in_turn = larger(*units, sum(units) / launched.turns) + filled * smaller(products, softmax)
            return cls([in_turn, *own], chip, larger(*units, *own))
        # Each duration falls with every rate, so that no faster unit makes a block slower.
        hidden = (1 - launched.exposed) * softmax
        beside = larger(products, hidden) + filled * smaller(products, hidden)
        return cls([beside, *own, launched.exposed * softmax], chip, larger(products, *own, softmax))

    @property
    def total(self) -> Any:
        """Time of a block without neighbours, as a share of the chip's [s]."""
        return sum(self.own) + self.chip


def _on_sms(
    demand: KernelWork, at: Setting, launched: Launched, needs: Mapping[str, Any], capped: Any, bounded: bool
) -> tuple[Any, Any, Any, Any]:
    """Time the blocks on the SMs, with the fixed cost of trips and the excess of the SM that ends last [s].

    The last value is the clock over that at the limit of power, which idle SMs raise [-].
    If `bounded`, the time is that of the SM with the most blocks, or under a mask that of evenly spread blocks, less
    the share of blocks that it may leave idle.
    """
    rates, execution, parameters, workload, _, _ = at
    assert rates.units is not None
    units, blocks = rates.units, demand.blocks
    phases = _Phases.of(needs, execution, launched, ratio(blocks, demand.trips))
    clock = 0.0 if rates.clock is None else 1 / rates.clock
    steps = parameters.step_clocks * clock * demand.trips / units
    port = demand.staged * parameters.port_clocks * clock / units
    # With few stages each streamed tile is awaited: its latency, and with one stage its way to the SM.
    latency = parameters.l2_clocks if execution.awaited_clocks is None else execution.awaited_clocks
    lacking = larger(0, execution.waiting + 1 - launched.stages)
    awaited = lacking * latency * clock * demand.trips / units
    awaited = awaited + pick((launched.stages <= 1) & (execution.waiting > 0), port, 0.0)
    waits = steps + sums_in_hbm(demand, launched.layout) * launched.layout.added_clocks * clock / units
    if demand.ordered and not execution.slabs:  # a flag is read and written, between two adds
        shared = sum(moved.requested > moved.distinct for moved in demand.moved if not moved.along) > 0
        turns = TURN * parameters.l2_clocks * clock * demand.trips / units
        if launched.layout.accumulates:  # a tile of dQ leaves tensor memory before its turn, beside the exposed softmax
            turns = larger(0.0, turns - phases.own[-1])
        waits = waits + pick(shared, turns, 0.0)
    most = smaller(launched.blocks_per_sm, ceil_div(blocks, units))
    backward, warps = anywhere(demand.gradients), 1 if launched.warps is None else launched.warps
    together, groups, read_with = warps, 1, (1, 2) if backward else (2, 1)
    if launched.specialized:
        together, groups, read_with = (1, 1, (1, 1)) if backward else (1, warps, (2, 1))
    elif launched.warps is None:
        read_with = (1, 1)
    beside_products = launched.layout.fastest and rates.asynchronous and not launched.specialized and not backward
    beside_products = (together == 1) & beside_products if launched.warps is not None else False
    deepest = int(most) if isinstance(most, int) else int(np.max(most))

    def of(found: _Phases) -> list[Any]:
        least = larger(found.longest, port)
        return times(found.own, waits, most, least, together, groups, read_with, awaited, beside_products)

    alone, *_ = each = of(phases)
    # Blocks in phase load what they read once while all wait; half of what they move once is written, behind products.
    first_loads = sum(moved.requested for moved in demand.moved if moved.along) / 2
    outside = phases.chip + first_loads / (at.first_loads * launched.blocks_per_sm)
    in_visits, per_block = _latency(demand, at, launched)
    if bounded:
        least = _least(each, most)
        if workload is None or isinstance(workload, VarlenAttention) or workload.mask != "full":
            evenly = least * (demand.trips / (demand.trips + blocks))
            return evenly * _at_power(rates, 1.0)[0] + outside, 0.0, 0.0, 0.0
        busiest = ratio(ceil_div(blocks, units) * units, blocks)  # of equal blocks, over the mean
        longest = busiest * larger(least, in_visits * clock / units / most)
        return longest * _at_power(rates, ratio(least, longest))[0] + outside, 0.0, 0.0, 0.0
    grid = _grid(demand, workload, at.packed, units)
    begun = first = execution.start_clocks * clock
    if workload is not None and not isinstance(workload, VarlenAttention) and workload.mask == "full":
        # Persistent blocks hide the start of the next tile behind half of the trips of one, beyond the second.
        begun = larger(0.0, first - larger(0.0, alone * units * (ratio(0.5, blocks) - ratio(1.0, demand.trips))))
        outside = outside + first - begun
    start = parameters.block_clocks * clock + begun
    clocks = alone, start, [ratio(time, alone) for time in each]
    section = _section(demand, at)
    on_busiest = _busiest(grid, execution, section, clocks, most)
    alike = [1 / many for many in range(1, min(deepest, MOST_AT_ONCE) + 1)]
    if _may_decide(in_visits * clock / units, alike, each) or _may_decide(per_block * clock, [1.0], [start]):
        received = _busiest(grid, execution, section, (in_visits * clock / units, per_block * clock, alike), most)
        on_busiest = larger(on_busiest, pick(in_visits > 0, received, 0.0))
    if demand.ordered and execution.slabs and workload is not None and not isinstance(workload, VarlenAttention):
        shared, more = _in_slabs(demand, workload, rates, most)
        on_busiest, outside = larger(on_busiest, _least(each, most) * shared), outside + more / rates.hbm
    elif launched.layout.most_blocks and workload is not None and not isinstance(workload, VarlenAttention):
        heads = workload.batch * workload.heads
        parts = block_parts(blocks, heads, launched.layout)
        shared = _shared_out(floor_div(blocks, heads), parts, heads, units * most)
        on_busiest = larger(on_busiest, _least(each, most) * shared)
    faster, over = _at_power(rates, smaller(1.0, ratio(_least(each, most) + blocks * start / units, on_busiest)))
    seconds = on_busiest * faster + outside
    beyond = capped > needs["matrix"]
    if anywhere(beyond):
        whole = _Phases.of({**needs, "matrix": larger(capped, needs["matrix"])}, execution, launched)
        least = larger(seconds, _least(of(whole), most) + whole.chip)
        seconds = pick(beyond, least, seconds)
    summed = phases.total + waits + awaited
    work = phases.total * smaller(1.0, ratio(_least(each, most) + phases.chip, summed))
    work, steps = work * faster, steps * faster
    return seconds, smaller(steps, seconds), larger(0.0, seconds - work - steps), over


def _at_power(rates: Rates, busy: Any) -> tuple[Any, Any]:
    """Return the time of SMs over that at their clock, and their clock over that at the limit of power [-].

    Power goes with the cube of the clock, so that the mean share of busy SMs sets the clock, up to the boost clock.
    """
    over = rates.throttled * busy ** (1 / 3)
    return smaller(1.0, larger(1 / rates.spare, over)), over


def _in_slabs(demand: KernelWork, workload: Rows, rates: Rates, most: Any) -> tuple[Any, Any]:
    """Return the time of blocks that share out the outer tiles of a head over that of evenly busy SMs [-].

    The second value is what the slabs beyond those asked for move: zeroed before, read after [B].
    """
    if demand.outer is None or rates.units is None:
        return 1.0, 0
    axis, tile = demand.outer
    tiles = ceil_div(workload.kv_len if axis == "key" else workload.q_len, tile)
    heads = floor_div(demand.blocks, tiles)
    slabs = smaller(tiles, ceil_div(rates.units, heads))
    shared = _shared_out(tiles, slabs, heads, rates.units * most)
    one = sum(moved.distinct for moved in demand.moved if moved.name == "Q") * 4 // ELEMENT_SIZE[rates.dtype]
    known = larger(0, *(moved.distinct for moved in demand.moved if moved.name == "dQ_acc"))
    return shared, 2 * larger(0, slabs * one - known)


def _shared_out(tiles: Any, parts: Any, heads: Any, slots: Any) -> Any:
    """Return the time of blocks that share out the outer tiles of a head in parts over that of evenly busy SMs [-]."""
    blocks = heads * parts
    return ratio(ceil_div(blocks, slots) * slots, blocks) * ratio(ceil_div(tiles, parts) * parts, tiles)


def _may_decide(time: Any, shares: Sequence[float], others: Sequence[Any]) -> bool:
    """Check whether a time, with any number of blocks at once, exceeds the other time with as many."""
    if isinstance(time, np.ndarray) or isinstance(others[0], np.ndarray) or len(shares) > len(others):
        return anywhere(time)
    return any(time * share > other for share, other in zip(shares, others, strict=False))


def _section(demand: KernelWork, at: Setting) -> Any:
    """Count the heads whose blocks of a tile start together [-]."""
    _, execution, _, workload, packed, _ = at
    if execution.fastest == "tiles" or workload is None:
        return 1
    if execution.section_bytes is None:
        call = demand.sequences[0][1] if isinstance(workload, VarlenAttention) else workload
        return floor_div(call.heads, call.group) if packed else call.heads
    again = [moved for moved in demand.moved if anywhere(moved.requested > moved.distinct) and not moved.along]
    if not again:
        return 1
    size: Any = sum(moved.distinct / moved.instances for moved in again)
    sets: Any = 1
    for _ in range(MOST_DOUBLINGS):
        sets = pick(2 * sets * size <= execution.section_bytes, 2 * sets, sets)
    group = 1 if packed or isinstance(workload, VarlenAttention) else workload.group
    return sets * group


def _busiest(
    grid: Grid | EachGrid, execution: Execution, section: Any, clocks: tuple[Any, Any, Sequence[Any]], most: Any
) -> Any:
    """Time the SM that ends last, from the time of all visits on one SM, that of a block, and the shares [s]."""
    visits_alone, block, shares = clocks
    if isinstance(grid, EachGrid):
        points = sum(len(place) for place, _ in grid.parts)
        _, *of_points = np.broadcast_arrays(np.empty(points), visits_alone, block, most, section, *shares)
        ends = np.empty(of_points[0].shape)
        for place, seen in grid.parts:
            for where in [place] if points == len(ends) else np.arange(len(ends)).reshape(-1, 1):  # one grid for all
                alone, each_block, here, own, *ratios = (values[where] for values in of_points)
                ends[where] = _busiest(seen, execution, own, (alone, each_block, ratios), here)
        return ends
    visit = visits_alone * grid.units / (grid.tiles.shares * grid.copies)
    return grid.busiest(execution.order, section, visit=visit, block=block, shares=shares, most=most)


def _least(times_at_once: Sequence[Any], most: Any) -> Any:
    """Return the least time over the numbers of blocks at once, up to `most`."""
    least = times_at_once[0]
    for many, time in enumerate(times_at_once[1:], 2):
        least = pick(many <= most, smaller(least, time), least)
    return least


def _latency(demand: KernelWork, at: Setting, launched: Launched) -> tuple[Any, Any]:
    """Compute the clocks in which blocks receive data by Little's law: in all visits, and once in a full block [clk].

    Blocks in phase ask for the tiles that they share at once, and all of them wait for DRAM. Tiles that a block loads
    once have their own buffers and arrive together, unless the execution declares the bytes in flight.
    """
    once, in_flight = _full_block(demand, at.workload, at.packed), at.execution.in_flight
    dram_clocks = at.data_clocks
    if in_flight is not None:
        each = dram_clocks / in_flight
        return demand.staged * each, once * each
    streamed = ratio(demand.staged, demand.trips) * launched.stages / 2  # half of the buffers; the rest is in use
    return ratio(demand.staged * dram_clocks, streamed), pick(once > 0, dram_clocks, 0.0)


def _full_block(demand: KernelWork, workload: Rows | VarlenAttention | None, packed: bool) -> Any:
    """Compute the bytes that a block with a whole outer tile moves outside its visits [B]."""
    if demand.sequences:
        return larger(*(_full_block(part, call, packed) for part, call in demand.sequences))
    once = sum(moved.requested for moved in demand.moved if moved.along) / demand.blocks
    if demand.outer is None or workload is None or isinstance(workload, VarlenAttention):
        return once
    axis, tile = demand.outer
    rows = workload.kv_len if axis == "key" else workload.q_len * (workload.group if packed else 1)
    return once * pick(rows > tile, ceil_div(rows, tile) * tile / rows, 1.0)


class EachGrid(NamedTuple):
    """Grids whose tiles are listed, of launches over sequences or under a mask with two edges: points, and grid."""

    parts: tuple[tuple[Any, Grid], ...]


def _grid(demand: KernelWork, workload: Rows | VarlenAttention | None, packed: bool, units: int) -> Grid | EachGrid:
    """Return the blocks of a kernel; all launches of the same work have the same."""
    known = demand.memo.get("grid")
    if known is not None and known[0] is workload and known[1] == packed and known[2] == units:
        found: Grid | EachGrid = known[3]
        return found
    grid = _grid_of(demand, workload, packed, units)
    demand.memo["grid"] = (workload, packed, units, grid)
    return grid


def _grid_of(demand: KernelWork, workload: Rows | VarlenAttention | None, packed: bool, units: int) -> Grid | EachGrid:
    """Return the blocks of a kernel."""
    if demand.outer is None or demand.inner is None:
        return Grid(Spread(((1, 1),)), demand.blocks, units)
    (axis, tile), inner = demand.outer, demand.inner
    listed = bool(demand.sequences) or (workload is not None and needs_list(workload))
    if listed and any(isinstance(size, np.ndarray) for size in (tile, inner, demand.blocks)):
        if demand.sequences:
            return _each_grid(demand, packed, units)
        assert workload is not None
        assert not isinstance(workload, VarlenAttention)
        return _listed_grid(demand, workload, packed, units)
    if demand.sequences:
        copies: dict[Spread, int] = {}
        for part, call in demand.sequences:
            tiles = spread(call, axis, tile, inner, packed)
            copies[tiles] = copies.get(tiles, 0) + int(part.blocks) // tiles.blocks
        parts = tuple(Grid(tiles, many, units) for tiles, many in copies.items())
        return parts[0] if len(parts) == 1 else Grid(merged(copies.items()), 1, units, parts)
    assert workload is not None
    assert not isinstance(workload, VarlenAttention)
    seen = visits(workload, axis, tile, inner, packed)
    if not anywhere(seen.total):
        return Grid(Spread(((1, 1),)), demand.blocks, units)
    return Grid(seen, floor_div(demand.blocks, seen.blocks), units)


def _each_grid(demand: KernelWork, packed: bool, units: int) -> EachGrid:
    """List the tiles of each grid of a launch over sequences among the points."""
    assert demand.outer is not None
    assert demand.inner is not None
    blocks = [part.blocks for part, _ in demand.sequences]
    points, places = _distinct(demand.outer[1], demand.inner, *blocks)
    parts = []
    for number, (tile, inner, *many) in enumerate(points):
        calls = tuple(
            (replace(part, blocks=count), call) for (part, call), count in zip(demand.sequences, many, strict=True)
        )
        one = replace(demand, outer=(demand.outer[0], tile), inner=inner, blocks=sum(many), sequences=calls)
        grid = _grid_of(one, None, packed, units)
        assert not isinstance(grid, EachGrid)
        parts.append((np.flatnonzero(places == number), grid))
    return EachGrid(tuple(parts))


def _listed_grid(demand: KernelWork, workload: Rows, packed: bool, units: int) -> EachGrid:
    """List the tiles of the grids of many calls or tiles, those of equal grids once."""
    assert demand.outer is not None
    axis, tile = demand.outer
    points, places = _distinct(tile, demand.inner, workload.q_len, workload.kv_len, workload.group)
    grids = [
        spread(GridRows(q_len, kv_len, group, workload.mask), axis, outer, inner, packed)
        for outer, inner, q_len, kv_len, group in points
    ]
    grids = [grid if grid.total else Spread(((1, 1),)) for grid in grids]
    together = max(1, MOST_LISTED // max(len(grid.runs) for grid in grids))
    blocks, places = np.broadcast_arrays(demand.blocks, places)  # either may be the same at all points
    parts = []
    for start in range(0, len(places), together):
        here = np.arange(start, min(start + together, len(places)))
        tiles = ListedVisits.of(grids, places[here])
        parts.append((here, Grid(tiles, floor_div(blocks[here], tiles.blocks), units)))
    return EachGrid(tuple(parts))


def _distinct(*columns: Any) -> tuple[list[list[int]], Any]:
    """Return the distinct rows of columns of integers, and the place of each row among them."""
    stacked = np.stack([column.ravel() for column in np.broadcast_arrays(*columns)])
    points, places = np.unique(stacked, axis=1, return_inverse=True)
    return [[int(value) for value in point] for point in points.T.tolist()], places.ravel()
