"""Breakdown of time: the seconds of each resource, for one or several estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, figure, plain, subtitle
from iomodel.plots.estimated import Estimated, estimates, name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDER = ("matrix", "exp", "fp32", "shared memory", "l2", "hbm", "steps", "tail", "launch")
"""Order of the bars in all panels, from the matrix units outwards; other resources come last."""
QUIET, BINDS = "#BFD9E8", COLOURS[0]
"""Colours of the other resources, and of the limiting one."""


def breakdown(given: Estimated | Sequence[Estimated]) -> Figure:
    """Draw the seconds of every resource as bars, one panel per estimate, with the total as a line across its panel.

    Resources work at the same time, so the bars do not sum to the total.

    Parameters
    ----------
    given : Estimate or list of Estimate
        Estimates to draw, on a common time scale.

    Raises
    ------
    InputError
        The argument is not an estimate, or an empty list; matplotlib is missing.

    Examples
    --------
    >>> from iomodel import plots
    >>> plots.breakdown([])
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: estimates: [] given; allowed: an iomodel.estimate(...), or a list of them
    """
    drawn = estimates(given)
    rows = [len(estimate.breakdown) for estimate in drawn]
    devices = list(dict.fromkeys(estimate.hardware.name for estimate in drawn))
    title = "Time per resource" + (f" on {devices[0]}" if len(devices) == 1 else "")
    picture = figure(title, height=1.1 + sum(0.27 * n + 0.55 for n in rows))
    panels = picture.subplots(len(drawn), 1, sharex=True, squeeze=False, height_ratios=[n + 1 for n in rows])[:, 0]
    longest = max(max([estimate.seconds, *estimate.breakdown.values()]) for estimate in drawn)
    factor, unit = words.scale(longest, "s")
    for number, (axes, estimate) in enumerate(zip(panels, drawn, strict=True)):
        where = "" if len(devices) == 1 else f" on {estimate.hardware.name}"
        _panel(axes, estimate, factor, f"estimate {number + 1}")
        subtitle(axes, f"{name_of(estimate)}{where}: {words.short(estimate.seconds, 's')}, bound by {estimate.bound}")
        if number + 1 < len(drawn):
            axes.tick_params(bottom=False, labelbottom=False)
    panels[-1].set_xlim(0, 1.06 * longest / factor)
    panels[-1].set_xlabel(f"time [{unit}]", fontsize=10)
    return picture


def _panel(axes: Any, estimate: Estimated, factor: float, gid: str) -> None:
    names = sorted(estimate.breakdown, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    plain(axes)
    axes.grid(visible=False, axis="y")
    for row, name in enumerate(names):
        binds, time = name == estimate.bound, estimate.breakdown[name]
        style = {
            "facecolor": BINDS if binds else QUIET,
            "edgecolor": "black" if binds else GREY,
            "hatch": None if binds else "///",
        }
        axes.barh(row, time / factor, height=0.72, linewidth=0.8, gid=f"{gid} {name}", **style)
        text = words.short(time, "s") + (" (binds)" if binds else "")
        axes.annotate(text, (1, row), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points",
                      va="center", fontsize=9, fontweight="bold" if binds else "normal")  # fmt: skip
    axes.axvline(estimate.seconds / factor, color="black", linewidth=1.4, linestyle="--", gid=f"{gid} total", zorder=3)
    axes.annotate("total", (estimate.seconds / factor, 0), xycoords=("data", "axes fraction"), xytext=(3, 2),
                  textcoords="offset points", fontsize=8, rotation=90, va="bottom")  # fmt: skip
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.invert_yaxis()
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if name == estimate.bound else "normal")
