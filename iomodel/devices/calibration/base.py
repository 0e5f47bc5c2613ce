"""Recognition of a GPU as a shipped device, and the unmeasured part of its hardware file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from iomodel.common.yaml_files import spec_names
from iomodel.devices.calibration.experiments import Facts
from iomodel.devices.device import Hardware, hardware, names_meant, pruned
from iomodel.errors import InputError

DRIVER_NAMES = {
    "NVIDIA H100 80GB HBM3": "h100-sxm5",
    "NVIDIA H200": "h200-sxm",
    "NVIDIA B300 SXM6 AC": "b300",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA RTX 2000 Ada Generation": "rtx-2000-ada",
    "NVIDIA RTX 4000 Ada Generation": "rtx-4000-ada",
    "NVIDIA RTX 5000 Ada Generation": "rtx-5000-ada",
    "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada",
}
"""Driver names that differ from the listed ones. A variant of a card or a laptop chip is not guessed."""


def recognised(facts: Facts) -> str | None:
    """Identify a GPU as a shipped device by name, unless its capability or number of SMs contradicts.

    >>> recognised(Facts("NVIDIA H200", 132, 150 * 2**30, 150 * 2**30, 60 * 2**20, capability="9.0"))
    'h200-sxm'
    """
    meant = [DRIVER_NAMES[facts.name]] if facts.name in DRIVER_NAMES else names_meant(facts.name)
    return meant[0] if len(meant) == 1 and not _conflict(hardware(meant[0]), facts, units=True) else None


def base_of(base: str | os.PathLike[str] | Hardware | None, facts: Facts) -> Hardware | None:
    """Choose the device that supplies the unmeasured figures; raise InputError if it contradicts the facts."""
    if base is None:
        name = recognised(facts)
        return hardware(name) if name else None
    device = base if isinstance(base, Hardware) else hardware(base)
    if conflict := _conflict(device, facts):
        raise InputError(
            f"base: {device.id or device.name} has {conflict}; allowed: a device such as {facts.name}, or none"
        )
    return device


def _conflict(device: Hardware, facts: Facts, units: bool = False) -> str | None:
    theirs = device.compute_capability
    if theirs and facts.capability and theirs != facts.capability:
        return f"compute capability {theirs}, and {facts.name} has {facts.capability}"
    theirs_units = device.compute.units
    if units and theirs_units and theirs_units.value != facts.units:
        return f"{theirs_units.value} SMs, and {facts.name} has {facts.units}"
    return None


def unmeasured(base: Hardware | None, facts: Facts) -> dict[str, Any]:
    """Build the hardware file as plain data from the base, or from the driver; `measured` is that of the base."""
    if base is None:
        return _from_driver(facts)
    data = base.to_dict()
    data.pop("id", None)
    name = base.name.removesuffix(CALIBRATED)
    return {**data, "name": name + CALIBRATED}


CALIBRATED = " (calibrated)"


def _from_driver(facts: Facts) -> dict[str, Any]:
    known = facts.architecture in spec_names("architectures")
    names: Mapping[str, str | None] = {
        "vendor": facts.vendor,
        "architecture": facts.architecture if known else None,
        "compute_capability": facts.capability,
    }
    per_block = facts.sram_per_block or (None if known else facts.sram_per_block_static)
    figures = {
        "memory": {
            "hbm": {"capacity_reported": _told(facts.memory, "B"), "bandwidth": _told(facts.hbm_bandwidth, "B/s")},
            "l2": {"capacity": _told(facts.l2_bytes, "B")},
            "sram": {
                "per_block": _told(per_block, "B"),
                "per_block_static": _told(facts.sram_per_block_static, "B"),
                "per_sm": _told(facts.sram_per_sm, "B"),
            },
        },
        "limits": {
            "threads_per_block": _told(facts.threads_per_block),
            "threads_per_sm": _told(facts.threads_per_sm),
            "warp_size": _told(facts.warp_size),
            "registers_per_sm": _told(facts.registers_per_sm),
        },
        "compute": {"units": _told(facts.units), "clock": {"boost": _told(facts.clock, "Hz")}},
    }
    return pruned({"schema": 1, "name": facts.name + CALIBRATED, **names, **figures})


def _told(value: int | None, unit: str = "") -> dict[str, Any] | None:
    return None if value is None else {"value": value, "unit": unit, "source": "the driver, through torch"}
