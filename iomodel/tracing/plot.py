"""A trace as two pictures: what is on chip over time, and the score matrix tile by tile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.errors import InputError
from iomodel.plots.canvas import COLOURS, GREY, figure, plain, save, subtitle, writable
from iomodel.plots.words import call
from iomodel.tracing.events import Event
from iomodel.tracing.text import named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from iomodel.trace import Trace

MOST_STEPS = 400
"""Events of the first picture; more would be a blur."""
HATCHES = ("", "///", "...", "xxx", "\\\\\\")
"""For buffers beyond the first seven, so that nothing is told by colour alone."""


def drawn(trace: Trace, path: str | PathLike[str] | None, overwrite: bool) -> Figure:
    """Both pictures side by side, written to a file if there is to be one."""
    try:
        if path is not None:
            writable(path, overwrite=overwrite)
        made = figure(f"{trace.algorithm}, {named(trace.tiles)}", 10, 4.6)
        left, right = made.subplots(1, 2, width_ratios=[3, 2])
        _occupancy(left, list(islice(trace.events, MOST_STEPS)), trace)
        _visits(right, made, visits(trace.events))
        if path is not None:
            save(made, path, overwrite=overwrite)
    except InputError as error:
        raise InputError(f"plot: {str(error).removeprefix('output: ')}") from None
    return made


def _occupancy(axes: Any, events: Sequence[Event], trace: Trace) -> None:
    """Buffers by tensor, stacked; what an event finds or makes stays while it runs."""
    names = list(dict.fromkeys(name for event in events for name, _ in event.buffers))
    levels = {name: np.zeros(len(events) + 1) for name in names}
    for i, event in enumerate(events):
        for name, size in event.buffers:
            levels[name][i] += size / 1024
    timed = None not in (trace.rates.bytes_per, trace.rates.flops_per)
    spent = [(event.hbm_time or 0) + (event.compute_time or 0) if timed else 1 for event in events]
    times, below = np.concatenate([[0], np.cumsum(spent)]), np.zeros(len(events) + 1)
    for i, (name, level) in enumerate(levels.items()):
        look = {"facecolor": COLOURS[i % len(COLOURS)], "hatch": HATCHES[i // len(COLOURS) % len(HATCHES)]}
        axes.fill_between(
            times, below, below + level, step="post", linewidth=0, gid=f"buffer {name}", label=name, **look
        )
        below = below + level
    if trace.rates.sram is not None:
        axes.axhline(trace.rates.sram / 1024, color="black", linestyle="--", linewidth=1.2, label="all there is")
    plain(axes)
    axes.set_xlim(0, times[-1] or 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time [{trace.rates.unit}]" if timed else "event", fontsize=10)
    axes.set_ylabel("on chip [KiB]", fontsize=10)
    axes.locator_params(axis="x", nbins=6)
    if not timed or trace.rates.unit == "clk":
        axes.xaxis.set_major_formatter("{x:,.0f}")
    first = f", first {len(events):,} of {trace.count:,} events" if len(events) < trace.count else ""
    subtitle(axes, f"{call(trace.workload)}{first}")
    if names:
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=9, fontsize=8)


def visits(events: Iterable[Event]) -> list[tuple[int, int, int, int]]:
    """The tiles of S as products visit them, in the first kernel and head with any: first and last query row, and key.

    A tile that is visited again is where it was first.
    """
    found: dict[tuple[int, int, int, int], None] = {}
    program: tuple[Any, ...] | None = None
    for event in events:
        if event.op == "MatMul" and program in (None, event[:3]):
            at = {axis: (start, stop) for axis, start, stop in event.tile}
            if "query" in at and "key" in at:
                program = event[:3]
                found[(*at["query"], *at["key"])] = None
    return list(found)


def _visits(axes: Any, made: Any, found: Sequence[tuple[int, int, int, int]]) -> None:
    plain(axes, grid=False)
    axes.set_xlabel("keys", fontsize=10)
    axes.set_ylabel("query rows", fontsize=10)
    subtitle(axes, f"{len(found):,} tiles of the scores, in the order of the visits")
    if not found:
        return
    corners = np.array(found)
    rows, columns = np.unique(corners[:, :2]), np.unique(corners[:, 2:])
    order = np.full((len(rows) - 1, len(columns) - 1), np.nan)
    low, high, left, right = (
        np.searchsorted(edges, corners[:, i]) for i, edges in enumerate((rows, rows, columns, columns))
    )
    for number, (a, b, c, d) in enumerate(zip(low, high, left, right, strict=True), 1):
        order[a:b, c:d] = number
    mesh = axes.pcolormesh(columns, rows, order, cmap="viridis", vmin=1, vmax=max(2, len(found)), edgecolors=GREY)
    mesh.set_linewidth(0.3 if len(found) <= 1024 else 0)
    mesh.set_gid("visits")
    axes.invert_yaxis()
    axes.set_aspect("equal" if 0.2 < rows[-1] / columns[-1] < 5 else "auto")
    made.colorbar(mesh, ax=axes, label="visit")
