"""The table of all shipped devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from iomodel.common.display import Table
from iomodel.devices.device import Hardware, hardware, list_hardware

EXTRA = ("bf16 or fp16 peak", "HBM bandwidth", "HBM", "ridge [FLOP/B]", "SRAM per block", "units", "device")


def every_device(names: Iterable[str] | None = None) -> dict[str, Hardware]:
    """Load shipped devices, by default all, keyed by name."""
    return {name: hardware(name) for name in (list_hardware() if names is None else names)}


def overview(names: Iterable[str] | None = None, notes: Sequence[str] = ()) -> Any:
    """Build a table of shipped devices, by default all, with notes below; unknown figures are left empty."""
    sizes = (">SRAM per block", ">HBM", ">HBM bandwidth", ">bf16 or fp16 peak", ">ridge [FLOP/B]", ">units")
    devices = every_device(names)
    simulated = sum(device.simulated for device in devices.values())
    real = len(devices) - simulated
    parts = [f"{real} device{'s' * (real != 1)}"] * bool(real) + [f"{simulated} simulated for teaching"] * bool(
        simulated
    )
    title = ", and ".join(parts)
    return Table(title, ("name", "device", *sizes), [_row(*item) for item in devices.items()], notes, extra=EXTRA)


def _row(name: str, device: Hardware) -> tuple[str, ...]:
    memory, compute = device.memory, device.compute
    figures = (
        memory.sram.per_block,
        memory.hbm.capacity,
        memory.hbm.bandwidth,
        compute.peak.bf16 or compute.peak.fp16,
        f"{ridge:,.1f}" if (ridge := device.ridge.get("bf16") or device.ridge.get("fp16")) else None,
        compute.units,
    )
    return name, device.name, *("" if figure is None else str(figure) for figure in figures)
