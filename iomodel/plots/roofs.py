"""Roofs of a device: the rates that bandwidths and matrix units allow at each arithmetic intensity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from iomodel.common.frozen_dict import FrozenDict
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.quantity import Quantity
from iomodel.errors import SpecError, UnknownNameError
from iomodel.workloads.call import DType


@dataclass(frozen=True)
class Roofs:
    """The rate limits of one device for one data type.

    Attributes
    ----------
    device, dtype : str
        Name of the device; data type of the peak.
    bandwidths : mapping of name to Quantity
        HBM first, then L2 if known [B/s].
    peak : Quantity
        Peak rate of the matrix units [FLOP/s].
    attained : Quantity or None
        Measured rate of a large GEMM, if known [FLOP/s].
    """

    device: str
    dtype: str
    bandwidths: Mapping[str, Quantity]
    peak: Quantity
    attained: Quantity | None

    @property
    def ridge(self) -> float:
        """Intensity above which HBM is not the limit [FLOP/B]."""
        return float(self.peak.value / self.bandwidths["HBM"].value)

    def at(self, intensity: float) -> float:
        """Compute the rate that HBM and the matrix units allow at an intensity [FLOP/B], in [FLOP/s]."""
        return float(min(self.peak.value, intensity * self.bandwidths["HBM"].value))


def roofs(hardware: Hardware | str, dtype: str = "bf16") -> Roofs:
    """Return the roofs of a device for one data type.

    Parameters
    ----------
    hardware : Hardware or str
        A device with an HBM bandwidth and a peak for `dtype`.
    dtype : str
        The data type of the matrix products.

    Raises
    ------
    UnknownNameError, SpecError
        A name is unknown; the device lacks a figure.

    Examples
    --------
    >>> limits = roofs("h100-sxm5")
    >>> round(limits.ridge), limits.at(100.0)
    (295, 335200000000000.0)
    """
    device = as_device(hardware)
    if not isinstance(dtype, str) or dtype not in get_args(DType):
        raise UnknownNameError("dtype", dtype, get_args(DType))
    figures = {path: quantity for path, quantity in device.quantities.items() if isinstance(quantity, Quantity)}

    def figure(*paths: str) -> Quantity | None:
        return next((figures[path] for path in paths if path in figures and figures[path].value > 0), None)

    hbm, peak = figure("memory.hbm.bandwidth"), figure(f"compute.peak.{dtype}")
    if hbm is None or peak is None:
        missing = "memory.hbm.bandwidth" if hbm is None else f"compute.peak.{dtype}"
        raise SpecError(f"{missing}: {device.id or device.name} lacks it; a roofline needs it")
    l2 = figure("measured.l2_bandwidth", "memory.l2.bandwidth")
    bandwidths = {"HBM": hbm} | ({"L2": l2} if l2 is not None else {})
    return Roofs(device.name, dtype, FrozenDict(bandwidths), peak, figure(f"measured.gemm_{dtype}"))
