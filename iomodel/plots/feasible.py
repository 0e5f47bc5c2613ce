"""The tiles that fit, coloured by their traffic, with what keeps the others out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.check import as_device
from iomodel.errors import InputError, shown
from iomodel.hardware import Hardware
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, figure, legend, log_ticks, plain, subtitle
from iomodel.plots.tile_map import TileMap, even, ticks, tile_map
from iomodel.residency import Residency
from iomodel.symbols import TILES
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Attention, VarlenAttention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = {"shared memory": (COLOURS[1], "-"), "registers": (COLOURS[3], "--"), "SRAM": (COLOURS[1], "-")}


def feasible_tiles(
    algorithm: str,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None = None,
    residency: str | Residency | None = None,
    *,
    warps: int | None = None,
    stages: int | None = None,
    sram_bytes: int | None = None,
    sram_elements: int | None = None,
    alignment: int | None = None,
    marks: Mapping[str, Mapping[str, int]] | None = None,
    **options: Any,
) -> Figure:
    """Draw which tiles fit, coloured by their HBM traffic, with the limits as lines and the best tile marked.

    With a residency, all tiles of the map have the same warps and stages, and only multiples of what the warps
    multiply together are on it. A tile fits where :func:`iomodel.check` says so. Without, tiles keep to one memory for
    all that is live, as :func:`iomodel.solve` has it.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`; of more than two tiles the first two are drawn, the others stay as the
        solver chose them.
    workload : Attention or VarlenAttention
        The attention call; with a residency an Attention.
    hardware : Hardware or str, optional
        The device.
    residency : "gpu" or Residency, optional
        Where the tiles lie on the device.
    warps, stages : int, optional
        With a residency, how the kernel is launched: as the solver chose if not given [-].
    sram_bytes, sram_elements, alignment : int, optional
        A bare budget, and what tiles are multiples of, as in :func:`iomodel.solve`.
    marks : mapping of label to tiles, optional
        Other tiles to mark, such as ``{"shipped": {"block_q": 128, "block_kv": 64}}`` [rows].
    **options
        Options of the algorithm.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        An unknown name; a value out of range; a figure that the device lacks; matplotlib is missing.
    InfeasibleError
        No tile fits.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> w = iomodel.Attention(q_len=4096, head_dim=128)
    >>> picture = plots.feasible_tiles("flash2", w, "a100-sxm4-80gb", "gpu")  # doctest: +SKIP
    """
    where = "" if hardware is None else f" on {as_device(hardware).name}"
    made = figure(f"Tiles of {find_algorithm(algorithm).name} that fit{where}", height=5.0)
    given = {"sram_bytes": sram_bytes, "sram_elements": sram_elements, "alignment": alignment}
    budget = {name: size for name, size in given.items() if size is not None}
    launch = {name: size for name, size in {"warps": warps, "stages": stages}.items() if size is not None}
    found = tile_map(algorithm, workload, hardware, residency, launch, budget, options)
    points = _marks(marks, found.names)
    axes = made.add_subplot()
    plain(axes, grid=False)
    solution = found.solution
    place = solution.placed.residency if solution.placed is not None else f"all in {solution.budget}"
    subtitle(axes, "\n".join([words.call(solution.cost.workload), place, "; ".join(found.notes)]))
    _scales(axes, found)
    _cells(made, axes, found)
    _misfits(axes, found)
    _limits(axes, found)
    _mark(axes, found, points)
    legend(made, 3)
    return made


def _marks(given: Mapping[str, Mapping[str, int]] | None, names: tuple[str, str]) -> dict[str, tuple[int, int]]:
    """The tiles to mark: both sizes of each."""
    example = "{'shipped': {'block_q': 128, 'block_kv': 64}}"
    points = {}
    for label, tiles in as_mapping("marks", {} if given is None else given, example).items():
        sizes = as_mapping(f"marks: {label}", tiles, example)
        missing = next((name for name in names if name not in sizes), None)
        if missing is not None:
            raise InputError(f"marks: {shown(label)} has no {missing}; allowed: such as {example}")
        points[str(label)] = (as_integer(names[0], sizes[names[0]]), as_integer(names[1], sizes[names[1]]))
    return points


def _scales(axes: Any, found: TileMap) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    for axis, sizes, scaled in (
        (axes.xaxis, found.columns, axes.set_xscale),
        (axes.yaxis, found.rows, axes.set_yscale),
    ):
        scaled("linear" if even(sizes) else "log")
        axis.set_major_locator(FixedLocator(ticks(sizes, 9)))
        axis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
        axis.set_minor_locator(NullLocator())
    units = {entry.name: entry.unit for entry in TILES}
    axes.set_xlabel(f"{found.names[1]} [{units[found.names[1]]}]", fontsize=10)
    axes.set_ylabel(f"{found.names[0]} [{units[found.names[0]]}]", fontsize=10)


def _cells(made: Any, axes: Any, found: TileMap) -> None:
    """Colours where a tile fits, hatching elsewhere."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    shown_bytes = np.ma.masked_where(~found.fits, found.traffic)
    least, most = float(shown_bytes.min()), float(shown_bytes.max())
    factor, unit = words.scale(most, "B")
    axes.set_facecolor("#F2F2F2")
    drawn = axes.pcolormesh(
        _edges(found.columns), _edges(found.rows), shown_bytes / factor, cmap="cividis", gid="traffic", zorder=1,
        norm=LogNorm(least / factor, max(most, 1.001 * least) / factor), edgecolor="white", linewidth=0.3,
    )  # fmt: skip
    bar = made.colorbar(drawn, ax=axes, pad=0.02, aspect=30)
    bar.set_label(f"HBM traffic [{unit}]", fontsize=10)
    bar.ax.tick_params(labelsize=9)
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_locator(FixedLocator(log_ticks(least / factor, most / factor)))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
    inside = np.argwhere(found.fits)
    if len(inside) <= 600:  # a dot for each tile: the limits lie between dots
        axes.plot(np.array(found.columns)[inside[:, 1]], np.array(found.rows)[inside[:, 0]], "o", color="white",
                  markersize=2.4, markeredgecolor="black", markeredgewidth=0.4, zorder=2)  # fmt: skip
    axes.fill_between(_edges(found.columns)[[0, -1]], *_edges(found.rows)[[0, -1]], facecolor="none", hatch="....",
                      edgecolor="#CFCFCF", linewidth=0, zorder=0, label="exceeds a limit")  # fmt: skip


def _misfits(axes: Any, found: TileMap) -> None:
    """Stripes where nothing is exceeded, and the kernel takes no such tile all the same."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    room = np.all([share <= 1 for share in found.shares.values()], axis=0)
    cells = np.argwhere(room & ~found.fits)
    if len(cells) == 0:
        return
    x, y = _edges(found.columns), _edges(found.rows)
    patches = [Rectangle((x[v], y[u]), x[v + 1] - x[v], y[u + 1] - y[u]) for u, v in cells]
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": "#AFAFAF", "hatch": "////", "linewidth": 0}
    axes.add_collection(PatchCollection(patches, zorder=1, gid="misfit", **look))
    axes.add_patch(Rectangle((x[0], y[0]), 0, 0, label=found.misfit, **look))  # for the legend


def _edges(sizes: Sequence[int]) -> Any:
    """The edges of cells around sizes: halfway, in ratio where the axis is logarithmic."""
    given = np.array(sizes, dtype=float)
    if even(sizes):
        return np.append(given, given[-1] + given[0]) - given[0] / 2
    between = np.sqrt(given[1:] * given[:-1])
    return np.concatenate([[given[0] ** 2 / between[0]], between, [given[-1] ** 2 / between[-1]]])


def _limits(axes: Any, found: TileMap) -> None:
    """A line for every resource, between the tiles that it has room for and those that it has not."""
    for name, share in found.shares.items():
        colour, style = LINES[name]
        if share.max() > 1 >= share.min():
            # Just above 1: a tile that takes all there is fits, and lies on the inner side.
            drawn = axes.contour(found.columns, found.rows, share, levels=[1 + 1e-9], colors=[colour], linewidths=2,
                                 linestyles=[style], zorder=3)  # fmt: skip
            drawn.set_gid(f"limit {name}")
            axes.plot([], [], color=colour, linestyle=style, linewidth=2, label=f"limit of {name}")


def _mark(axes: Any, found: TileMap, points: Mapping[str, tuple[int, int]]) -> None:
    solution = found.solution
    row, column = (solution.tiles[name] for name in found.names)
    label = f"least traffic: {row:,} x {column:,}, {words.short(solution.cost.hbm_bytes, 'B')}"
    star = {"marker": "*", "markersize": 17, "color": "white", "markeredgecolor": "black", "markeredgewidth": 1.2}
    axes.plot([column], [row], linestyle="none", zorder=5, label=label, gid="optimum", **star)
    for number, (name, (u, v)) in enumerate(points.items()):
        look = {"marker": "sD^vo"[number % 5], "markersize": 15, "fillstyle": "none", "color": "black"}
        axes.plot(
            [v],
            [u],
            linestyle="none",
            zorder=6,
            markeredgewidth=1.6,
            label=f"{name}: {u:,} x {v:,}",
            gid=f"mark {name}",
            **look,
        )
    for limit, sizes, marked in (
        (axes.set_xlim, found.columns, [v for _, v in points.values()]),
        (axes.set_ylim, found.rows, [u for u, _ in points.values()]),
    ):
        first, last = _edges(sizes)[[0, -1]]
        limit(min([first, *(0.9 * size for size in marked)]), max([last, *(1.1 * size for size in marked)]))
