"""Data of a device on the page: the budget of the tiles, and the rates of its roofline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from iomodel.devices.device import Hardware, hardware
from iomodel.devices.quantity import Quantity
from iomodel.devices.rates import has_rates, rates
from iomodel.workloads.call import DType


def device(gpu: Hardware) -> dict[str, Any]:
    """Collect the figures in base units with their sources, omitting unknown ones.

    >>> from iomodel.devices.device import hardware
    >>> device(hardware("h100-sxm5"))["sram"]
    {'value': 232448, 'source': 'nvidia-cccl'}
    """
    figures = {path: figure for path, figure in gpu.quantities.items() if isinstance(figure, Quantity)}

    def plain(*paths: str) -> dict[str, Any] | None:
        figure = next((figures[path] for path in paths if path in figures and figures[path].value > 0), None)
        if figure is None:
            return None
        doubt = {} if figure.verified else {"unverified": True}
        return {"value": _whole(figure.value), "source": ", ".join(figure.source), **doubt}

    peaks = {name: plain(f"compute.peak.{name}") for name in get_args(DType)}
    for name, figure in peaks.items():
        if figure is not None and has_rates(gpu, name):
            figure["value"] = _whole(rates(gpu, name).peak)  # a card may reach more than its datasheet states
    data = {
        "name": gpu.name,
        "alignment": gpu.tile_alignment,
        "sram": plain("memory.sram.per_block"),
        "hbm": plain("memory.hbm.bandwidth"),
        "l2": plain("measured.l2_bandwidth", "memory.l2.bandwidth"),
        "peak": {name: figure for name, figure in peaks.items() if figure is not None},
    }
    return {name: value for name, value in data.items() if value is not None}


def devices(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Collect the data of several devices, given by name or by the path of a file."""
    loaded = [hardware(name) for name in names]
    return {gpu.id or gpu.name: device(gpu) for gpu in loaded}


def _whole(value: float) -> int | float:
    return int(value) if float(value).is_integer() else float(value)
