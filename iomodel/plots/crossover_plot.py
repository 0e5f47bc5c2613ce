"""Algorithms relative to the first over a length, a width, the batch or the memory, with their crossings."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING, Any

from iomodel.errors import InputError, shown
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, MARKERS, drawing, legend, log_ticks, place_ticks, powers_of_two
from iomodel.studies.crossovers.contenders import METRICS
from iomodel.studies.crossovers.crossovers_result import Crossovers
from iomodel.studies.crossovers.tables import tiles_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APART = 1.25
"""Least ratio between consecutive labelled crossings [-]."""
LINEAR = 4.0
"""Largest value relative to the first algorithm on a linear axis; beyond it the axis is logarithmic [-]."""
Curves = Mapping[str, list[tuple[int, float]]]
"""Points of each algorithm: place on the axis, and value relative to that of the first."""


def crossover(crossovers: Crossovers) -> Figure:
    """Draw the metric of each algorithm relative to the first, and mark the points where the best one changes.

    Parameters
    ----------
    crossovers : Crossovers
        Result of :func:`iomodel.crossovers`.

    Returns
    -------
    matplotlib.figure.Figure
        The first algorithm is the line at 1, and the axis is linear unless another one moves more than four times
        as much. A ring marks each point at which the best algorithm changes, except those close above another; a dotted
        line marks the value of a formula, if there is one.

    Raises
    ------
    InputError
        The argument is not a Crossovers; matplotlib is missing.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> w = iomodel.Attention(q_len=1, head_dim=64)
    >>> crossings = iomodel.crossovers(["flash1", "standard"], w, tiles={"block_q": 64, "block_kv": 64})
    >>> picture = plots.crossover(crossings)  # doctest: +SKIP
    """
    if not isinstance(crossovers, Crossovers):
        raise InputError(f"crossovers: {shown(crossovers)} given; allowed: the result of iomodel.crossovers")
    _, name, _, _ = METRICS[crossovers.metric]
    names = [contender.declaration.name for contender in crossovers.contenders]
    labels = names if len({*names}) == len(names) else crossovers.labels
    title, text = f"{name[0].upper()}{name[1:]}: {', '.join(labels)}", f"{_call(crossovers)}; {tiles_of(crossovers)}"
    picture, axes = drawing(title, text, 4.3 + 0.2 * len(labels))
    curves = _relative(crossovers)
    highest = max((value for curve in curves.values() for _, value in curve), default=1.0)
    axes.set(xscale="log", yscale="linear" if highest <= LINEAR else "log")
    for number, (label, drawn) in enumerate(curves.items()):
        style = "--" if crossovers.contenders[number].declaration.approximates else "-"
        axes.plot(*zip(*drawn, strict=True) if drawn else ([], []), color=COLOURS[number % len(COLOURS)],
                  marker=MARKERS[number % len(MARKERS)], markersize=3.5, linewidth=1.5, linestyle=style, zorder=3,
                  label=label + (" (approximate)" if style == "--" else ""), gid=f"curve {label}")  # fmt: skip
    if highest <= LINEAR:
        axes.set_ylim(0, 1.05 * max(highest, 1.0))
    _mark(axes, crossovers, curves)
    _formulas(axes, crossovers)
    _ticks(axes, crossovers, f"{name} over that of {next(iter(curves))}")
    legend(picture, 2)
    return picture


def _relative(crossovers: Crossovers) -> Curves:
    """Divide the values of each algorithm by those of the first, at the points where both are known."""
    first = next(iter(crossovers.values.values()))
    return {
        label: [
            (point, value / base)
            for point, value, base in zip(crossovers.points, values, first, strict=True)
            if value and base
        ]
        for label, values in crossovers.values.items()
    }


def _call(crossovers: Crossovers) -> str:
    """Describe the call without the varied dimension."""
    text = words.call(crossovers.workload)
    w = crossovers.workload
    queries, keys = words.counted(w.q_len, "query", "queries"), words.counted(w.kv_len, "key")
    lengths = f"{queries} x {keys}"
    varied = {"length": "as many keys as queries", "q_len": keys, "kv_len": queries}.get(crossovers.over, lengths)
    width = f"d = {w.head_dim}" + (f", d_v = {w.value_dim}" if w.value_dim != w.head_dim else "")
    text = text.replace(lengths, varied)
    if crossovers.over == "batch":
        return text.removeprefix(f"batch {w.batch}, ")
    return text.replace(f"{width}, ", "") if crossovers.over == "head_dim" else text


def _mark(axes: Any, crossovers: Crossovers, curves: Curves) -> None:
    """Draw a ring at each point where the best algorithm changes, on the curve of the new one."""
    last_marked = 0.0
    for first, _, least in [run for run in crossovers.winners[1:] if run[2]]:
        value = _value(curves[least[0]], first)
        if value is None or first < APART * last_marked:
            continue  # too close to the last label to be legible
        last_marked = first
        axes.plot([first], [value], marker="o", markersize=9, markerfacecolor="none", markeredgecolor="black",
                  linestyle="none", zorder=4, gid=f"change {first}")  # fmt: skip
        axes.annotate(f"{first:,}", (first, value), xytext=(5, -12), textcoords="offset points", fontsize=8,
                      color="black", zorder=5)  # fmt: skip


def _value(curve: list[tuple[int, float]], point: int) -> float | None:
    """Interpolate the value at a point linearly in the logarithm of the place."""
    below, above = ([p for p in curve if p[0] <= point], [p for p in curve if p[0] >= point])
    if not below or not above:
        return None
    (x0, y0), (x1, y1) = below[-1], above[0]
    share = 0.0 if x0 == x1 else (log(point) - log(x0)) / (log(x1) - log(x0))
    return (1 - share) * y0 + share * y1


def _formulas(axes: Any, crossovers: Crossovers) -> None:
    """Draw a dotted line per formula within the range, once per pair."""
    for pair in crossovers.unordered:
        if pair.formula is None or not crossovers.start <= pair.formula.value <= crossovers.limit:
            continue
        axes.axvline(pair.formula.value, color=GREY, linewidth=1.1, linestyle=":", zorder=1,
                     label=f"formula, {pair.challenger} = {pair.incumbent}: {pair.formula.value:,.4g}",
                     gid=f"formula {pair.challenger} {pair.incumbent}")  # fmt: skip


def _ticks(axes: Any, crossovers: Crossovers, name: str) -> None:
    """Place round numbers on both axes."""
    if axes.get_yscale() == "log":
        place_ticks(axes.yaxis, log_ticks(*axes.get_ylim()), lambda value: f"{value:,.4g}")
    else:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
    axes.set_ylabel(f"{name} [-]", fontsize=10)
    place_ticks(axes.xaxis, powers_of_two(crossovers.start, crossovers.limit), lambda value: f"{value:,.0f}")
    axes.set_xlim(crossovers.start / 1.1, max(crossovers.limit, crossovers.start + 1) * 1.1)
    of = f" [{crossovers.axis.unit}]" if crossovers.axis.unit != "-" else ""
    axes.set_xlabel(f"{crossovers.axis.meaning}, ${crossovers.axis.letter}${of}", fontsize=10)
