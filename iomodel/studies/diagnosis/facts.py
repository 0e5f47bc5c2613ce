"""Facts of a diagnosis that need no time model: repeated requests, working sets, thread blocks."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.common.results import Record
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity
from iomodel.errors import IOModelError
from iomodel.studies.check import check
from iomodel.studies.diagnosis.model import Modelled, work_of
from iomodel.timing.estimate_result import Estimate
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.linear import WEIGHT_QUARTERS, Linear
from iomodel.workloads.workload import Shape

OPERANDS = {
    ("attention", "forward"): {"Q", "K", "V", "O"},
    ("attention", "backward"): {"Q", "K", "V", "dO", "dQ", "dK", "dV"},
    ("linear", "forward"): {
        "X",
        "Y",
        "bias",
        *(f"{w}{more}" for w in ("W", "W_gate", "W_up") for more in ("", "_scale")),
    },
}
"""The tensors that any algorithm moves at least once; others are statistics and intermediate results."""


@dataclass(frozen=True)
class Redundancy(Record):
    """The traffic of a tensor: requested bytes, distinct bytes, and bytes that any algorithm moves [B]."""

    derived = ("times", "spare_bytes")

    tensor: str
    requested_bytes: int
    once_bytes: int
    compulsory_bytes: int

    @property
    def times(self) -> float:
        """Number of times that each distinct byte is requested [-]."""
        return self.requested_bytes / self.once_bytes

    @property
    def spare_bytes(self) -> int:
        """Avoidable traffic [B]."""
        return self.requested_bytes - self.compulsory_bytes


def redundancies(kernel: Modelled, device: Hardware) -> tuple[Redundancy, ...]:
    """Sum the traffic of every tensor over all kernels of the call."""
    call = kernel.change.workload
    requested: dict[str, int] = {}
    once: dict[str, int] = {}
    for demand in work_of(kernel, device):
        for moved in demand.moved:
            requested[moved.name] = requested.get(moved.name, 0) + moved.requested
            once[moved.name] = max(once.get(moved.name, 0), moved.distinct)
    operands = OPERANDS[call.operation, call.direction]
    return tuple(
        Redundancy(name, size, once[name], once[name] if name in operands else 0) for name, size in requested.items()
    )


@dataclass(frozen=True)
class WorkingSet(Record):
    """Bytes that are used together, and their fit in the memories; None if the capacity is unknown."""

    name: str
    bytes: int
    fits_sm: bool | None
    fits_l2: bool | None


def working_sets(call: Shape, device: Hardware, block: int) -> tuple[WorkingSet, ...]:
    """Size the operands that are used together, and the tiles of a thread block."""
    sm, l2 = sm_capacity(device), _size(device, "memory.l2.capacity")
    operands = _operands_of_layer(call) if isinstance(call, Linear) else _keys_and_values(as_attention(call))
    return tuple(
        WorkingSet(name, size, None if sm is None else size <= sm, None if l2 is None else size <= l2)
        for name, size in {**operands, "tiles of one block": block}.items()
        if size
    )


def _operands_of_layer(layer: Linear) -> dict[str, int]:
    """Size X and W of a linear layer [B]."""
    x = layer.groups * layer.rows * layer.in_features * layer.element_size
    w = -(-layer.parameters * WEIGHT_QUARTERS[layer.weight_dtype] // 32)
    return {"X": x, "W": w, "X and W": x + w}


def _keys_and_values(call: Attention) -> dict[str, int]:
    """Size K of a head, K and V of a head and of all heads [B]."""
    key = -(-call.kv_len * call.head_dim * call.kv_size // 32)
    both = key if call.latent else key + -(-call.kv_len * call.value_dim * call.kv_size // 32)
    heads = call.batch * call.kv_heads
    return {
        "K of one head": key,
        "K and V of one head": both,
        **({f"K and V of all {heads:,} heads": both * heads} if heads > 1 else {}),
    }


def sm_capacity(device: Hardware) -> int | None:
    """Return the unified L1 cache and shared memory of an SM, or its shared memory [B]."""
    paths = ("memory.sram.unified_per_sm", "memory.sram.per_sm")
    return next((size for path in paths if (size := _size(device, path)) is not None), None)


def _size(device: Hardware, path: str) -> int | None:
    figure = device.quantities.get(path)
    return int(figure.value) if isinstance(figure, Quantity) else None


@dataclass(frozen=True)
class BlockGrid(Record):
    """The thread blocks of the longest kernel and the SMs [-]; None if the device's file has no number of SMs."""

    blocks: int
    units: int | None
    waves: int
    idle: int | None


def grid(timed: Estimate, blocks: int | None) -> BlockGrid:
    """Return the launched grid if given, otherwise the grid of the algorithm."""
    longest = max(timed.kernels, key=lambda launch: launch.seconds)
    units = timed.rates.units
    if blocks is None:
        count, waves = longest.blocks, longest.waves
    else:
        count, waves = blocks, 1 if units is None else -(-blocks // units)
    return BlockGrid(count, units, waves, None if units is None else max(0, units - count))


def on_chip(kernel: Modelled, device: Hardware) -> int:
    """Compute the shared memory of the tiles if kernels are declared for the device, else all live bytes [B]."""
    if not kernel.cost.tiles:
        return 0
    if kernel.note is None and "warps" in kernel.estimate.tiles:
        try:
            change = kernel.settled
            placed = check(
                change.algorithm, as_attention(change.workload), device, kernel.estimate.tiles,
                implementation=change.implementation, **dict(change.options),
            )  # fmt: skip
        except IOModelError:
            pass
        else:
            return placed.resources["shared memory"].used
    return kernel.cost.footprint_bytes
