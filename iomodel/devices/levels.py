"""Levels of a device's memory: the capacity of all that is inside each boundary."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.common.cache import per_device
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity


@dataclass(frozen=True)
class MemoryLevel:
    """One boundary: the number of units [-], and the capacity of all memories inside one unit [B]."""

    name: str
    units: int
    capacity_bytes: int


@per_device
def memory_levels(device: Hardware) -> tuple[tuple[MemoryLevel, ...], tuple[str, ...]]:
    """Return the levels of a device, from the inside out, and a line for each that lacks a figure.

    An SM holds its registers, its shared memory with the L1 cache, and the memory of its accumulators where it has one.
    The SMs of the largest cluster, which read each other's shared memory, are a unit. The L2 cache is one unit with all
    SMs, or its private slices are units with a share of the SMs each. A last-level cache behind the L2 is one unit with
    all of them.

    >>> from iomodel.devices.device import hardware
    >>> levels, _ = memory_levels(hardware("h100-sxm5"))
    >>> [(level.name, level.units, level.capacity_bytes) for level in levels]
    [('SM', 132, 524288), ('cluster of SMs', 9, 8388608), ('L2 and SMs', 1, 121634816)]
    """
    sizes = {path: int(figure.value) for path, figure in device.quantities.items() if isinstance(figure, Quantity)}
    registers = sizes.get("memory.registers.per_sm")
    if registers is None and "limits.registers_per_sm" in sizes:
        registers = 4 * sizes["limits.registers_per_sm"]
    shared = sizes.get("memory.sram.unified_per_sm")
    if shared is None and {"memory.sram.per_sm", "memory.l1.per_sm"} <= sizes.keys():
        shared = sizes["memory.sram.per_sm"] + sizes["memory.l1.per_sm"]
    units, l2 = sizes.get("compute.units"), sizes.get("memory.l2.capacity")
    needed = {"registers": registers, "L1 cache and shared memory": shared, "number of SMs": units}
    missing = [name for name, figure in needed.items() if figure is None]
    if registers is None or shared is None or units is None:
        lacking = ", ".join(missing)
        return (), (f"the bounds at the SM and at the L2 (on file: no {lacking})",)
    sm = registers + shared + sizes.get("memory.accumulator.per_sm", 0)
    levels: tuple[MemoryLevel, ...] = (MemoryLevel("SM", units, sm),)
    if together := sizes.get("limits.cluster_blocks"):
        levels += (MemoryLevel(CLUSTER, -(-units // together), min(units, together) * sm),)
    if l2 is None:
        return levels, ("the bound at the L2 (no L2 capacity on file)",)
    slices, inside = sizes.get("memory.l2.slices", 1), l2 + units * sm
    levels += (MemoryLevel(L2, slices, -(-inside // slices)),)
    if "memory.llc.capacity" in sizes:
        levels += (MemoryLevel(LAST, 1, sizes["memory.llc.capacity"] + inside),)
    return levels, ()


CLUSTER, L2, LAST = "cluster of SMs", "L2 and SMs", "last-level cache, L2 and SMs"
"""Names of the outer levels."""
