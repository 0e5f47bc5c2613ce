"""Parity plot: predicted against measured values, with the error of each family."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.common.display import percent
from iomodel.errors import InputError, shown
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, MARKERS, figure, legend, log_ticks, plain, subtitle
from iomodel.plots.styles import current

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = Sequence[float] | np.ndarray[Any, Any]
BAND = 0.25
"""Half width of the band around the diagonal [-]."""
SHADE = "#E3EAF0"


def parity(
    predicted: Values,
    measured: Values,
    *,
    family: Sequence[str] | None = None,
    held_out: Sequence[bool] | np.ndarray[Any, Any] | None = None,
    unit: str = "s",
    title: str = "Predicted against measured",
) -> Figure:
    """Draw predicted against measured values on logarithmic axes, one marker per family.

    Parameters
    ----------
    predicted, measured : sequences of n positive numbers
        Values in the same unit, such as `[e.seconds for e in estimates]` and your own times.
    family : sequence of n str, optional
        Group of each row, such as its kernel; the legend states the rows and the median error of each group.
    held_out : sequence of n bool, optional
        Rows that took no part in the choice of parameters: their markers are filled, the others are hollow.
    unit : str
        Unit of the values.
    title : str
        Title of the picture.

    Returns
    -------
    matplotlib.figure.Figure
        Left the values, with the diagonal on which a prediction is exact; right predicted over measured. Each band is
        25 % to either side.

    Raises
    ------
    InputError
        No values; a value is not a positive number; the lengths differ; matplotlib is missing.

    Examples
    --------
    >>> from iomodel import plots
    >>> plots.parity([1e-3], [1e-3, 2e-3])
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: measured: 2 values given; allowed: as many as predicted, 1
    """
    y, x = _numbers("predicted", predicted), _numbers("measured", measured)
    if len(x) != len(y):
        raise InputError(f"measured: {len(x)} values given; allowed: as many as predicted, {len(y)}")
    families = np.array(_labels("family", family, len(x)) if family is not None else [""] * len(x))
    fresh = np.array(_flags("held_out", held_out, len(x)) if held_out is not None else [True] * len(x))
    named = list(dict.fromkeys(map(str, families)))
    picture = figure(title, 9.6, 9.6 if current().narrow else 5.5 + 0.12 * len(named))
    axes, ratios = picture.subplots(2, 1) if current().narrow else picture.subplots(1, 2)
    _diagonal(axes, min(x.min(), y.min()) / 1.6, max(x.max(), y.max()) * 1.6, unit)
    _level(ratios, axes, y / x)
    for number, name in enumerate(named):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
        for filled in (False, True):
            rows = (families == name) & (fresh == filled)
            style = {"color": colour, "markersize": 4.2, "markeredgewidth": 0.9, "alpha": 0.85, "linestyle": "none",
                     "markerfacecolor": colour if filled else "none", "zorder": 3 + filled}  # fmt: skip
            gid = f"{'held out' if filled else 'calibration'} {name}".strip()
            axes.plot(x[rows], y[rows], marker, gid=gid, **style)
            ratios.plot(x[rows], (y / x)[rows], marker, gid=f"ratio {gid}", **style)
        error = np.median(np.abs(y / x - 1)[families == name])
        rows_of = f"{np.count_nonzero(families == name):,} rows, median error {percent(error, 1)}"
        axes.plot([], [], marker, color=colour, linestyle="none", label=f"{name}: {rows_of}" if name else rows_of)
    if held_out is not None:
        subtitle(axes, f"filled: held out ({fresh.sum():,} rows); hollow: calibration ({(~fresh).sum():,})")
    subtitle(ratios, f"band: {100 * BAND:.0f} % to either side")
    legend(picture, min(2, len(named)))
    return picture


def _diagonal(axes: Any, low: float, high: float, unit: str) -> None:
    """Set both axes to one range, and draw the diagonal with its band."""
    ends = np.array([low, high])
    plain(axes)
    axes.fill_between(ends, ends * (1 - BAND), ends * (1 + BAND), color=SHADE, linewidth=0, zorder=1, gid="band")
    axes.plot(ends, ends, color=GREY, linewidth=1.1, zorder=2, gid="diagonal")
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), box_aspect=1)
    ticks = log_ticks(low, high)
    ticks = ticks[:: 1 + len(ticks) // 7]
    factor, name = words.scale(ticks[-1], unit) if log10(high / low) < 3 else (1.0, unit)
    texts = [words.short(tick, unit) if factor == 1 else words.number(tick / factor) for tick in ticks]
    axes.set_xticks(ticks, texts)
    axes.set_yticks(ticks, texts)
    axes.minorticks_off()
    label = "" if factor == 1 else f" [{name}]"
    axes.set_xlabel(f"measured{label}", fontsize=10)
    axes.set_ylabel(f"predicted{label}", fontsize=10)


def _level(axes: Any, beside: Any, ratios: np.ndarray[Any, Any]) -> None:
    """Prepare the panel of the ratios, with the measured values of the panel beside it."""
    from matplotlib.ticker import NullFormatter

    plain(axes)
    most = 1.25 * max(2.0, ratios.max(), 1 / ratios.min())
    axes.axhspan(1 - BAND, 1 + BAND, color=SHADE, linewidth=0, zorder=1, gid="ratio band")
    axes.axhline(1, color=GREY, linewidth=1.1, zorder=2)
    axes.set(xscale="log", yscale="log", xlim=beside.get_xlim(), ylim=(1 / most, most), box_aspect=1)
    axes.set_xticks(beside.get_xticks(), [text.get_text() for text in beside.get_xticklabels()])
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10) if 1 / most <= tick <= most]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    axes.set_xlabel(beside.get_xlabel(), fontsize=10)
    axes.set_ylabel("predicted over measured", fontsize=10)


def _numbers(name: str, values: object) -> np.ndarray[Any, Any]:
    """Convert values to an array of positive numbers."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        array = np.zeros(())
    if array.ndim != 1 or not array.size:
        raise InputError(f"{name}: {shown(values)} given; allowed: one or more positive numbers")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
    if wrong.size:
        raise InputError(f"{name}: {array[wrong[0]]:g} given in row {wrong[0]}; allowed: a number above 0")
    return array


def _labels(name: str, values: object, count: int) -> list[str]:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise InputError(f"{name}: {shown(values)} given; allowed: a list of {count} names, one per row")
    wrong = next((value for value in values if not isinstance(value, str)), None)
    if wrong is not None or len(values) != count:
        problem = f"{len(values)} names" if wrong is None else shown(wrong)
        raise InputError(f"{name}: {problem} given; allowed: a list of {count} names, one per row")
    return [str(value) for value in values]


def _flags(name: str, values: object, count: int) -> list[bool]:
    listed = list(values) if isinstance(values, Sequence | np.ndarray) and not isinstance(values, str) else None
    if listed is None or len(listed) != count or not all(isinstance(value, bool | np.bool_) for value in listed):
        raise InputError(f"{name}: {shown(values)} given; allowed: a list of {count} times True or False")
    return [bool(value) for value in listed]
