"""Least traffic as an exact step function of the memory, above the bound for every schedule."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from iomodel.errors import InputError, shown
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, drawing, legend, place_ticks, traffic_ticks
from iomodel.solving.staircase import Staircase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHES: tuple[Any, ...] = ("--", "-.", ":")


def staircase(stairs: Staircase | Sequence[Staircase]) -> Figure:
    """Draw the traffic of one or several staircases against the memory, and the lower bound of each step.

    Parameters
    ----------
    stairs : Staircase or sequence of Staircase
        Results of :func:`iomodel.staircase`, of one call and in one unit.

    Returns
    -------
    matplotlib.figure.Figure
        Both axes are logarithmic. The traffic is drawn exactly; the bound is drawn at the first memory of each step and
        joined by lines.

    Raises
    ------
    InputError
        An argument is not a Staircase; the calls or the units differ; matplotlib is missing.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> stairs = iomodel.staircase("flash2", iomodel.Attention(q_len=4096, head_dim=64))
    >>> picture = plots.staircase(stairs)  # doctest: +SKIP
    """
    drawn = [stairs] if isinstance(stairs, Staircase) else list(stairs) if isinstance(stairs, Sequence) else []
    if not drawn or not all(isinstance(entry, Staircase) for entry in drawn):
        raise InputError(f"stairs: {shown(stairs)} given; allowed: results of iomodel.staircase")
    first = drawn[0]
    if any((entry.workload, entry.unit) != (first.workload, first.unit) for entry in drawn):
        raise InputError("stairs: of different calls or units given; allowed: of one call in one unit")
    names = ", ".join(dict.fromkeys(entry.algorithm for entry in drawn))
    title = f"Least requests against SRAM: {names}"
    picture, axes = drawing(title, words.workload(first.workload), 4.3 + 0.2 * len(drawn))
    axes.set(xscale="log", yscale="log")
    last = 2 * max(entry.steps[-1].sram for entry in drawn)
    for number, entry in enumerate(drawn):
        _draw(axes, entry, number, last)
    bounds = _bounds(drawn)
    for number, (holders, bound) in enumerate(bounds):
        of = "" if len(bounds) == 1 else f", for {', '.join(holders)}"
        axes.plot(*zip(*bound, (last, bound[-1][1]), strict=True), color=GREY, linewidth=1.3,
                  linestyle=DASHES[number % len(DASHES)], zorder=2, label=f"lower bound for every schedule{of}",
                  gid=f"bound {' '.join(holders)}")  # fmt: skip
    _memory_ticks(axes, first.unit)
    traffic_ticks(axes)
    legend(picture, 2)
    return picture


ROUNDING = 1.01
"""The factor by which the bound of a larger memory may exceed another one, as phases are whole."""


def _bounds(drawn: Sequence[Staircase]) -> list[tuple[list[str], list[tuple[int, int]]]]:
    """Join the bounds of algorithms of one class, which are one function of the memory."""
    joined: list[tuple[list[str], list[tuple[int, int]]]] = []
    for entry in drawn:
        points = {(step.sram, step.lower_bound.bytes) for step in entry.steps}
        for place, (holders, known) in enumerate(joined):
            together = sorted({*points, *known})
            if all(a[0] < b[0] and ROUNDING * a[1] >= b[1] for a, b in pairwise(together)):
                joined[place] = ([*holders, entry.algorithm], together)
                break
        else:
            joined.append(([entry.algorithm], sorted(points)))
    return joined


def _draw(axes: Any, stairs: Staircase, number: int, last: int) -> None:
    sizes = [*(step.sram for step in stairs.steps), last]
    traffic = [*(step.hbm_bytes for step in stairs.steps), stairs.steps[-1].hbm_bytes]
    multiples = f", tiles of multiples of {stairs.alignment}" if stairs.alignment > 1 else ""
    axes.plot(sizes, traffic, drawstyle="steps-post", color=COLOURS[number % len(COLOURS)], linewidth=1.5, zorder=3,
              label=f"{stairs.algorithm}{multiples}: {len(stairs.steps):,} steps",
              gid=f"staircase {stairs.algorithm}")  # fmt: skip


def _memory_ticks(axes: Any, unit: str) -> None:
    """Place powers of two on the horizontal axis."""
    low, high = axes.get_xlim()
    powers = [2**k for k in range(max(0, int(low).bit_length() - 1), int(high).bit_length() + 1)]
    places = [size for size in powers if low <= size <= high][:: 1 + len(powers) // 9]
    place_ticks(axes.xaxis, places, words.memory if unit == "bytes" else "{:,.0f}".format)
    axes.set_xlabel(f"on-chip memory [{'B' if unit == 'bytes' else 'elements'}]", fontsize=10)
