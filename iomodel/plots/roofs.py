"""The roofs of a device: the rates that bandwidths and matrix units allow at each arithmetic intensity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from iomodel.check import as_device
from iomodel.errors import SpecError, UnknownNameError
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.quantity import Quantity
from iomodel.workload import DType


@dataclass(frozen=True)
class Roofs:
    """What a device allows.

    Attributes
    ----------
    device, dtype : str
        The device's name; the type whose peak is the flat roof.
    bandwidths : mapping of name to Quantity
        HBM first, then L2 where a figure is on file [B/s].
    peak : Quantity
        Peak rate of the matrix units [FLOP/s].
    attained : Quantity or None
        The rate that a large GEMM was measured to reach, where that is on file [FLOP/s].
    """

    device: str
    dtype: str
    bandwidths: Mapping[str, Quantity]
    peak: Quantity
    attained: Quantity | None

    @property
    def ridge(self) -> float:
        """The intensity from which on HBM does not bind [FLOP/B]."""
        return float(self.peak.value / self.bandwidths["HBM"].value)

    def at(self, intensity: float) -> float:
        """The rate that HBM and the matrix units allow at an intensity [FLOP/B], in [FLOP/s]."""
        return float(min(self.peak.value, intensity * self.bandwidths["HBM"].value))


def roofs(hardware: Hardware | str, dtype: str = "bf16") -> Roofs:
    """The roofs of a device for one data type.

    Parameters
    ----------
    hardware : Hardware or str
        A device with figures of HBM bandwidth and of the peak for `dtype`.
    dtype : str
        The data type of the matrix products.

    Raises
    ------
    UnknownNameError, SpecError
        An unknown name; a figure that the device lacks.

    Examples
    --------
    >>> found = roofs("h100-sxm5")
    >>> round(found.ridge), found.at(100.0)
    (295, 335200000000000.0)
    """
    device = as_device(hardware)
    if not isinstance(dtype, str) or dtype not in get_args(DType):
        raise UnknownNameError("dtype", dtype, get_args(DType))
    figures = {path: found for path, found in device.quantities.items() if isinstance(found, Quantity)}

    def figure(*paths: str) -> Quantity | None:
        return next((figures[path] for path in paths if path in figures and figures[path].value > 0), None)

    hbm, peak = figure("memory.hbm.bandwidth"), figure(f"compute.peak.{dtype}")
    if hbm is None or peak is None:
        missing = "memory.hbm.bandwidth" if hbm is None else f"compute.peak.{dtype}"
        raise SpecError(f"{missing}: {device.id or device.name} lacks it; a roofline needs it")
    l2 = figure("measured.l2_bandwidth", "memory.l2.bandwidth")
    bandwidths = {"HBM": hbm} | ({"L2": l2} if l2 is not None else {})
    return Roofs(device.name, dtype, FrozenDict(bandwidths), peak, figure(f"measured.gemm_{dtype}"))
