"""The roofline: rates against arithmetic intensity, under what bandwidths and matrix units allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iomodel.errors import InputError, shown
from iomodel.hardware import Hardware
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, MARKERS, figure, legend, plain, subtitle
from iomodel.plots.estimated import Estimated, is_estimate, name_of
from iomodel.plots.roofs import Roofs, roofs
from iomodel.validation import finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Point:
    """An algorithm on a roofline.

    Parameters
    ----------
    label : str
        What to call it.
    intensity : float
        FLOPs over HBM traffic [FLOP/B].
    flops_per_second : float
        The rate [FLOP/s].
    interval : (float, float), optional
        FLOPs over the most and over the least HBM traffic there may be, drawn as a bar [FLOP/B].

    Raises
    ------
    InputError
        A number that is not above 0, or not finite; an intensity outside its interval.

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
        given = {"intensity": self.intensity, "flops_per_second": self.flops_per_second}
        ends = (self.intensity,) * 2 if self.interval is None else self.interval
        if not isinstance(ends, tuple) or len(ends) != 2:
            raise InputError(f"interval: {shown(ends)} given; allowed: two numbers, such as (90.0, 400.0)")
        for name, value in (*given.items(), *(("interval", end) for end in ends)):
            if not finite(value) or value <= 0:
                raise InputError(f"{name}: {shown(value)} given; allowed: a number above 0")
        if not ends[0] <= self.intensity <= ends[1]:
            raise InputError(f"interval: {shown(ends)} given; allowed: around intensity = {self.intensity}")

    @property
    def ends(self) -> tuple[float, float]:
        """The interval, or the intensity twice [FLOP/B]."""
        return self.interval or (self.intensity, self.intensity)


def roofline(
    points: Estimated | Point | Iterable[Estimated | Point], hardware: Hardware | str, dtype: str | None = None
) -> Figure:
    """Draw algorithms under the roofs of a device.

    Parameters
    ----------
    points : Estimate, Point or several of them
        What to draw. The mark of an estimate is at the HBM traffic that its time reckons with, and a bar reaches from
        the most to the least that the L2 may leave. Where the bar crosses a roof, the rate needs the L2 to serve some.
    hardware : Hardware or str
        The device: HBM and peak of the data type are needed, L2 and a measured GEMM are drawn where they are on file.
    dtype : str, optional
        Whose peak is the roof: that of the estimates, bf16 without any.

    Raises
    ------
    UnknownNameError, SpecError, InputError
        An unknown name; a figure that the device lacks; estimates of another device or of several data types;
        matplotlib is missing.

    Examples
    --------
    >>> from iomodel import plots
    >>> picture = plots.roofline([plots.Point("mine", 120.0, 3.1e14)], "h100-sxm5")  # doctest: +SKIP
    """
    given = [points] if isinstance(points, Point) or is_estimate(points) else list(points)  # type: ignore[arg-type]
    wrong = next((one for one in given if not isinstance(one, Point) and not is_estimate(one)), None)
    if wrong is not None:
        raise InputError(f"points: {shown(wrong)} given; allowed: iomodel.estimate(...) or plots.Point(...)")
    found = roofs(hardware, _dtype(given, dtype))
    _same_device(given, found)
    drawn = [_point(one) for one in given]
    made = figure(f"Roofline of {found.device}")
    axes = made.add_subplot()
    plain(axes)
    subtitle(axes, f"{found.dtype}; ridge at {found.ridge:,.0f} FLOP/B")
    low = min([found.ridge / 30, *(one.ends[0] / 3 for one in drawn)])
    high = max([found.ridge * 30, *(one.ends[1] * 12 for one in drawn)])
    bottom = min([found.at(low), *(one.flops_per_second / 2 for one in drawn)])
    top = 2.2 * max([float(found.peak.value), *(one.flops_per_second for one in drawn)])
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, top))
    _axis_labels(axes)
    _draw_roofs(axes, found, low, high)
    _draw_points(axes, drawn)
    if drawn:
        legend(made, 1)
    return made


def _dtype(given: Sequence[Any], dtype: str | None) -> str:
    known = list(dict.fromkeys(one.workload.dtype for one in given if not isinstance(one, Point)))
    if len(known) > 1 or (dtype is not None and known not in ([], [dtype])):
        raise InputError(f"dtype: estimates of {', '.join(known)} given; allowed: one data type in a roofline")
    return dtype or (known[0] if known else "bf16")


def _same_device(given: Sequence[Any], found: Roofs) -> None:
    other = next((one.hardware.name for one in given if not isinstance(one, Point)
                  and one.hardware.name != found.device), None)  # fmt: skip
    if other is not None:
        raise InputError(f"hardware: {found.device} given with an estimate for {other}; allowed: the same device")


def _point(one: Any) -> Point:
    if isinstance(one, Point):
        return one
    least, most = one.dram_bytes
    reckoned = sum(kernel.streamed_bytes for kernel in one.kernels)
    useful = one.intensity * most
    at = useful / min(max(reckoned, least), most)
    return Point(name_of(one), at, one.flops_per_second, (min(useful / most, at), max(useful / least, at)))


def _axis_labels(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e12:,.4g}"))
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("arithmetic intensity, FLOPs over HBM traffic [FLOP/B]", fontsize=10)
    axes.set_ylabel("rate [TFLOP/s]", fontsize=10)


def _draw_roofs(axes: Any, found: Roofs, low: float, high: float) -> None:
    """The roofs, each with its name along it."""
    peak = float(found.peak.value)
    for name, quantity in found.bandwidths.items():
        slope = float(quantity.value)
        style = {"linewidth": 1.8, "zorder": 3} if name == "HBM" else {"linewidth": 1.0, "linestyle": "--"}
        ends = [low, peak / slope, max(peak / slope, found.ridge)]
        axes.plot(ends, [min(peak, slope * at) for at in ends], color="black", gid=f"roof {name}", **style)
        text = {"rotation": 45, "rotation_mode": "anchor", "transform_rotates_text": True, "fontsize": 8}
        at = low * (ends[1] / low) ** 0.06
        axes.annotate(f"{name} {quantity}", (at, at * slope), xytext=(0, 4), textcoords="offset points", **text)
    axes.plot([found.ridge, high], [peak, peak], color="black", linewidth=1.8, zorder=3, gid="roof peak")
    label = {"textcoords": "offset points", "ha": "right", "fontsize": 8}
    axes.annotate(f"{found.dtype} peak {found.peak}", (high, peak), xytext=(-4, 4), va="bottom", **label)
    if found.attained is not None:
        attained = float(found.attained.value)
        start = attained / float(found.bandwidths["HBM"].value)
        axes.plot([start, high], [attained, attained], color=GREY, linewidth=1.2, linestyle=":", gid="roof attained")
        axes.annotate(
            f"measured GEMM {found.attained}", (high, attained), xytext=(-4, -4), va="top", color=GREY, **label
        )
    axes.plot([found.ridge], [peak], "o", color="white", markeredgecolor="black", markersize=6, gid="ridge", zorder=3)


def _draw_points(axes: Any, drawn: Sequence[Point]) -> None:
    for number, one in enumerate(drawn):
        look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        reach = [[one.intensity - one.ends[0]], [one.ends[1] - one.intensity]]
        rate = words.short(one.flops_per_second, "FLOP/s")
        name = f"{number + 1}  {one.label}: {rate} at {words.number(one.intensity)} FLOP/B"
        axes.errorbar(
            [one.intensity], [one.flops_per_second], xerr=None if one.interval is None else reach, linestyle="none",
            capsize=3, elinewidth=1.5, markersize=7, markeredgecolor="black", markeredgewidth=0.6, zorder=4, label=name,
            gid=f"point {number + 1}", **look,
        )  # fmt: skip
        axes.annotate(str(number + 1), (one.intensity, one.flops_per_second), xytext=(-5, 6), ha="right",
                      textcoords="offset points", fontsize=9, fontweight="bold", color=look["color"])  # fmt: skip
