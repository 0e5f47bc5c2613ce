"""What a diagnosis says without any model of time: what is asked for again, working sets, thread blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iomodel.check import check
from iomodel.diagnosis.model import Modelled, clock_of
from iomodel.errors import IOModelError
from iomodel.estimate_result import Estimate
from iomodel.hardware import Hardware
from iomodel.quantity import Quantity
from iomodel.workload import Attention

OPERANDS = {"forward": {"Q", "K", "V", "O"}, "backward": {"Q", "K", "V", "dO", "dQ", "dK", "dV"}}
"""The tensors that any algorithm moves at least once; others are statistics and intermediate results."""


@dataclass(frozen=True)
class Redundancy:
    """A tensor: what is asked for, each byte of it once, and what any algorithm moves [B]."""

    tensor: str
    requested_bytes: int
    once_bytes: int
    compulsory_bytes: int

    @property
    def times(self) -> float:
        """How many times it moves [-]."""
        return self.requested_bytes / self.once_bytes

    @property
    def spare_bytes(self) -> int:
        """What need not move [B]."""
        return self.requested_bytes - self.compulsory_bytes

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {**self.__dict__, "times": self.times, "spare_bytes": self.spare_bytes}


def redundancies(found: Modelled, device: Hardware) -> tuple[Redundancy, ...]:
    """Every tensor that moves, over all kernels of the call."""
    tiles = {name: size for name, size in found.cost.tiles.items() if name not in ("warps", "stages")}
    call = found.change.workload
    requested: dict[str, int] = {}
    once: dict[str, int] = {}
    for demand in clock_of(found.change, device).demand((call.head_dim, call.value_dim), tiles):
        for moved in demand.moved:
            requested[moved.name] = requested.get(moved.name, 0) + moved.requested
            once[moved.name] = max(once.get(moved.name, 0), moved.distinct)
    operands = OPERANDS[found.change.workload.direction]
    return tuple(
        Redundancy(name, size, once[name], once[name] if name in operands else 0) for name, size in requested.items()
    )


@dataclass(frozen=True)
class WorkingSet:
    """Bytes that are used together, and whether the memories hold them; None where the capacity is unknown."""

    name: str
    bytes: int
    fits_sm: bool | None
    fits_l2: bool | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return dict(self.__dict__)


def working_sets(call: Attention, device: Hardware, block: int) -> tuple[WorkingSet, ...]:
    """K of a head, K and V of a head and of all heads, and the tiles of a thread block."""
    key = call.kv_len * call.head_dim * call.kv_element_size
    both = key if call.latent else key + call.kv_len * call.value_dim * call.kv_element_size
    heads = call.batch * call.kv_heads
    sm, l2 = sm_capacity(device), _size(device, "memory.l2.capacity")
    named = {
        "K of one head": key,
        "K and V of one head": both,
        **({f"K and V of all {heads:,} heads": both * heads} if heads > 1 else {}),
        "tiles of one block": block,
    }
    return tuple(
        WorkingSet(name, size, None if sm is None else size <= sm, None if l2 is None else size <= l2)
        for name, size in named.items()
        if size
    )


def sm_capacity(device: Hardware) -> int | None:
    """L1 cache and shared memory of an SM together, or its shared memory [B]."""
    paths = ("memory.sram.unified_per_sm", "memory.sram.per_sm")
    return next((size for path in paths if (size := _size(device, path)) is not None), None)


def _size(device: Hardware, path: str) -> int | None:
    figure = device.quantities.get(path)
    return int(figure.value) if isinstance(figure, Quantity) else None


@dataclass(frozen=True)
class Grid:
    """Thread blocks of the longest kernel against SMs [-]; None where the device's file does not say how many."""

    blocks: int
    units: int | None
    waves: int
    idle: int | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return dict(self.__dict__)


def grid(found: Estimate, blocks: int | None) -> Grid:
    """The grid as launched where that is given, else as the algorithm has it."""
    longest = max(found.kernels, key=lambda kernel: kernel.seconds)
    units = found.rates.units
    if blocks is None:
        count, waves = longest.blocks, longest.waves
    else:
        count, waves = blocks, 1 if units is None else -(-blocks // units)
    return Grid(count, units, waves, None if units is None else max(0, units - count))


def on_chip(found: Modelled, device: Hardware) -> int:
    """What the tiles take of shared memory where kernels are declared for the device, else all that is live [B]."""
    if not found.cost.tiles:
        return 0
    if found.note is None and "warps" in found.estimate.tiles:
        try:
            change = found.change
            options = dict(change.options)
            placed = check(change.algorithm, change.workload, device, found.estimate.tiles, **options)
        except IOModelError:
            pass
        else:
            return placed.resources["shared memory"].used
    return found.cost.footprint_bytes
