"""Breakdown of time: the seconds of each resource, and the sum that the total is, for one or several estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, FAINT, GREY, beside, figure, plain, subtitle
from iomodel.plots.estimated import common_call, estimates, name_of
from iomodel.plots.styles import current
from iomodel.timing.time_shares import EXPOSED, HOST, time_shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from iomodel.timing.estimate_result import Estimate

ORDER = ("matrix", "exp", "fp32", "shared memory", "l2", "llc", "hbm", "steps", "tail", "launch")
"""Order of the bars in all panels, from the matrix units outwards; other resources come last."""
QUIET, BINDS = "#BFD9E8", COLOURS[0]
"""Colours of the other resources, and of the limiting one."""
LOOKS = {
    EXPOSED: ("#8EC6E6", "...."),
    "steps": ("#F0C36A", None),
    "tail": ("#7FCDB5", "////"),
    "launch": ("#D9A3C0", None),
    HOST: ("#C9C9C9", "\\\\\\\\"),
}
"""Colour and hatch of the parts of the total that are no resource."""
INK = "#002A42"
LETTER = 0.013
"""Width of a letter, as a share of the longest bar [-]."""


def breakdown(results: Estimate | Sequence[Estimate]) -> Figure:
    """Draw the total time as a sum, and the seconds of every resource as bars, a panel with its own axis per estimate.

    Resources work at the same time, so their bars do not sum to the total. The bar of the total does: it has the time
    of the slowest resource of each kernel, the time of others that does not overlap with it, the visible part of steps,
    tails and launches, and the rest of the host's time.

    Parameters
    ----------
    results : Estimate or list of Estimate
        Estimates to draw.

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
    drawn = estimates(results)
    rows = [1 + len(estimate.breakdown) for estimate in drawn]
    devices = list(dict.fromkeys(estimate.hardware.name for estimate in drawn))
    title = "Time per resource" + (f" on {devices[0]}" if len(devices) == 1 else "")
    call = common_call(drawn)
    picture = figure(title, height=1.4 + sum(0.27 * n + 0.85 for n in rows))
    panels = picture.subplots(len(drawn), 1, squeeze=False, height_ratios=[n + 1 for n in rows])[:, 0]
    for number, (axes, estimate) in enumerate(zip(panels, drawn, strict=True)):
        where = "" if len(devices) == 1 else f" on {estimate.hardware.name}"
        longest = max([estimate.seconds, *estimate.breakdown.values()])
        factor, unit = words.scale(longest, "s")
        _panel(axes, estimate, factor, longest, f"estimate {number + 1}")
        limit = words.resource(estimate.limited_by)
        first = f"{call}\n" if call and not number else ""
        subtitle(axes, f"{first}{name_of(estimate)}{where}: {words.short(estimate.seconds, 's')}, bound by {limit}")
        axes.set_xlim(0, 1.06 * longest / factor)
        axes.set_xlabel(f"time [{unit}]", fontsize=10)
    _name_parts(picture, drawn)
    if len(drawn) > 1:
        picture.panels = dict(zip(panels, map(name_of, drawn), strict=True))  # type: ignore[attr-defined]
    return picture


def _name_parts(picture: Any, drawn: Sequence[Estimate]) -> None:
    """Name the parts of the totals in a legend."""
    from matplotlib.patches import Patch

    shares = [name for one in drawn for name in time_shares(one.kernels, one.seconds)]
    named = {LOOKS[name]: words.resource(name) for name in dict.fromkeys(shares) if name in LOOKS}
    slowest = Patch(facecolor=BINDS, edgecolor="white", label="slowest resource of each kernel")
    parts = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=name) for (colour, hatch), name in named.items()
    ]
    picture.legend(handles=[slowest, *parts], loc="outside lower center", ncols=current().columns(4), fontsize=8,
                   edgecolor=FAINT, title="parts of the total", title_fontsize=8)  # fmt: skip


def _panel(axes: Any, estimate: Estimate, factor: float, longest: float, gid: str) -> None:
    names = sorted(estimate.breakdown, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    plain(axes)
    axes.grid(visible=False, axis="y")
    for row, name in enumerate(names):
        binds, time = name == estimate.limited_by, estimate.breakdown[name]
        style = {
            "facecolor": BINDS if binds else QUIET,
            "edgecolor": "black" if binds else GREY,
            "hatch": None if binds else "///",
        }
        axes.barh(row, time / factor, height=0.72, linewidth=0.8, gid=f"{gid} {name}", **style)
        text = words.short(time, "s") + (" (binds)" if binds else "")
        beside(axes, row, text, fontsize=9, fontweight="bold" if binds else "normal")
    axes.axvline(estimate.seconds / factor, color="black", linewidth=1.2, linestyle="--", gid=f"{gid} total", zorder=3)
    _sum(axes, estimate, factor, longest, gid)
    names = ["total", *names]
    axes.set_yticks(range(-1, len(names) - 1), map(words.resource, names), fontsize=9)
    axes.invert_yaxis()
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if name in ("total", estimate.limited_by) else "normal")


def _sum(axes: Any, estimate: Estimate, factor: float, longest: float, gid: str) -> None:
    """Draw the total above the resources, as the parts that it is the sum of."""
    left = 0.0
    for name, time in time_shares(estimate.kernels, estimate.seconds).items():
        colour, hatch = LOOKS.get(name, (BINDS, None))
        axes.barh(-1, time / factor, left=left / factor, height=0.72, facecolor=colour, edgecolor="white", zorder=4,
                  linewidth=0.8, hatch=hatch, gid=f"{gid} share {name}")  # fmt: skip
        label = words.resource(name)
        if time > LETTER * len(label) * longest * current().letter:
            axes.annotate(label, ((left + time / 2) / factor, -1), ha="center", va="center", fontsize=8, zorder=5,
                          color="white" if colour == BINDS else INK, parse_math=False,
                          bbox={"facecolor": colour, "edgecolor": "none", "pad": 0.8})  # fmt: skip
        left += time
    beside(axes, -1, words.short(estimate.seconds, "s"), fontsize=9, fontweight="bold")
