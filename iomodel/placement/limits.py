"""Figures of a device that determine which tiles fit it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iomodel.common.arithmetic import anywhere, larger
from iomodel.common.cache import per_device
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity
from iomodel.errors import SpecError

COLUMN = 128 * 4
"""A column of tensor memory: 128 lanes of 32 bits [B]."""
LEAST_ALLOCATED = 32
"""Smallest allocation of tensor memory [columns]."""


@dataclass(frozen=True)
class DeviceLimits:
    """Figures of a device that determine feasibility."""

    label: str
    id: str
    shared_per_block: int
    shared_per_sm: int
    shared_reserved: int
    shared_granularity: int
    registers_per_thread: int
    registers_per_sm: int
    register_granularity: int
    warp: int
    threads_per_block: int
    warps_per_sm: int
    blocks_per_sm: int
    tensor_columns: int
    rows: int
    warpgroup_rows: int | None
    columns: int
    depth: int
    arch: int

    @property
    def on_chip(self) -> int:
        """Most bytes held by one block in shared memory, registers and tensor memory [B]."""
        return self.shared_per_block + 4 * self.registers_per_sm + COLUMN * self.tensor_columns

    def blocks(
        self, shared: Any, registers: Any, warps: int, columns: Any = 0, producers: int = 0, producer_registers: int = 0
    ) -> dict[str, Any]:
        """Compute the blocks per SM that each resource has room for; the use of a block may be arrays.

        A block takes `shared` bytes and `columns` of tensor memory, and `registers` in each thread of its `warps`;
        `producers` are further warps with registers of their own.
        """
        taken = -(-(shared + self.shared_reserved) // self.shared_granularity) * self.shared_granularity
        of_warp = -(-registers * self.warp // self.register_granularity) * self.register_granularity
        file = warps * of_warp + producers * self.warp * producer_registers
        room = {
            "shared memory": self.shared_per_sm // larger(1, taken),
            "registers": self.registers_per_sm // larger(1, file),
            "warps": self.warps_per_sm // (warps + producers),
            "blocks": self.blocks_per_sm,
        }
        if anywhere(columns):
            room["tensor memory"] = self.tensor_columns // _allocated(columns)
        return room

    def registers_limit(self, warps: int, taken: int = 0) -> int:
        """Compute the registers available per thread: whole granules of the file, less those taken [-]."""
        granules = (self.registers_per_sm - taken) // warps // self.register_granularity
        return min(self.registers_per_thread, granules * self.register_granularity // self.warp)


def _allocated(columns: Any) -> Any:
    """Round to an allocation of tensor memory: a power of two from 32 on [columns]."""
    allocated: Any = LEAST_ALLOCATED
    while anywhere(columns > allocated):
        allocated = allocated * (1 + (columns > allocated))
    return allocated


@per_device
def device_of(hardware: Hardware) -> DeviceLimits:
    """Collect the limits of a device, or raise SpecError naming the missing figure."""
    quantities = hardware.quantities

    def figure(path: str) -> int:
        quantity = quantities.get(path)
        if not isinstance(quantity, Quantity):
            raise SpecError(f"{path}: {hardware.id or hardware.name} lacks it; the layout of a kernel needs it")
        return int(quantity.value)

    sram, limits, mma, tensor = "memory.sram", "limits", "compute.mma", "memory.accumulator"
    return DeviceLimits(
        label=hardware.name,
        id=hardware.label,
        shared_per_block=figure(f"{sram}.per_block"),
        shared_per_sm=figure(f"{sram}.per_sm"),
        shared_reserved=figure(f"{sram}.reserved_per_block"),
        shared_granularity=figure(f"{sram}.allocation_granularity"),
        registers_per_thread=figure(f"{limits}.registers_per_thread"),
        registers_per_sm=figure(f"{limits}.registers_per_sm"),
        register_granularity=figure(f"{limits}.register_granularity_per_warp"),
        warp=figure(f"{limits}.warp_size"),
        threads_per_block=figure(f"{limits}.threads_per_block"),
        warps_per_sm=figure(f"{limits}.warps_per_sm"),
        blocks_per_sm=figure(f"{limits}.blocks_per_sm"),
        tensor_columns=figure(f"{tensor}.per_sm") // COLUMN if f"{tensor}.per_sm" in quantities else 0,
        rows=figure(f"{mma}.rows"),
        warpgroup_rows=figure(f"{mma}.warpgroup_rows") if f"{mma}.warpgroup_rows" in quantities else None,
        columns=figure(f"{mma}.columns"),
        depth=figure(f"{mma}.depth"),
        arch=int("".join(filter(str.isdigit, hardware.compute_capability or "0"))),
    )
