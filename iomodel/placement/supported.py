"""The kernels of an algorithm that support a call on a device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from iomodel.devices.device import Hardware, hardware, list_hardware
from iomodel.errors import InputError
from iomodel.nests.residency import Residency
from iomodel.workloads.attention import Attention
from iomodel.workloads.workload import stored

MOST_NAMED = 6
"""Most devices of a kernel that a message names."""


def supported(label: str, residencies: Sequence[Residency], workload: Attention, device: Hardware) -> list[Residency]:
    """Select the residencies that support a device, a dtype and the features of a call; InputError if none does.

    `label` names the kernels in the error.
    """
    on_device = [residency for residency in residencies if runs_on(residency, device)]
    if not on_device:
        raise InputError(_other_devices(label, residencies, device))
    known = list(dict.fromkeys(dtype for residency in on_device for dtype in residency.dtypes))
    own = stored(workload.dtype)
    if own not in known:
        raise InputError(f"dtype: {workload.dtype!r} given; allowed: {', '.join(known)}, for {label}")
    of_dtype = [residency for residency in on_device if own in residency.dtypes]
    chosen = [residency for residency in of_dtype if set(residency.features) <= set(workload.features)]
    if not chosen:
        lacking = sorted(set(of_dtype[0].features) - set(workload.features))
        raise InputError(f"{lacking[0]}: False given; allowed: True, for {label}")
    specific = [residency for residency in chosen if residency.features]
    return specific or chosen


def runs_on(residency: Residency, device: Hardware) -> bool:
    """Check that a device runs a kernel: by its architecture, or its compute capability."""
    return _runs(residency.architectures, residency.capability, device.architecture, device.compute_capability)


def _runs(
    architectures: tuple[str, ...], capability: tuple[str, ...], architecture: str | None, version: str | None
) -> bool:
    if architectures:
        return architecture in architectures
    least, *most = capability
    have = version or "0.0"
    return _version(least) <= _version(have) <= _version(most[0] if most else have)


def _other_devices(label: str, residencies: Sequence[Residency], device: Hardware) -> str:
    """Build the error that names the devices of a kernel."""
    spans = dict.fromkeys(span for residency in residencies for span in _spans(residency))
    capability = device.compute_capability
    have = f"compute capability {capability}" if capability else device.architecture
    names = sorted(
        {name for residency in residencies for name in _names(residency.architectures, residency.capability)}
    )
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return (
        f"hardware: {device.id or device.name} ({have}) given; allowed: {', '.join(spans)} "
        f"({', '.join(names) or 'no device on file'}), for {label}"
    )


@lru_cache(maxsize=64)
def _names(architectures: tuple[str, ...], capability: tuple[str, ...]) -> tuple[str, ...]:
    """List the shipped devices that run a kernel."""
    known = ((name, hardware(name)) for name in list_hardware())
    return tuple(
        name
        for name, device in known
        if _runs(architectures, capability, device.architecture, device.compute_capability)
    )


def _spans(residency: Residency) -> tuple[str, ...]:
    """Name the architectures or compute capabilities of a kernel."""
    if residency.architectures:
        return residency.architectures
    least, *most = residency.capability
    if most:
        return (f"compute capability {least}" + (f" to {most[0]}" if most[0] != least else ""),)
    return (f"compute capability {least} and later",)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
