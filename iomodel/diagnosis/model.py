"""What the time model says of a kernel that somebody has measured, whether or not its tiles could lie on chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.cost import Cost, check_requirements, cost_at, tally_for, tile_sizes
from iomodel.errors import InfeasibleError, InputError
from iomodel.estimate import assembled, estimate
from iomodel.estimate_result import Estimate
from iomodel.expressions import only_taken
from iomodel.fitting import Clock, clock_for
from iomodel.hardware import Hardware
from iomodel.parameters import Parameters
from iomodel.quantity import Quantity
from iomodel.rates import Rates, rates
from iomodel.symbols import LAUNCH_NAMES
from iomodel.validation import as_mapping
from iomodel.workload import Attention


@dataclass(frozen=True)
class Change:
    """A kernel that the model can time: algorithm, call, tiles and options."""

    algorithm: str
    workload: Attention
    tiles: Mapping[str, int] | None
    options: Mapping[str, Any]
    parameters: Parameters

    def timed(self, device: Hardware) -> Estimate:
        """Its estimate; InfeasibleError where its tiles do not fit."""
        return estimate(
            self.algorithm, self.workload, device, self.tiles, parameters=self.parameters, **dict(self.options)
        )


@dataclass(frozen=True)
class Modelled:
    """The estimate of a measured kernel, its cost as given, and what the model had to assume to time it."""

    change: Change
    estimate: Estimate
    cost: Cost
    note: str | None


def modelled(change: Change, device: Hardware) -> Modelled:
    """Time a kernel that exists; tiles beyond the on-chip memory then cannot be held whole."""
    if change.workload.direction == "both":
        raise InputError("direction: 'both' given; allowed: forward or backward, each with a time of its own")
    try:
        found = change.timed(device)
    except InfeasibleError:
        if change.tiles is None:
            raise
    else:
        return Modelled(change, found, found.cost, None)
    given = as_mapping("tiles", change.tiles, "{'block_q': 1, 'block_kv': 16}")
    cost = _cost(change, given)
    limit, held = device.sram_per_block, given.get("block_kv", 1)
    if cost.footprint_bytes <= limit:
        note = f"no kernel declared for {device.name} takes these tiles: timed as one that does without them"
        return Modelled(change, _unheld(change, device, cost), cost, note)
    over = f"the tiles need {cost.footprint_bytes:,} B on chip where a block may use {limit:,} B"
    while held > 1:
        held = -(-held // 2)
        smaller = Change(
            change.algorithm, change.workload, {**given, "block_kv": held}, change.options, change.parameters
        )
        if _cost(smaller, {**given, "block_kv": held}).hbm_bytes != cost.hbm_bytes:
            break
        try:
            found = smaller.timed(device)
        except InfeasibleError:
            continue
        return Modelled(smaller, found, cost, f"{over}: timed as if {held} keys were held at a time")
    return Modelled(change, _unheld(change, device, cost), cost, f"{over}: timed as if they fitted, a block an SM")


def _cost(change: Change, given: Mapping[str, int]) -> Cost:
    tally, complete = tally_for(change.algorithm, change.workload, change.options, tiled=True)
    sizes = tile_sizes(change.algorithm, tally.tiles, given)
    check_requirements(find_algorithm(change.algorithm), change.workload, complete, sizes)
    return cost_at(tally, change.workload, sizes, complete)


def _unheld(change: Change, device: Hardware, cost: Cost) -> Estimate:
    """The estimate of tiles that do not fit: what does not lie on chip is taken to be reached as fast."""
    sizes = {name: size for name, size in cost.tiles.items() if name not in LAUNCH_NAMES}
    clock = clock_of(change, device)
    timed = [clock.timed(sizes, None, None, 1)]
    return assembled(change.algorithm, change.workload, device, cost, timed, clock.rates, change.parameters, sizes)


def clock_of(change: Change, device: Hardware) -> Clock:
    """What times any tiles of a kernel, and says what each of its kernels asks for."""
    tiled = bool(change.tiles)
    _, complete = tally_for(change.algorithm, change.workload, change.options, tiled=tiled)
    options = only_taken(find_algorithm(change.algorithm), change.workload.direction, complete)
    known = rates(device, change.workload.dtype)
    return clock_for(change.algorithm, change.workload, device, options, change.parameters, known)


@dataclass(frozen=True)
class Floor:
    """What no kernel can beat, and why [s]."""

    seconds: float
    reason: str


def physical_floor(found: Estimate) -> Floor:
    """The least time of a call on a device, also where a warm L2 already holds its operands."""
    known, device = found.rates, found.hardware
    have = {path: float(q.value) for path, q in device.quantities.items() if isinstance(q, Quantity)}
    peaks = [have.get(f"compute.peak.{known.dtype}{more}", 0.0) for more in ("", "_matrix", "_fp16acc")]
    flops, size = found.cost.useful_flops, found.compulsory_bytes
    floors = [Floor(flops / max(peaks), f"{flops:,} useful FLOP at {max(peaks) / 1e12:,.4g} TFLOP/s")]
    cached = int(have.get("memory.l2.capacity", 0.0) + have.get("memory.llc.capacity", 0.0))
    l2 = _l2_bandwidth(have, known)
    bus = f"{known.hbm_peak / 1e9:,.5g} GB/s"
    if l2 is None:
        floors.append(Floor(size / known.hbm_peak, f"{size:,} compulsory B at {bus}"))
    else:  # all but what the caches may hold comes from HBM, and everything through the L2
        floors.append(Floor(size / l2, f"{size:,} compulsory B at the L2's {l2 / 1e9:,.5g} GB/s"))
        beyond = max(0, size - cached)
        floors.append(Floor(beyond / known.hbm_peak, f"{beyond:,} compulsory B that no cache holds at {bus}"))
    return max(floors, key=lambda floor: floor.seconds)


def _l2_bandwidth(have: Mapping[str, float], known: Rates) -> float | None:
    """The highest figure on file, never below that of HBM."""
    found = [have[path] for path in ("measured.l2_bandwidth", "memory.l2.bandwidth") if path in have]
    return max(*found, known.hbm_peak) if found else None
