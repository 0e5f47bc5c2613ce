"""Limiting resource of a measured kernel: the floor nearest to its time, if one is near."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from iomodel.common.display import figure
from iomodel.devices.quantity import Quantity
from iomodel.studies.diagnosis.facts import BlockGrid
from iomodel.timing.estimate_result import Estimate

CLASSES = {
    "hbm": "memory",
    "l2": "L2/requests",
    "llc": "memory",
    "matrix": "compute",
    "fp32": "compute",
    "exp": "compute",
    "shared memory": "shared memory",
    "steps": "latency/occupancy",
    "tail": "latency/occupancy",
    "launch": "launch",
}
"""The class of each entry of :attr:`iomodel.Estimate.breakdown`."""
FACTOR = 2.0
"""The largest ratio of measured to modelled time at which a resource can still be the limit [-]."""
EAGER = 5e-5
"""The largest host time per launch in an eager framework [s]; see :class:`iomodel.devices.Parameters`."""


@dataclass(frozen=True)
class Diagnosed:
    """A class, the entry of the breakdown nearest to the measured time, and the reasoning."""

    kind: str
    nearest: str
    reasons: tuple[str, ...]


def bound_of(timed: Estimate, seconds: float, blocks: BlockGrid) -> Diagnosed:
    """Name the limit of a kernel with a measured time."""
    floors = timed.breakdown
    reached = {name: value for name, value in floors.items() if value <= seconds}
    nearest = max(reached, key=reached.__getitem__) if seconds < timed.seconds and reached else timed.limited_by
    kind = CLASSES.get(nearest, nearest)
    share = floors[nearest] / seconds
    lines = [f"nearest floor: {kind} ({nearest}), {figure(floors[nearest] * 1e6)} us, {share:.1%} of the time"]
    ratio = seconds / timed.seconds
    if ratio > FACTOR and share < 1 / FACTOR and (kind != "launch" or seconds > EAGER * len(timed.kernels)):
        kind = "latency/occupancy"
        lines.append(
            f"{ratio:,.1f} x the predicted {figure(timed.seconds * 1e6)} us: every resource is idle more than half of "
            "the time"
        )
    elif ratio < 1:
        lines.append(f"faster than the predicted {figure(timed.seconds * 1e6)} us")
    return Diagnosed(kind, nearest, (*lines, *_beside(timed, seconds, blocks)))


def largest_floor(timed: Estimate, kinds: Iterable[str]) -> str:
    """Return the class of several with the largest floor."""
    floors: dict[str, float] = {}
    for name, seconds in timed.breakdown.items():
        kind = CLASSES.get(name, name)
        floors[kind] = max(seconds, floors.get(kind, 0.0))
    return max(kinds, key=lambda kind: floors.get(kind, 0.0))


def _beside(timed: Estimate, seconds: float, blocks: BlockGrid) -> list[str]:
    """List further evidence that separates the classes."""
    lines = []
    units, capacity = blocks.units, timed.rates.l2_capacity
    if units is not None and blocks.idle:
        lines.append(f"{blocks.blocks:,} thread blocks for {units:,} SMs: {blocks.idle:,} SMs never work")
    if capacity is not None and timed.requested_bytes > timed.compulsory_bytes:
        size = f"the {timed.compulsory_bytes:,} B of compulsory traffic"
        if timed.compulsory_bytes <= capacity:
            lines.append(f"{size} fit the L2 of {capacity:,} B: repeated reads hit the L2, not HBM")
        else:
            lines.append(f"{size} exceed the L2 of {capacity:,} B")
    latency = timed.hardware.quantities.get("measured.l2_latency")
    if isinstance(latency, Quantity) and units is not None:
        flying = timed.requested_bytes / seconds * float(latency.value) / min(units, blocks.blocks)
        lines.append(
            f"each busy SM has {flying:,.0f} B in flight (Little's law, L2 latency "
            f"{figure(float(latency.value) * 1e9)} ns)"
        )
    return lines
