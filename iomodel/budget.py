"""The on-chip memory that tiles must fit: of a device, or a bare number."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.errors import InputError, shown
from iomodel.hardware import Hardware
from iomodel.hardware import hardware as find_hardware
from iomodel.validation import as_integer


@dataclass(frozen=True)
class Budget:
    """Memory for one thread block.

    Attributes
    ----------
    amount : int
        How much there is, in `unit`.
    unit : {"B", "elements"}
        Bytes, where every buffer counts with its own width; or elements, all alike (the papers' M).
    label : str
        The device that the figure is of; empty for a bare number.
    alignment : int
        Tiles are multiples of it [rows].
    """

    amount: int
    unit: str
    label: str
    alignment: int

    def __str__(self) -> str:
        size = f"{self.amount:,} {self.unit} of SRAM"
        return f"{size} ({self.label})" if self.label else size

    def elements(self, element_size: int) -> int:
        """The most elements that could be held at once, for lower bounds [elements]."""
        return self.amount if self.unit == "elements" else max(1, self.amount // element_size)


def budget_of(
    hardware: Hardware | str | None, sram_bytes: int | None, sram_elements: int | None, alignment: int | None
) -> Budget:
    """The budget that exactly one of the three gives.

    >>> budget_of(None, None, 51200, None)
    Budget(amount=51200, unit='elements', label='', alignment=1)
    """
    given = [value for value in (hardware, sram_bytes, sram_elements) if value is not None]
    if len(given) != 1:
        raise InputError(
            f"hardware, sram_bytes, sram_elements: {len(given)} of them given; allowed: exactly one, "
            'such as hardware("h100-sxm5")'
        )
    step = None if alignment is None else as_integer("alignment", alignment)
    if sram_elements is not None:
        amount = as_integer("sram_elements", sram_elements)
        return Budget(amount, "elements", "", step or 1)
    if sram_bytes is not None:
        amount = as_integer("sram_bytes", sram_bytes)
        return Budget(amount, "B", "", step or 1)
    device = find_hardware(hardware) if isinstance(hardware, str) else hardware
    if not isinstance(device, Hardware):
        raise InputError(f"hardware: {shown(hardware)} given; allowed: an iomodel.Hardware or the name of one")
    figure = device.memory.sram.per_block
    doubt = "" if figure is None or figure.verified else ", a figure that is unverified"
    return Budget(device.sram_per_block, "B", device.name + doubt, step or device.tile_alignment)
