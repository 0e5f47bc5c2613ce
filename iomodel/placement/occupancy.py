"""Blocks of any kernel that share an SM, from what one of them takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iomodel.common.display import LIMIT, Mark, Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.quantities import quantity
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError
from iomodel.placement.limits import device_of


@dataclass(frozen=True)
class Occupancy(Result):
    """The blocks of a kernel that share an SM.

    Attributes
    ----------
    device : str
        Name of the device.
    threads, registers, shared_bytes : int
        Threads of a block [-]; registers of a thread [-]; shared memory of a block [B].
    room : mapping of str to int
        Blocks for which each resource of an SM has room [-].
    warps_per_sm : int
        Most warps of an SM [-].
    warps : int
        Warps of a block [-].
    """

    derived = ("blocks_per_sm", "limited_by", "occupancy")

    device: str
    threads: int
    registers: int
    shared_bytes: int
    warps: int
    warps_per_sm: int
    room: Mapping[str, int]

    @property
    def blocks_per_sm(self) -> int:
        """Blocks that share an SM [-]."""
        return min(self.room.values())

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that have room for no more."""
        return tuple(name for name, blocks in self.room.items() if blocks == self.blocks_per_sm)

    @property
    def occupancy(self) -> float:
        """Resident warps over the most of an SM [-]."""
        return self.blocks_per_sm * self.warps / self.warps_per_sm

    def headline(self) -> str:
        """Return the answer in a few words."""
        return f"{self.blocks_per_sm} blocks per SM of {self.device}"

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        taken = f"{self.threads:,} threads of {self.registers} registers, {self.shared_bytes:,} B of shared memory"
        rows = [
            ("blocks per SM", str(self.blocks_per_sm), "-"),
            ("limited by", Mark(", ".join(self.limited_by), LIMIT), ""),
            *((f"  room in {name}", f"{blocks:,}", "blocks") for name, blocks in self.room.items()),
            ("resident warps", f"{self.blocks_per_sm * self.warps}", f"of {self.warps_per_sm}"),
            ("occupancy", f"{100 * self.occupancy:.1f}", "%"),
        ]
        return [Table(f"{taken} on {self.device}", ("", ">value", "unit"), rows)]


@strict
def occupancy(hardware: Hardware | str, *, threads: int, registers: int = 32, shared_bytes: int | str = 0) -> Occupancy:
    """Compute the blocks of a kernel that share an SM, from what one of them takes.

    :func:`iomodel.check` knows what a tile takes; this is for any kernel, with the figures that a compiler prints.

    Parameters
    ----------
    hardware : Hardware or str
        A device with shared memory and registers on file.
    threads : int
        Threads of a block [-].
    registers : int
        Registers of a thread [-].
    shared_bytes : int or str
        Shared memory of a block, static and dynamic, without what the driver reserves [B].

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown; a block takes more than one may; the device lacks a figure.

    Examples
    --------
    >>> shared = occupancy("a100-sxm4-80gb", threads=128, registers=168, shared_bytes="48 KiB")
    >>> shared.blocks_per_sm, shared.limited_by, shared.occupancy
    (3, ('shared memory', 'registers'), 0.1875)
    """
    device = as_device(hardware)
    limits = device_of(device)
    block, each = as_integer("threads", threads), as_integer("registers", registers)
    shared = as_integer("shared_bytes", quantity("shared_bytes", shared_bytes), least=0)
    taken = {
        "threads": (block, limits.threads_per_block),
        "registers": (each, limits.registers_per_thread),
        "shared_bytes": (shared, limits.shared_per_block),
    }
    for name, (size, most) in taken.items():
        if size > most:
            raise InputError(f"{name}: {size:,} given; allowed: up to {most:,}, what a block of {device.name} may have")
    warps = -(-block // limits.warp)
    room = {name: int(blocks) for name, blocks in limits.blocks(shared, each, warps).items()}
    if not min(room.values()):
        most = limits.registers_limit(warps)
        raise InputError(f"registers: {each} given with {block} threads; allowed: up to {most} in a block of so many")
    return Occupancy(device.label, block, each, shared, warps, limits.warps_per_sm, FrozenDict(room))
