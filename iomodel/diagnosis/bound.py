"""What binds a measured kernel: the floor that comes nearest to its time, unless none comes near."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.diagnosis.facts import Grid
from iomodel.estimate_result import Estimate
from iomodel.quantity import Quantity

CLASSES = {
    "hbm": "memory",
    "l2": "L2/requests",
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
"""How many times the model's time a measured one may be before no resource can be what it waits for."""
EAGER = 5e-5
"""What a host may take for a launch in an eager framework [s]; see :class:`iomodel.Parameters`."""


@dataclass(frozen=True)
class Bound:
    """A class, the entry of the breakdown nearest to the measured time, and the reasoning."""

    kind: str
    nearest: str
    reasons: tuple[str, ...]


def bound_of(found: Estimate, seconds: float, blocks: Grid) -> Bound:
    """What binds a kernel that takes so long."""
    floors = found.breakdown
    reached = {name: value for name, value in floors.items() if value <= seconds}
    nearest = max(reached, key=reached.__getitem__) if seconds < found.seconds and reached else found.bound
    kind = CLASSES.get(nearest, nearest)
    share = floors[nearest] / seconds
    lines = [f"nearest floor: {kind} ({nearest}), {floors[nearest] * 1e6:,.4g} us, {share:.1%} of the time"]
    ratio = seconds / found.seconds
    if ratio > FACTOR and share < 1 / FACTOR and (kind != "launch" or seconds > EAGER * len(found.kernels)):
        kind = "latency/occupancy"
        lines.append(
            f"{ratio:,.1f} times the model's {found.seconds * 1e6:,.4g} us: no resource is busy half of the time, "
            "what is left is waiting"
        )
    elif ratio < 1:
        lines.append(f"faster than the model's {found.seconds * 1e6:,.4g} us")
    return Bound(kind, nearest, (*lines, *_beside(found, seconds, blocks)))


def _beside(found: Estimate, seconds: float, blocks: Grid) -> list[str]:
    """What else tells the classes apart."""
    lines = []
    units, capacity = blocks.units, found.rates.l2_capacity
    if units is not None and blocks.idle:
        lines.append(f"{blocks.blocks:,} thread blocks for {units:,} SMs: {blocks.idle:,} SMs never work")
    if capacity is not None and found.requested_bytes > found.compulsory_bytes:
        size = f"the {found.compulsory_bytes:,} B of compulsory traffic"
        if found.compulsory_bytes <= capacity:
            lines.append(f"{size} fit the L2 of {capacity:,} B: what is asked for again comes from there, not from HBM")
        else:
            lines.append(f"{size} exceed the L2 of {capacity:,} B")
    latency = found.hardware.quantities.get("measured.l2_latency")
    if isinstance(latency, Quantity) and units is not None:
        flying = found.requested_bytes / seconds * float(latency.value) / min(units, blocks.blocks)
        lines.append(
            f"a busy SM has {flying:,.0f} B on their way at a time (Little's law, L2 latency "
            f"{float(latency.value) * 1e9:,.4g} ns)"
        )
    return lines
