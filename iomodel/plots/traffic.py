"""HBM traffic against SRAM size: solved tiles, lower bounds, and the continuous optimum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, MARKERS, figure, legend, log_ticks, plain, subtitle
from iomodel.plots.sweep import Sweep, budgets, sweep, usual
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention, as_call

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def traffic_against_sram(
    algorithms: AlgorithmLike | Sequence[AlgorithmLike],
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | Sequence[Hardware | str] | None = None,
    sram: Iterable[int] | None = None,
    *,
    alignment: int | None = None,
    min_block_kv: int | None = None,
    **options: Any,
) -> Figure:
    """Draw the HBM traffic of the solved tiles against the available SRAM.

    Between two sizes the line stays level: tiles that fit the smaller size fit all larger ones, so it is never too low.
    The picture includes the largest proved lower bound of each algorithm's class, the compulsory traffic, and the
    continuous optimum if a formula covers the call.

    Parameters
    ----------
    algorithms : str, Algorithm or sequence of them
        One or several of :func:`iomodel.list_algorithms`.
    workload : Attention or VarlenAttention
        The attention call.
    hardware : Hardware, str or a sequence of them, optional
        Devices whose SRAM per block is marked by vertical lines.
    sram : iterable of int, optional
        SRAM sizes to solve for [B]; by default four per octave, as far as memory helps. Those of the devices are
        included.
    alignment : int, optional
        Alignment of tiles [rows]; by default that of the devices, or 1 without devices.
    min_block_kv : int, optional
        As in :func:`iomodel.solve`.
    **options
        Options of the algorithms.

    Raises
    ------
    UnknownNameError, InputError
        A name is unknown; a value is out of range; matplotlib is missing.
    InfeasibleError
        No tile of an algorithm fits any size.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> picture = plots.traffic_against_sram("flash2", w, "h100-sxm5")  # doctest: +SKIP
    """
    given_algorithms = [algorithms] if isinstance(algorithms, str | Algorithm) else algorithms
    names = list(dict.fromkeys(map(name_of, given_algorithms)))
    if not names:
        raise InputError("algorithms: none given; allowed: one or several of iomodel.list_algorithms()")
    call = as_call(workload)
    requested = [hardware] if isinstance(hardware, str | Hardware) else list(hardware or [])
    devices = [as_device(entry) for entry in requested]
    picture = figure(
        f"HBM traffic against SRAM: {', '.join(names)}", height=4.3 + 0.2 * (len(names) + len(devices) / 2)
    )
    step = alignment if alignment is not None else max([1, *(device.tile_alignment for device in devices)])
    chosen = {**options, "alignment": step} | ({} if min_block_kv is None else {"min_block_kv": min_block_kv})
    marks = {device.name: device.sram_per_block for device in devices}
    sizes = usual(names, call, marks.values(), chosen) if sram is None else budgets([*budgets(sram), *marks.values()])
    sweeps = [sweep(name, call, sizes, chosen) for name in names]
    axes = picture.add_subplot()
    plain(axes)
    multiples = f"; tiles are multiples of {step}" if step > 1 else ""
    subtitle(axes, words.call(call) + multiples)
    _scales(axes, sizes)
    for number, entry in enumerate(sweeps):
        _draw(axes, entry, number, sizes[-1])
    _draw_bounds(axes, sweeps)
    _draw_devices(axes, marks)
    _traffic_axis(axes)
    legend(picture, 2)
    return picture


def _scales(axes: Any, sizes: Sequence[int]) -> None:
    """Set logarithmic axes, with memory in powers of two."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = sizes[0], max(sizes[-1], 2 * sizes[0])
    powers = [2**k for k in range(low.bit_length() - 1, high.bit_length() + 1)]
    axes.set(xscale="log", yscale="log", xlim=(low / 1.1, high * 1.1))
    axes.xaxis.set_major_locator(FixedLocator(powers[:: 1 + len(powers) // 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: words.memory(size)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("SRAM per block [B]", fontsize=10)


def _traffic_axis(axes: Any) -> None:
    """Place round numbers in one unit over the drawn range."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    least, most = axes.get_ylim()
    factor, unit = words.scale(most / 2, "B")
    axes.yaxis.set_major_locator(FixedLocator([factor * tick for tick in log_ticks(least / factor, most / factor)]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size / factor:,.4g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(f"HBM traffic [{unit}]", fontsize=10)


def _draw(axes: Any, swept: Sweep, number: int, last: int) -> None:
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    traffic = {size: solution.cost.hbm_bytes for size, solution in swept.solutions.items()}
    axes.plot(
        [*traffic, last], [*traffic.values(), list(traffic.values())[-1]], drawstyle="steps-post", color=colour,
        marker=marker, markersize=3.5, markevery=slice(0, len(traffic)), linewidth=1.6, zorder=3,
        label=f"{swept.algorithm}, solved tiles", gid=f"traffic {swept.algorithm}",
    )  # fmt: skip
    if swept.formula:
        axes.plot(list(swept.formula), list(swept.formula.values()), color=colour, linewidth=1.1,
                  linestyle=(0, (6, 2, 1, 2)),
                  label=f"{swept.algorithm}, continuous optimum ({swept.width} B per element)",
                  gid=f"formula {swept.algorithm}")  # fmt: skip


def _draw_bounds(axes: Any, sweeps: Sequence[Sweep]) -> None:
    """Draw the lower bounds, once for algorithms that share one, and the compulsory traffic."""
    shared: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for swept in sweeps:
        shared.setdefault(tuple(swept.bounds.items()), []).append(swept.algorithm)
    for number, (bound, names) in enumerate(shared.items()):
        style = [(0, (5, 1.5)), (0, (2, 1)), (0, (7, 1, 1, 1, 1, 1)), (0, (9, 4))][number % 4]
        axes.plot(*zip(*bound, strict=True), color=GREY, linewidth=1.3, linestyle=style, zorder=2,
                  label=f"lower bound for {', '.join(names)}", gid=f"bound {' '.join(names)}")  # fmt: skip
    axes.axhline(
        sweeps[0].compulsory, color="black", linewidth=1.2, linestyle=":", label="compulsory", gid="compulsory"
    )


def _draw_devices(axes: Any, marks: dict[str, int]) -> None:
    """Draw one vertical line per size, with a letter that the legend resolves to the devices with this size."""
    for number, size in enumerate(sorted(set(marks.values()))):
        names, letter = (
            ", ".join(name for name, amount in marks.items() if amount == size),
            ascii_lowercase[number % 26],
        )
        axes.axvline(size, color=GREY, linewidth=0.9, zorder=1, gid=f"device {names}")
        axes.annotate(letter, (size, 1), xycoords=("data", "axes fraction"), xytext=(0, -7), textcoords="offset points",
                      ha="center", va="center", fontsize=9, fontweight="bold", zorder=5,
                      bbox={"boxstyle": "circle", "facecolor": "white", "edgecolor": GREY, "pad": 0.2})  # fmt: skip
        text = f"{names}: {words.memory(size)} per block"
        axes.plot([], [], color=GREY, linewidth=0.9, marker=rf"$\mathrm{{{letter}}}$", markersize=7, label=text)
