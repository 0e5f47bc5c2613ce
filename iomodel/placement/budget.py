"""On-chip memory budgets of tiles, from a device or a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

from iomodel.common.option_groups import listing, options_in
from iomodel.common.quantities import quantity
from iomodel.common.results import Record
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Budget(Record):
    """The on-chip memory of one thread block.

    Attributes
    ----------
    amount : int
        Size, in `unit`.
    unit : {"B", "elements"}
        Bytes, with the width of each buffer; or elements of any width (the papers' M).
    label : str
        Name of the device; empty for a number.
    alignment : int
        Alignment of the tiles [rows].
    """

    amount: int
    unit: str
    label: str
    alignment: int

    def __str__(self) -> str:
        size = f"{self.amount:,} {self.unit} of SRAM"
        return f"{size} ({self.label})" if self.label else size

    @property
    def memory(self) -> dict[str, int]:
        """The size as the argument of :func:`iomodel.lower_bounds`."""
        return {"sram_bytes" if self.unit == "B" else "sram_elements": self.amount}

    def elements(self, narrowest: int) -> int:
        """Return the most elements of `narrowest` quarters of a bit held at once, for lower bounds [elements]."""
        return self.amount if self.unit == "elements" else max(1, 32 * self.amount // narrowest)


class BudgetOptions(TypedDict, total=False):
    """A bare budget in place of a device.

    Parameters
    ----------
    sram_bytes : int or str, optional
        On-chip memory, a bare budget in place of a device [B]; with a unit, such as "227 KiB", too.
    sram_elements : int, optional
        On-chip memory in elements, the papers' M.
    alignment : int, optional
        Tiles of one memory are multiples of it [rows]: that of the device (16) by default, 1 for a bare budget.
    """

    sram_bytes: int | str | None
    sram_elements: int | None
    alignment: int | None


def takes_budget(function: F) -> F:
    """List the options of a bare budget before the further ones of a function."""
    return listing(options_in(BudgetOptions).values(), further=True)(function)


def budget_in(options: dict[str, Any]) -> dict[str, Any]:
    """Take a bare budget, as far as it is given, out of the options of a call."""
    given = {name: options.pop(name, None) for name in BudgetOptions.__annotations__}
    given["sram_bytes"] = quantity("sram_bytes", given["sram_bytes"])
    return {name: value for name, value in given.items() if value is not None}


def budget_of(
    hardware: Hardware | str | None, sram_bytes: int | str | None, sram_elements: int | None, alignment: int | None
) -> Budget:
    """Build the budget from exactly one of the first three arguments.

    >>> budget_of(None, None, 51200, None)
    Budget(amount=51200, unit='elements', label='', alignment=1)
    """
    sources = [value for value in (hardware, sram_bytes, sram_elements) if value is not None]
    if len(sources) != 1:
        raise InputError(
            f"hardware, sram_bytes, sram_elements: {len(sources)} values given; allowed: exactly one, "
            'such as hardware("h100-sxm5")'
        )
    step = None if alignment is None else as_integer("alignment", alignment)
    if sram_elements is not None:
        amount = as_integer("sram_elements", sram_elements)
        return Budget(amount, "elements", "", step or 1)
    if sram_bytes is not None:
        amount = as_integer("sram_bytes", sram_bytes)
        return Budget(amount, "B", "", step or 1)
    assert hardware is not None  # the one source that is left
    device = as_device(hardware)
    figure = device.memory.sram.per_block
    doubt = "" if figure is None or figure.verified else ", unverified"
    return Budget(device.sram_per_block, "B", device.name + doubt, step or device.tile_alignment)
