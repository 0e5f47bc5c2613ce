"""Pareto front of deployments: throughput of a device against speed of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iomodel.errors import InputError, shown
from iomodel.planning.formatting import layout_text
from iomodel.planning.pareto_result import Pareto
from iomodel.plots.canvas import COLOURS, FAINT, GREY, MARKERS, drawing, legend, round_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pareto(result: Pareto) -> Figure:
    """Draw all points of a search, the front as a line with a marker per device, and ring the cheapest point.

    Parameters
    ----------
    result : Pareto
        Result of :func:`iomodel.pareto`.

    Returns
    -------
    matplotlib.figure.Figure
        Both axes are logarithmic; dominated points are small and grey.

    Raises
    ------
    InputError
        The argument is not a Pareto; matplotlib is missing.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> result = iomodel.pareto("llama-3-8b", "h100-sxm5", prompt=1024, output=128, replica_devices=1)
    >>> picture = plots.pareto(result)  # doctest: +SKIP
    """
    if not isinstance(result, Pareto):
        raise InputError(f"result: {shown(result)} given; allowed: the result of iomodel.pareto")
    text = f"{result.prompt:,} + {result.output:,} tokens; {len(result.front)} points on the front"
    picture, axes = drawing(f"{result.model}: throughput of a device and speed of a user", text)
    axes.set(xscale="log", yscale="log", xlabel="output tokens/s of a user", ylabel="output tokens/s of a device")
    for axis in (axes.xaxis, axes.yaxis):
        round_ticks(axis)
    speeds = [
        (p.tokens_per_second_per_user, p.tokens_per_second_per_device) for p in (*result.dominated, *result.front)
    ]
    others = speeds[: len(result.dominated)]
    if others:
        axes.plot(*zip(*others, strict=True), ".", color=GREY, alpha=0.4, markersize=3, gid="dominated",
                  label="not on the front")  # fmt: skip
    front = speeds[len(result.dominated) :]
    axes.plot(*zip(*front, strict=True), color=FAINT, linewidth=1.5, zorder=2, gid="front")
    for number, device in enumerate(dict.fromkeys(point.device for point in result.front)):
        own = [speed for speed, point in zip(front, result.front, strict=True) if point.device == device]
        axes.plot(*zip(*own, strict=True), MARKERS[number % len(MARKERS)], color=COLOURS[number % len(COLOURS)],
                  markersize=5, zorder=3, label=device, gid=f"front {device}")  # fmt: skip
    best = result.cheapest
    if best is not None:
        x, y = best.tokens_per_second_per_user, best.tokens_per_second_per_device
        axes.plot([x], [y], "o", markersize=12, markerfacecolor="none", markeredgecolor="black", gid="cheapest")
        words = f"cheapest: {layout_text(best.layout)}, batch {best.batch:,}"
        axes.annotate(words, (x, y), xytext=(8, 8), textcoords="offset points", fontsize=8, parse_math=False)
    legend(picture, 3)
    return picture
