"""Roofline: rates against arithmetic intensity, under the limits of bandwidths and matrix units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any, get_args

from iomodel.common import labels
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_choice, finite
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.quantity import Quantity
from iomodel.errors import InputError, SpecError, shown
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, MARKERS, drawing, legend
from iomodel.plots.estimated import common_call, is_estimate, name_of
from iomodel.workloads.call import DType

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from iomodel.timing.estimate_result import Estimate

MARK = 1.1
"""Ratio of the ends of an interval that lies within the mark of its point."""


@dataclass(frozen=True)
class Point:
    """An algorithm on a roofline.

    Parameters
    ----------
    label : str
        Label in the legend.
    intensity : float
        FLOPs over DRAM traffic [FLOP/B].
    flops_per_second : float
        Rate [FLOP/s].
    interval : (float, float), optional
        FLOPs over the most and over the least possible DRAM traffic, drawn as a bar [FLOP/B].

    Raises
    ------
    InputError
        A number is not positive or not finite; the intensity lies outside its interval.

    Examples
    --------
    >>> Point("mine", intensity=120.0, flops_per_second=3.1e14, interval=(90.0, 400.0)).interval
    (90.0, 400.0)
    """

    label: str
    intensity: float
    flops_per_second: float
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        numbers = {"intensity": self.intensity, "flops_per_second": self.flops_per_second}
        ends = (self.intensity,) * 2 if self.interval is None else self.interval
        if not isinstance(ends, tuple) or len(ends) != 2:
            raise InputError(f"interval: {shown(ends)} given; allowed: two numbers, such as (90.0, 400.0)")
        for name, value in (*numbers.items(), *(("interval", end) for end in ends)):
            if not finite(value) or value <= 0:
                raise InputError(f"{name}: {shown(value)} given; allowed: a number above 0")
        if not ends[0] <= self.intensity <= ends[1]:
            raise InputError(f"interval: {shown(ends)} given; allowed: around intensity = {self.intensity}")

    @property
    def ends(self) -> tuple[float, float]:
        """The interval, or the intensity twice [FLOP/B]."""
        return self.interval or (self.intensity, self.intensity)


@dataclass(frozen=True)
class Roofs:
    """The rate limits of one device for one data type.

    Attributes
    ----------
    device, dtype : str
        Name of the device; data type of the peak.
    bandwidths : mapping of name to Quantity
        HBM first, then L2 if known [B/s].
    peak : Quantity
        Peak rate of the matrix units [FLOP/s].
    attained : Quantity or None
        Measured rate of a large GEMM, if known [FLOP/s].
    """

    device: str
    dtype: str
    bandwidths: Mapping[str, Quantity]
    peak: Quantity
    attained: Quantity | None

    @property
    def ridge(self) -> float:
        """Intensity above which HBM is not the limit [FLOP/B]."""
        return float(self.peak.value / self.bandwidths["HBM"].value)

    def at(self, intensity: float) -> float:
        """Compute the rate that HBM and the matrix units allow at an intensity [FLOP/B], in [FLOP/s]."""
        return float(min(self.peak.value, intensity * self.bandwidths["HBM"].value))


def roofs(hardware: Hardware | str, dtype: str = "bf16") -> Roofs:
    """Return the roofs of a device for one data type.

    Parameters
    ----------
    hardware : Hardware or str
        A device with an HBM bandwidth and a peak for `dtype`.
    dtype : str
        The data type of the matrix products.

    Raises
    ------
    UnknownNameError, SpecError
        A name is unknown; the device lacks a figure.

    Examples
    --------
    >>> limits = roofs("h100-sxm5")
    >>> round(limits.ridge), limits.at(100.0)
    (295, 335200000000000.0)
    """
    device = as_device(hardware)
    as_choice("dtype", dtype, get_args(DType))
    figures = {path: quantity for path, quantity in device.quantities.items() if isinstance(quantity, Quantity)}

    def figure(*paths: str) -> Quantity | None:
        return next((figures[path] for path in paths if path in figures and figures[path].value > 0), None)

    hbm, peak = figure("memory.hbm.bandwidth"), figure(f"compute.peak.{dtype}")
    if hbm is None or peak is None:
        missing = "memory.hbm.bandwidth" if hbm is None else f"compute.peak.{dtype}"
        raise SpecError(f"{missing}: {device.id or device.name} lacks it; a roofline needs it")
    l2 = figure("measured.l2_bandwidth", "memory.l2.bandwidth")
    bandwidths = {"HBM": hbm} | ({"L2": l2} if l2 is not None else {})
    return Roofs(device.name, dtype, FrozenDict(bandwidths), peak, figure(f"measured.gemm_{dtype}"))


def roofline(
    points: Estimate | Point | Iterable[Estimate | Point],
    hardware: Hardware | str | Sequence[Hardware | str],
    dtype: str | None = None,
) -> Figure:
    """Draw algorithms under the roofs of a device, or of several.

    Parameters
    ----------
    points : Estimate, Point or several of them
        Points to draw. An estimate is marked at the DRAM traffic behind its time, with a bar from the most to the least
        traffic that the L2 cache may leave. Where the bar crosses a roof, the rate requires hits in the L2 cache.
    hardware : Hardware or str, or a sequence of them
        The device. HBM bandwidth and the peak of the data type are required; L2 and a measured GEMM are drawn if known.
        Several devices have a colour each, without these two.
    dtype : str, optional
        Data type of the peak; by default that of the estimates, or bf16 without estimates.

    Raises
    ------
    UnknownNameError, SpecError, InputError
        A name is unknown; the device lacks a figure; the estimates are for other devices or for several data types;
        matplotlib is missing.

    Examples
    --------
    >>> from iomodel import plots
    >>> picture = plots.roofline([plots.Point("mine", 120.0, 3.1e14)], "h100-sxm5")  # doctest: +SKIP
    """
    entries = [points] if isinstance(points, Point) or is_estimate(points) else list(points)  # type: ignore[arg-type]
    wrong = next((entry for entry in entries if not isinstance(entry, Point) and not is_estimate(entry)), None)
    if wrong is not None:
        raise InputError(f"points: {shown(wrong)} given; allowed: iomodel.estimate(...) or plots.Point(...)")
    devices = [hardware] if isinstance(hardware, Hardware | str) else list(hardware)
    every = [roofs(device, _dtype(entries, dtype)) for device in devices]
    if not every:
        raise InputError("hardware: none given; allowed: a device, or several")
    _of_devices(entries, every)
    drawn = [_point(entry, len(every) > 1) for entry in entries]
    call = common_call(entry for entry in entries if not isinstance(entry, Point))
    ridges = " and ".join(f"{limits.ridge:,.0f}" for limits in every)
    line = f"{call or every[0].dtype}; {labels.RIDGE} at {ridges} FLOP/B"
    picture, axes = drawing(f"Roofline of {' and '.join(limits.device for limits in every)}", line)
    low = min([*(limits.ridge / 30 for limits in every), *(entry.ends[0] / 3 for entry in drawn)])
    high = max([*(limits.ridge * 30 for limits in every), *(entry.ends[1] * 12 for entry in drawn)])
    bottom = min([*(limits.at(low) for limits in every), *(entry.flops_per_second / 2 for entry in drawn)])
    top = 2.2 * max([*(float(limits.peak.value) for limits in every), *(entry.flops_per_second for entry in drawn)])
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, top))
    _axis_labels(axes)
    taken = [point.intensity for point in drawn]
    if len(every) == 1:
        _draw_roofs(axes, every[0], low, high, taken)
    else:
        for number, limits in enumerate(every):
            alone = replace(limits, bandwidths=FrozenDict({"HBM": limits.bandwidths["HBM"]}), attained=None)
            _draw_roofs(axes, alone, low, high, taken, COLOURS[number % len(COLOURS)], f"{limits.device}, ")
    _draw_points(axes, drawn)
    if drawn:
        legend(picture, 1)
    return picture


def _dtype(entries: Sequence[Any], dtype: str | None) -> str:
    known = list(dict.fromkeys(entry.workload.dtype for entry in entries if not isinstance(entry, Point)))
    if len(known) > 1 or (dtype is not None and known not in ([], [dtype])):
        raise InputError(f"dtype: estimates of {', '.join(known)} given; allowed: one data type in a roofline")
    return dtype or (known[0] if known else "bf16")


def _of_devices(entries: Sequence[Any], every: Sequence[Roofs]) -> None:
    known = [limits.device for limits in every]
    estimated = (entry.hardware.name for entry in entries if not isinstance(entry, Point))
    other = next((name for name in estimated if name not in known), None)
    if other is not None:
        given = " and ".join(known)
        raise InputError(f"hardware: {given} given with an estimate for {other}; allowed: the same device")


def _point(entry: Any, named: bool) -> Point:
    if isinstance(entry, Point):
        return entry
    least, most = entry.dram_bytes
    at, useful = entry.intensity, entry.flops_per_second * entry.seconds
    ends = (min(useful / most, at), max(useful / least, at))
    label = f"{name_of(entry)}, bound by {words.resource(entry.limited_by)}"
    label = f"{entry.hardware.name}: {label}" if named else label
    return Point(label, at, entry.flops_per_second, ends if ends[1] > MARK * ends[0] else None)


def _axis_labels(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e12:,.4g}"))
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"{labels.OVER_DRAM} [FLOP/B]", fontsize=10)
    axes.set_ylabel("rate [TFLOP/s]", fontsize=10)


def _draw_roofs(
    axes: Any, limits: Roofs, low: float, high: float, taken: Sequence[float], ink: str = "black", owner: str = ""
) -> None:
    """Draw the roofs with their names: DRAM's below its slope, away from the points, and others above theirs."""
    peak = float(limits.peak.value)
    for name, quantity in limits.bandwidths.items():
        slope = float(quantity.value)
        style = {"linewidth": 1.8, "zorder": 3} if name == "HBM" else {"linewidth": 1.0, "linestyle": "--"}
        ends = [low, peak / slope, max(peak / slope, limits.ridge)]
        axes.plot(ends, [min(peak, slope * at) for at in ends], color=ink, gid=f"roof {name}", **style)
        below = name == "HBM"
        shares = (0.12, 0.3, 0.5, 0.68)[: 3 if owner else 4] if below else (0.85,)
        places = [low * (ends[1] / low) ** share for share in shares]
        at = max(places, key=lambda place: min([abs(log(place / point)) for point in taken], default=0.0))
        text = {"ha": "left", "va": "top"} if below else {"ha": "right", "va": "bottom"}
        said = f"{owner}{words.resource(name.lower())} {quantity}"
        axes.annotate(said, (at, at * slope), fontsize=8, gid=f"name {name}", color=ink,
                      xytext=(5, -3) if below else (-5, 3), textcoords="offset points", **text)  # fmt: skip
    axes.plot([limits.ridge, high], [peak, peak], color=ink, linewidth=1.8, zorder=3, gid="roof peak")
    label = {"textcoords": "offset points", "ha": "right", "fontsize": 8}
    said = f"{owner}{limits.dtype} peak {limits.peak}"
    axes.annotate(said, (high, peak), xytext=(-4, 4), va="bottom", color=ink, **label)
    if limits.attained is not None:
        attained = float(limits.attained.value)
        start = attained / float(limits.bandwidths["HBM"].value)
        axes.plot([start, high], [attained, attained], color=GREY, linewidth=1.2, linestyle=":", gid="roof attained")
        axes.annotate(
            f"measured GEMM {limits.attained}", (high, attained), xytext=(-4, -4), va="top", color=GREY, **label
        )
    axes.plot([limits.ridge], [peak], "o", color="white", markeredgecolor=ink, markersize=6, gid="ridge", zorder=3)


def _draw_points(axes: Any, points: Sequence[Point]) -> None:
    for number, point in enumerate(points):
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        reach = None
        if point.interval is not None:
            reach = [[point.intensity - point.ends[0]], [point.ends[1] - point.intensity]]
        rate = words.short(point.flops_per_second, "FLOP/s")
        name = f"{number + 1}  {point.label}: {rate} at {words.number(point.intensity)} FLOP/B"
        axes.errorbar(
            [point.intensity], [point.flops_per_second], xerr=reach,
            linestyle="none", capsize=3, elinewidth=1.5, markersize=7, markeredgecolor="black", markeredgewidth=0.6,
            zorder=4, label=name, gid=f"point {number + 1}", **style,
        )  # fmt: skip
        axes.annotate(str(number + 1), (point.intensity, point.flops_per_second), xytext=(6, -4), va="top",
                      textcoords="offset points", fontsize=9, fontweight="bold", color=style["color"], zorder=5,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8})  # fmt: skip
