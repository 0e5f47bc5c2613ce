"""Text of sizes, times and events for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iomodel.common.display import Table, figure, sizes_text
from iomodel.studies.trace.events import Event
from iomodel.studies.trace.rates import TraceRates


def readable(size: float) -> str:
    """Format a number of bytes with a unit that is a power of 1024.

    >>> readable(48 * 1024)
    '48.0 KiB'
    """
    if size < 1024:
        return f"{size:,.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:,.1f} {unit}"
    return f"{size / 1024:,.1f} TiB"


def share_of(size: int, whole: int | None) -> str:
    """Format a size as a share of a memory of known size."""
    return "" if whole is None else f" ({100 * size / whole:.1f} %)"


def timed(time: float, unit: str) -> str:
    """Format a time as whole clocks or as seconds."""
    return f"{time:,.0f}" if unit == "clk" else figure(time)


def named(tiles: Mapping[str, int]) -> str:
    """Format tiles for a title."""
    return sizes_text(tiles)


def event_table(title: str, events: Iterable[Event], rates: TraceRates) -> Table:
    """Build a table of events, one line each, with columns for known times."""
    known = [rates.bytes_per is not None, rates.flops_per is not None]
    times = [f">{label} [{rates.unit}]" for label, there in zip(("HBM", "math"), known, strict=True) if there]
    columns = ("", "tile", ">size", ">SRAM level", ">HBM level", *times)
    return Table(title, columns, [_row(event, rates) for event in events])


def _row(event: Event, rates: TraceRates) -> tuple[str, ...]:
    size = readable(event.bytes) if event.tensor else f"{event.work:,}{' FLOP' if event.op == 'MatMul' else ''}"
    level = readable(event.sram) + share_of(event.sram, rates.sram)
    known = [time for time in (event.hbm_time, event.compute_time) if time is not None]
    times = [timed(time, rates.unit) if time else "" for time in known]
    return event.op, event.where, size, level, readable(event.hbm), *times
