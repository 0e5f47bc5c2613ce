"""Time model of a measured kernel, even if its tiles do not fit on chip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.display import figure
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_mapping
from iomodel.counting.cost import Cost
from iomodel.counting.kinds import kind_of
from iomodel.counting.options import only_taken
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity
from iomodel.devices.rates import Rates
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.alphabet import LAUNCH_NAMES, NUMBERS
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import TF32_PRODUCTS
from iomodel.placement.fit import ALONE
from iomodel.placement.implementations import named, stand_in
from iomodel.solving.question import Question
from iomodel.studies.estimate import assembled, estimate
from iomodel.timing.clock import Clock
from iomodel.timing.estimate_result import Estimate
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.parameters import Parameters
from iomodel.timing.work_at_point import demands
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.workload import Shape


@dataclass(frozen=True)
class Change:
    """A kernel that the model can time: algorithm, call, tiles, options and implementation."""

    algorithm: AlgorithmLike
    workload: Shape
    tiles: Mapping[str, int] | None
    options: Mapping[str, Any]
    parameters: Parameters
    implementation: str | Implementation | None = None

    def timed(self, device: Hardware) -> Estimate:
        """Estimate the kernel; InfeasibleError if its tiles do not fit.

        The measured kernel need not be on file, so that the textbook's machine stands in where none is.
        """
        kernels = self.stand_in(device)
        return estimate(
            self.algorithm, self.workload, device, self.tiles, parameters=self.parameters, implementation=kernels,
            **dict(self.options),
        )  # fmt: skip

    def stand_in(self, device: Hardware) -> str | Implementation | None:
        """Return the implementation; else the textbook's name where no kernel on file runs the call, or None."""
        if self.implementation is not None:
            return self.implementation
        kernels = named(self.algorithm, None, device)[1]
        return stand_in(self.algorithm, self.workload, device) if kernels is None else None


@dataclass(frozen=True)
class Modelled:
    """The estimate of a measured kernel, its cost at the given tiles, and a note on the assumption made to time it."""

    change: Change
    estimate: Estimate
    cost: Cost
    note: str | None

    @property
    def settled(self) -> Change:
        """The change with the options and the implementation that the estimate chose."""
        chosen = {**self.change.options, **self.cost.options}
        implementation = self.change.implementation or self.estimate.implementation
        return replace(self.change, options=FrozenDict(chosen), implementation=implementation)


def modelled(change: Change, device: Hardware) -> Modelled:
    """Time an existing kernel; its tiles may exceed the on-chip memory, and are then not held whole."""
    if change.workload.direction == "both":
        raise InputError("direction: 'both' given; allowed: forward or backward, each with a time of its own")
    try:
        timed = change.timed(device)
    except InfeasibleError:
        if change.tiles is None or not isinstance(change.workload, Attention):
            raise
    else:
        return Modelled(change, timed, timed.cost, None)
    sizes = as_mapping("tiles", change.tiles, "{'block_q': 1, 'block_kv': 16}")
    cost = _cost(change, sizes)
    limit, held = device.sram_per_block, sizes.get("block_kv", 1)
    if cost.footprint_bytes <= limit:
        note = f"no kernel declared for {device.name} takes these tiles: timed as one that does without them"
        return Modelled(change, _unheld(change, device, cost), cost, note)
    over = f"the tiles need {cost.footprint_bytes:,} B on chip where a block may use {limit:,} B"
    while held > 1:
        held = -(-held // 2)
        smaller = replace(change, tiles={**sizes, "block_kv": held})
        if _cost(smaller, {**sizes, "block_kv": held}).hbm_bytes != cost.hbm_bytes:
            break
        try:
            timed = smaller.timed(device)
        except InfeasibleError:
            continue
        return Modelled(smaller, timed, cost, f"{over}: timed as if {held} keys were held at a time")
    return Modelled(
        change, _unheld(change, device, cost), cost, f"{over}: timed as if they fitted, at one block per SM"
    )


def _cost(change: Change, sizes: Mapping[str, int]) -> Cost:
    bound = Question.ask(change.algorithm, change.workload, None, options=change.options).bound
    return bound.at(bound.sizes(sizes))


def _unheld(change: Change, device: Hardware, cost: Cost) -> Estimate:
    """Estimate tiles that do not fit, as if all their data were as fast as on-chip memory."""
    sizes = {name: size for name, size in cost.tiles.items() if name not in LAUNCH_NAMES}
    timed = [clock_of(change, device).timed(sizes, None, None, ALONE)]
    return assembled(_question(change, device), lambda: cost, timed, sizes)


def _question(change: Change, device: Hardware) -> Question:
    kernels = change.stand_in(device)
    return Question.ask(
        change.algorithm, change.workload, device, kernels, change.options, parameters=change.parameters
    )


def clock_of(change: Change, device: Hardware) -> Clock:
    """Build the timer of a kernel for any tiles, with the work of each launch."""
    question = _question(replace(change, workload=as_attention(change.workload)), device)
    options = (question.bound if change.tiles else question.untiled).options
    taken = only_taken(question.algorithm, change.workload.direction, options)
    return question.choosing(taken).timer(tiled=bool(change.tiles))[1]


def work_of(kernel: Modelled, device: Hardware) -> Iterable[KernelWork]:
    """Evaluate the work of the kernels at the given tiles."""
    tiles = {name: size for name, size in kernel.cost.tiles.items() if name not in LAUNCH_NAMES}
    call = kernel.change.workload
    if isinstance(call, Attention):
        return clock_of(kernel.settled, device).demand((call.head_dim, call.value_dim), tiles)
    sizes = {**tiles, **{name: kernel.cost.options[name] for name in NUMBERS & kernel.cost.options.keys()}}
    return demands(find_algorithm(kernel.change.algorithm), kind_of(call), (), PIPELINED).at(call, call, sizes, sizes)


@dataclass(frozen=True)
class Floor:
    """A lower bound on the time of a kernel, with its reason [s]."""

    seconds: float
    reason: str


def physical_floor(timed: Estimate) -> Floor:
    """Compute the least time of a call on a device, also where a warm L2 already holds its operands."""
    known, device = timed.rates, timed.hardware
    have = {path: float(q.value) for path, q in device.quantities.items() if isinstance(q, Quantity)}
    peaks = [have.get(f"compute.peak.{known.dtype}{more}", 0.0) for more in ("", "_matrix", "_fp16acc")]
    if known.dtype == "fp32":
        peaks.append(have.get("compute.peak.tf32", 0.0) / TF32_PRODUCTS)
    flops, size = timed.cost.useful_flops, timed.compulsory_bytes
    floors = [Floor(flops / max(peaks), f"{flops:,} useful FLOP at {figure(max(peaks) / 1e12)} TFLOP/s")]
    cached = int(have.get("memory.l2.capacity", 0.0) + have.get("memory.llc.capacity", 0.0))
    l2 = _l2_bandwidth(have, known)
    bus = f"{figure(known.hbm_peak / 1e9, 5)} GB/s"
    if l2 is None:
        floors.append(Floor(size / known.hbm_peak, f"{size:,} compulsory B at {bus}"))
    else:  # everything passes the L2; only the excess over the caches comes from HBM
        floors.append(Floor(size / l2, f"{size:,} compulsory B at the L2's {figure(l2 / 1e9, 5)} GB/s"))
        beyond = max(0, size - cached)
        floors.append(Floor(beyond / known.hbm_peak, f"{beyond:,} compulsory B that no cache holds at {bus}"))
    return max(floors, key=lambda floor: floor.seconds)


def _l2_bandwidth(have: Mapping[str, float], known: Rates) -> float | None:
    """Return the highest L2 bandwidth on file, at least the bandwidth of HBM."""
    figures = [have[path] for path in ("measured.l2_bandwidth", "memory.l2.bandwidth") if path in have]
    return max(*figures, known.hbm_peak) if figures else None
