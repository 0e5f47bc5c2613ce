"""The tables of the page of the hardware: devices, and the documents that they cite."""

from typing import Any

from markdown_table import table

from iomodel.devices.overview import every_device
from iomodel.devices.sources import sources

COLUMNS = ["name", "device", "SRAM", "HBM", "bandwidth", "peak, bf16 or fp16", "ridge point [FLOP/B]", "sources"]


def devices() -> str:
    """Return the table of every device, as Markdown."""
    return table(COLUMNS, (device_row(name, device) for name, device in every_device().items()), right=range(2, 7))


def device_row(name: str, device: Any) -> list[str]:
    """Return the cells of one device."""
    sram, memory = device.memory.sram.per_block, device.memory.hbm
    peak = device.compute.peak.bf16 or device.compute.peak.fp16
    figures = (sram, memory.capacity, memory.bandwidth, peak)
    ridge = f"{peak.value / memory.bandwidth.value:.0f}" if peak and memory.bandwidth else ""
    cited = dict.fromkeys(key for figure in figures if figure is not None for key in figure.source)
    cells = ["" if figure is None else str(figure) for figure in figures]
    return [f"`{name}`", device.name, *cells, ridge, ", ".join(f"`{key}`" for key in cited)]


def documents() -> str:
    """Return the table of the cited documents, as Markdown."""
    return table(("Source", "Kind", "Document"), (document_row(*item) for item in sources().items()))


def document_row(key: str, source: Any) -> tuple[str, ...]:
    """Return the cells of one document."""
    by = ", ".join(filter(None, (source.publisher, source.version)))
    title = f"[{source.title}]({source.url})" if source.url else source.title
    return (f"`{key}`", source.kind, f"{title}{', ' * bool(by)}{by}")
