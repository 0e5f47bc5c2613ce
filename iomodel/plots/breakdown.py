"""Where the time goes: the seconds of each resource, for one estimate or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, figure, plain, subtitle
from iomodel.plots.estimated import Estimated, estimates, name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDER = ("matrix", "exp", "fp32", "shared memory", "l2", "hbm", "steps", "tail", "launch")
"""From the matrix units outwards, alike in all panels; resources that are not named here come last."""
QUIET, BINDS = "#BFD9E8", COLOURS[0]
"""The resources that do not bind, and the one that does."""


def breakdown(given: Estimated | Sequence[Estimated]) -> Figure:
    """Draw the seconds of every resource as bars, one panel an estimate; the total is a line across its panel.

    Resources work at the same time, so the bars do not add up to the total.

    Parameters
    ----------
    given : Estimate or list of Estimate
        What to draw, on one scale of time.

    Raises
    ------
    InputError
        Something else, or an empty list; matplotlib is missing.

    Examples
    --------
    >>> from iomodel import plots
    >>> plots.breakdown([])
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: estimates: [] given; allowed: an iomodel.estimate(...), or a list of such
    """
    found = estimates(given)
    rows = [len(one.breakdown) for one in found]
    devices = list(dict.fromkeys(one.hardware.name for one in found))
    title = "Where the time goes" + (f" on {devices[0]}" if len(devices) == 1 else "")
    made = figure(title, height=1.1 + sum(0.27 * n + 0.55 for n in rows))
    panels = made.subplots(len(found), 1, sharex=True, squeeze=False, height_ratios=[n + 1 for n in rows])[:, 0]
    longest = max(max([one.seconds, *one.breakdown.values()]) for one in found)
    factor, unit = words.scale(longest, "s")
    for number, (axes, one) in enumerate(zip(panels, found, strict=True)):
        where = "" if len(devices) == 1 else f" on {one.hardware.name}"
        _panel(axes, one, factor, f"estimate {number + 1}")
        subtitle(axes, f"{name_of(one)}{where}: {words.short(one.seconds, 's')}, bound by {one.bound}")
        if number + 1 < len(found):
            axes.tick_params(bottom=False, labelbottom=False)
    panels[-1].set_xlim(0, 1.06 * longest / factor)
    panels[-1].set_xlabel(f"time [{unit}]", fontsize=10)
    return made


def _panel(axes: Any, one: Estimated, factor: float, gid: str) -> None:
    names = sorted(one.breakdown, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    plain(axes)
    axes.grid(visible=False, axis="y")
    for row, name in enumerate(names):
        binds, time = name == one.bound, one.breakdown[name]
        look = {
            "facecolor": BINDS if binds else QUIET,
            "edgecolor": "black" if binds else GREY,
            "hatch": None if binds else "///",
        }
        axes.barh(row, time / factor, height=0.72, linewidth=0.8, gid=f"{gid} {name}", **look)
        text = words.short(time, "s") + (" (binds)" if binds else "")
        axes.annotate(text, (1, row), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points",
                      va="center", fontsize=9, fontweight="bold" if binds else "normal")  # fmt: skip
    axes.axvline(one.seconds / factor, color="black", linewidth=1.4, linestyle="--", gid=f"{gid} total", zorder=3)
    axes.annotate("total", (one.seconds / factor, 0), xycoords=("data", "axes fraction"), xytext=(3, 2),
                  textcoords="offset points", fontsize=8, rotation=90, va="bottom")  # fmt: skip
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.invert_yaxis()
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if name == one.bound else "normal")
