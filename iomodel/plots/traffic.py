"""HBM traffic against SRAM size: what the solver reaches, what no schedule can, what the formula says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.check import as_device
from iomodel.errors import InputError
from iomodel.hardware import Hardware
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, MARKERS, figure, legend, log_ticks, plain, subtitle
from iomodel.plots.sweep import Sweep, budgets, sweep, usual
from iomodel.workload import Attention, VarlenAttention, as_call

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def traffic_against_sram(
    algorithms: str | Sequence[str],
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | Sequence[Hardware | str] | None = None,
    sram: Iterable[int] | None = None,
    *,
    alignment: int | None = None,
    min_block_kv: int | None = None,
    **options: Any,
) -> Figure:
    """Draw the HBM traffic of the solved tiles against the SRAM that they may use.

    Between two sizes the line stays level: what fits the smaller fits all above it, so it is never too low. With it go
    the largest proved lower bound of each algorithm's class, the compulsory traffic, and the continuous optimum where
    a formula speaks of the call.

    Parameters
    ----------
    algorithms : str or sequence of str
        One or several of :func:`iomodel.list_algorithms`.
    workload : Attention or VarlenAttention
        The attention call.
    hardware : Hardware, str or a sequence of them, optional
        Devices whose SRAM for one block is marked by vertical lines.
    sram : iterable of int, optional
        SRAM sizes to solve for [B]; four an octave, as far as memory helps, if not given. Those of the devices are
        solved for as well.
    alignment : int, optional
        Tiles are multiples of it [rows]: that of the devices, 1 without any.
    min_block_kv : int, optional
        As in :func:`iomodel.solve`.
    **options
        Options of the algorithms.

    Raises
    ------
    UnknownNameError, InputError
        An unknown name; a value out of range; matplotlib is missing.
    InfeasibleError
        No tile of an algorithm fits any of the sizes.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> picture = plots.traffic_against_sram("flash2", w, "h100-sxm5")  # doctest: +SKIP
    """
    names = list(dict.fromkeys([algorithms] if isinstance(algorithms, str) else algorithms))
    if not names:
        raise InputError("algorithms: none given; allowed: one or several of iomodel.list_algorithms()")
    for name in names:
        find_algorithm(name)
    call = as_call(workload)
    given = [hardware] if isinstance(hardware, str | Hardware) else list(hardware or [])
    devices = [as_device(one) for one in given]
    made = figure(f"HBM traffic against SRAM: {', '.join(names)}", height=4.3 + 0.2 * (len(names) + len(devices) / 2))
    step = alignment if alignment is not None else max([1, *(device.tile_alignment for device in devices)])
    chosen = {**options, "alignment": step} | ({} if min_block_kv is None else {"min_block_kv": min_block_kv})
    marks = {device.name: device.sram_per_block for device in devices}
    sizes = usual(names, call, marks.values(), chosen) if sram is None else budgets([*budgets(sram), *marks.values()])
    found = [sweep(name, call, sizes, chosen) for name in names]
    axes = made.add_subplot()
    plain(axes)
    multiples = f"; tiles are multiples of {step}" if step > 1 else ""
    subtitle(axes, words.call(call) + multiples)
    _scales(axes, sizes)
    for number, one in enumerate(found):
        _draw(axes, one, number, sizes[-1])
    _draw_bounds(axes, found)
    _draw_devices(axes, marks)
    _traffic_axis(axes)
    legend(made, 2)
    return made


def _scales(axes: Any, sizes: Sequence[int]) -> None:
    """Logarithms both ways; memory in powers of two."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = sizes[0], max(sizes[-1], 2 * sizes[0])
    powers = [2**k for k in range(low.bit_length() - 1, high.bit_length() + 1)]
    axes.set(xscale="log", yscale="log", xlim=(low / 1.1, high * 1.1))
    axes.xaxis.set_major_locator(FixedLocator(powers[:: 1 + len(powers) // 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: words.memory(size)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("SRAM for one block [B]", fontsize=10)


def _traffic_axis(axes: Any) -> None:
    """Round numbers in one unit, over all that was drawn."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    least, most = axes.get_ylim()
    factor, unit = words.scale(most / 2, "B")
    axes.yaxis.set_major_locator(FixedLocator([factor * tick for tick in log_ticks(least / factor, most / factor)]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size / factor:,.4g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(f"HBM traffic [{unit}]", fontsize=10)


def _draw(axes: Any, one: Sweep, number: int, last: int) -> None:
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    traffic = {size: solution.cost.hbm_bytes for size, solution in one.solutions.items()}
    axes.plot(
        [*traffic, last], [*traffic.values(), list(traffic.values())[-1]], drawstyle="steps-post", color=colour,
        marker=marker, markersize=3.5, markevery=slice(0, len(traffic)), linewidth=1.6, zorder=3,
        label=f"{one.algorithm}, solved tiles", gid=f"traffic {one.algorithm}",
    )  # fmt: skip
    if one.formula:
        axes.plot(list(one.formula), list(one.formula.values()), color=colour, linewidth=1.1,
                  linestyle=(0, (6, 2, 1, 2)), label=f"{one.algorithm}, continuous optimum ({one.width} B an element)",
                  gid=f"formula {one.algorithm}")  # fmt: skip


def _draw_bounds(axes: Any, found: Sequence[Sweep]) -> None:
    """The lower bounds, once where algorithms share one, and the compulsory traffic."""
    shared: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for one in found:
        shared.setdefault(tuple(one.bounds.items()), []).append(one.algorithm)
    for number, (bound, names) in enumerate(shared.items()):
        style = [(0, (5, 1.5)), (0, (2, 1)), (0, (7, 1, 1, 1, 1, 1)), (0, (9, 4))][number % 4]
        axes.plot(*zip(*bound, strict=True), color=GREY, linewidth=1.3, linestyle=style, zorder=2,
                  label=f"lower bound for {', '.join(names)}", gid=f"bound {' '.join(names)}")  # fmt: skip
    axes.axhline(found[0].compulsory, color="black", linewidth=1.2, linestyle=":", label="compulsory", gid="compulsory")


def _draw_devices(axes: Any, marks: dict[str, int]) -> None:
    """A vertical line a size, with a letter that the legend resolves to all devices that have it."""
    for number, size in enumerate(sorted(set(marks.values()))):
        names, letter = (
            ", ".join(name for name, amount in marks.items() if amount == size),
            ascii_lowercase[number % 26],
        )
        axes.axvline(size, color=GREY, linewidth=0.9, zorder=1, gid=f"device {names}")
        axes.annotate(letter, (size, 1), xycoords=("data", "axes fraction"), xytext=(0, -7), textcoords="offset points",
                      ha="center", va="center", fontsize=9, fontweight="bold", zorder=5,
                      bbox={"boxstyle": "circle", "facecolor": "white", "edgecolor": GREY, "pad": 0.2})  # fmt: skip
        text = f"{names}: {words.memory(size)} a block"
        axes.plot([], [], color=GREY, linewidth=0.9, marker=rf"$\mathrm{{{letter}}}$", markersize=7, label=text)
