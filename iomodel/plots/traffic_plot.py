"""Requests against SRAM size: solved tiles, lower bounds, and the continuous optimum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common.validation import as_integer
from iomodel.counting.bounds import best_bound, compulsory
from iomodel.counting.optimum import optimum
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError, InputError, IOModelError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.symbols import BY_NAME
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, MARKERS, drawing, legend, place_ticks, powers_of_two, traffic_ticks
from iomodel.solving.solution import Solution
from iomodel.solving.solve import solve
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention, as_call

if TYPE_CHECKING:
    from matplotlib.figure import Figure


STEPS = 4
"""Default number of sizes per octave."""
MOST = 2**28
"""Largest default size, far above the SRAM per block of any chip [B]."""
NEAR = 1.02
"""Ratio to the least traffic below which larger sizes are not evaluated [-]."""
LONGEST = 2000
"""Most sizes in one picture."""


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
    """Draw the requests of the solved tiles against the available SRAM.

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
    step = alignment if alignment is not None else max([1, *(device.tile_alignment for device in devices)])
    chosen = {**options, "alignment": step} | ({} if min_block_kv is None else {"min_block_kv": min_block_kv})
    marks = {device.name: device.sram_per_block for device in devices}
    sizes = usual(names, call, marks.values(), chosen) if sram is None else budgets([*budgets(sram), *marks.values()])
    sweeps = [sweep(name, call, sizes, chosen) for name in names]
    multiples = f"; tiles are multiples of {step}" if step > 1 else ""
    title, height = f"Requests against SRAM: {', '.join(names)}", 4.3 + 0.2 * (len(names) + len(devices) / 2)
    picture, axes = drawing(title, words.call(call) + multiples, height)
    _memory_axis(axes, sizes)
    for number, entry in enumerate(sweeps):
        _draw(axes, entry, number, sizes[-1])
    _draw_bounds(axes, sweeps)
    _draw_devices(axes, marks)
    traffic_ticks(axes)
    legend(picture, 2)
    return picture


def _memory_axis(axes: Any, sizes: Sequence[int]) -> None:
    """Set logarithmic axes, with memory in powers of two."""
    low, high = sizes[0], max(sizes[-1], 2 * sizes[0])
    axes.set(xscale="log", yscale="log", xlim=(low / 1.1, high * 1.1))
    place_ticks(axes.xaxis, powers_of_two(low, high), words.memory)
    axes.set_xlabel("SRAM per block [B]", fontsize=10)


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


@dataclass(frozen=True)
class Sweep:
    """Solutions of one algorithm over SRAM sizes.

    Attributes
    ----------
    algorithm : str
        Name of the algorithm.
    solutions : mapping of int to Solution
        Solution at each size [B] in which a tile fits, in ascending order.
    formula : mapping of int to float
        Traffic of the continuous optimum, where a formula covers the call and its tiles are in range [B].
    bounds : mapping of int to int
        Largest valid lower bound at every size [B].
    compulsory : int
        Compulsory traffic of every algorithm [B].
    width : int
        Width of every element in the formula [B].
    """

    algorithm: str
    solutions: Mapping[int, Solution]
    formula: Mapping[int, float]
    bounds: Mapping[int, int]
    compulsory: int
    width: int


def budgets(requested: Iterable[int]) -> list[int]:
    """Validate SRAM sizes and sort them without duplicates; raise InputError for invalid ones."""
    if isinstance(requested, str | bytes) or not isinstance(requested, Iterable):
        raise InputError(f"sram: {shown(requested)} given; allowed: sizes in bytes, such as range(2**15, 2**20, 2**15)")
    sizes = set()
    for size in requested:
        sizes.add(as_integer("sram", size))
        if len(sizes) > LONGEST:
            raise InputError(f"sram: more than {LONGEST:,} sizes given; allowed: up to {LONGEST:,}")
    if not sizes:
        raise InputError("sram: no size given; allowed: sizes in bytes, such as range(2**15, 2**20, 2**15)")
    return sorted(sizes)


def usual(
    algorithms: Iterable[AlgorithmLike],
    workload: Attention | VarlenAttention,
    also: Iterable[int],
    options: Mapping[str, Any],
) -> list[int]:
    """Choose sizes from the smallest that fits a tile to where more memory helps little."""
    names, least = list(algorithms), []
    for name in names:
        try:
            least.append(solve(name, workload, sram_bytes=1, **options).footprint)
        except InfeasibleError as error:
            least.append(error.least)

    def traffic(name: AlgorithmLike, size: int) -> int:
        return solve(name, workload, sram_bytes=size, **options).cost.hbm_bytes

    low, high = min([*least, *also]), 4 * max([*least, *also])
    while high < MOST and any(traffic(name, high) > NEAR * traffic(name, MOST) for name in names):
        high *= 2
    sizes, number = {low, high, 2 * high, *least, *also}, 0
    while (size := round(low * 2 ** (number / STEPS))) < high:
        sizes.add(size)
        number += 1
    return sorted(sizes)


def sweep(
    name: AlgorithmLike, workload: Attention | VarlenAttention, sizes: Sequence[int], options: Mapping[str, Any]
) -> Sweep:
    """Solve at each size; omit sizes in which no tile fits, and raise InfeasibleError if none fits at all."""
    solutions, failure = {}, None
    for size in sizes:
        try:
            solutions[size] = solve(name, workload, sram_bytes=size, **options)
        except InfeasibleError as error:
            failure = error
    if failure is not None and not solutions:
        raise failure
    least = compulsory(name, workload).bytes
    bounds = {size: best_bound(name, workload, sram_bytes=size).bytes for size in sizes}
    continuous = formula(name, workload, solutions, options)
    return Sweep(name_of(name), solutions, continuous, bounds, least, workload.element_size)


def formula(
    name: AlgorithmLike, workload: Attention | VarlenAttention, sizes: Iterable[int], options: Mapping[str, Any]
) -> dict[int, float]:
    """Evaluate the continuous optimum at SRAM sizes [B], for calls with identical heads and no features.

    Every element is assumed to be as wide as those of the workload.
    """
    shape_options = {
        key: value for key, value in options.items() if key not in ("alignment", "min_block_kv", "epsilon")
    }
    if not isinstance(workload, Attention) or workload.features or shape_options.pop("packed", False):
        return {}
    if workload.group > 1 and workload.direction != "forward":
        return {}  # gradients of shared keys belong to several heads
    if workload.mask != "full" and workload.q_len != workload.kv_len:
        return {}
    try:
        best = optimum(name, workload.mask, workload.direction, **shape_options)
    except IOModelError:  # no formula for this mask or shape
        return {}
    w, width = workload, workload.element_size
    known = {"q_len": w.q_len, "kv_len": w.kv_len, "length": w.q_len, "head_dim": w.head_dim,
             "value_dim": w.value_dim, "window_left": w.numbers["window_left"],
             "window_right": w.numbers["window_right"], "least_block": 1}  # fmt: skip
    point = {BY_NAME[key]: value for key, value in known.items()}
    tiles = [size.subs(point) for size in best.tiles.values()]
    traffic = best.hbm_elements.subs(point)
    longest, traffic_by_size = max(w.q_len, w.kv_len), {}
    for size in sizes:
        memory = {BY_NAME["sram_elements"]: size / width}
        if all(1 <= tile.subs(memory).evalf() <= longest for tile in tiles):
            traffic_by_size[size] = float(traffic.subs(memory).evalf()) * width * w.batch * w.heads
    return traffic_by_size
