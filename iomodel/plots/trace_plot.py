"""Pictures of a trace: on-chip memory over time, and the score matrix tile by tile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.errors import InputError
from iomodel.plots.canvas import COLOURS, GREY, figure, plain, save, subtitle, writable
from iomodel.plots.styles import current
from iomodel.plots.words import call
from iomodel.studies.trace.events import Event
from iomodel.studies.trace.text import named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from iomodel.studies.trace.trace import Trace

MOST_STEPS = 400
"""Most events in the first picture; more would be illegible."""
HATCHES = ("", "///", "...", "xxx", "\\\\\\")
"""Hatches of buffers beyond the first seven, so that no distinction depends on colour alone."""


def drawn(trace: Trace, path: str | PathLike[str] | None, overwrite: bool) -> Figure:
    """Draw both pictures side by side, and write them to a file if a path is given."""
    try:
        if path is not None:
            writable(path, overwrite=overwrite)
        picture = figure(f"{trace.algorithm}, {named(trace.tiles)}", 10, 7.6 if current().narrow else 4.6)
        left, right = picture.subplots(2, 1) if current().narrow else picture.subplots(1, 2, width_ratios=[3, 2])
        _occupancy(left, list(islice(trace.events, MOST_STEPS)), trace)
        _visits(right, picture, visits(trace.events))
        if path is not None:
            save(picture, path, overwrite=overwrite)
    except InputError as error:
        raise InputError(f"plot: {str(error).removeprefix('out: ')}") from None
    return picture


def _occupancy(axes: Any, events: Sequence[Event], trace: Trace) -> None:
    """Draw buffers by tensor, stacked; a buffer counts during every event that uses it."""
    names = list(dict.fromkeys(name for event in events for name, _ in event.buffers))
    levels = {name: np.zeros(len(events) + 1) for name in names}
    for i, event in enumerate(events):
        for name, size in event.buffers:
            levels[name][i] += size / 1024
    timed = None not in (trace.rates.bytes_per, trace.rates.flops_per)
    durations = [(event.hbm_time or 0) + (event.compute_time or 0) if timed else 1 for event in events]
    times, below = np.concatenate([[0], np.cumsum(durations)]), np.zeros(len(events) + 1)
    for i, (name, level) in enumerate(levels.items()):
        style = {"facecolor": COLOURS[i % len(COLOURS)], "hatch": HATCHES[i // len(COLOURS) % len(HATCHES)]}
        axes.fill_between(
            times, below, below + level, step="post", linewidth=0, gid=f"buffer {name}", label=name, **style
        )
        below = below + level
    if trace.rates.sram is not None:
        axes.axhline(trace.rates.sram / 1024, color="black", linestyle="--", linewidth=1.2, label="SRAM limit")
    plain(axes)
    axes.set_xlim(0, times[-1] or 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time [{trace.rates.unit}]" if timed else "event", fontsize=10)
    axes.set_ylabel("on chip [KiB]", fontsize=10)
    axes.locator_params(axis="x", nbins=4 if current().narrow else 6)
    if not timed or trace.rates.unit == "clk":
        axes.xaxis.set_major_formatter("{x:,.0f}")
    first = f", first {len(events):,} of {trace.count:,} events" if len(events) < trace.count else ""
    subtitle(axes, f"{call(trace.workload)}{first}")
    if names:
        ncols = 4 if current().narrow else 9
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=ncols, fontsize=8)


def visits(events: Iterable[Event]) -> list[tuple[int, int, int, int]]:
    """List the tiles of S in the order of their products, in the first kernel and head: query rows, then keys.

    A tile visited again keeps its first position.
    """
    tiles: dict[tuple[int, int, int, int], None] = {}
    program: tuple[Any, ...] | None = None
    for event in events:
        if event.op == "MatMul" and program in (None, event[:3]):
            ranges = {axis: (start, stop) for axis, start, stop in event.tile}
            if "query" in ranges and "key" in ranges:
                program = event[:3]
                tiles[(*ranges["query"], *ranges["key"])] = None
    return list(tiles)


def _visits(axes: Any, picture: Any, tiles: Sequence[tuple[int, int, int, int]]) -> None:
    plain(axes, grid=False)
    axes.set_xlabel("keys", fontsize=10)
    axes.set_ylabel("query rows", fontsize=10)
    subtitle(axes, f"{len(tiles):,} tiles of the scores, in order of first visit")
    if not tiles:
        return
    corners = np.array(tiles)
    rows, columns = np.unique(corners[:, :2]), np.unique(corners[:, 2:])
    order = np.full((len(rows) - 1, len(columns) - 1), np.nan)
    low, high, left, right = (
        np.searchsorted(edges, corners[:, i]) for i, edges in enumerate((rows, rows, columns, columns))
    )
    for number, (a, b, c, d) in enumerate(zip(low, high, left, right, strict=True), 1):
        order[a:b, c:d] = number
    mesh = axes.pcolormesh(columns, rows, order, cmap="cividis", vmin=1, vmax=max(2, len(tiles)), edgecolors=GREY)
    mesh.set_linewidth(0.3 if len(tiles) <= 1024 else 0)
    mesh.set_gid("visits")
    axes.invert_yaxis()
    axes.set_aspect("equal" if 0.2 < rows[-1] / columns[-1] < 5 else "auto")
    picture.colorbar(mesh, ax=axes, label="visit")
