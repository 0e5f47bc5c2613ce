"""Tiles that fit, coloured by their traffic, with the limits that exclude the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common import labels
from iomodel.common.validation import as_integer, as_mapping
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, shown
from iomodel.nests.alphabet import TILES
from iomodel.nests.implementation import Implementation
from iomodel.placement.budget import budget_in, takes_budget
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, figure, legend, log_ticks, place_ticks, plain, subtitle
from iomodel.plots.tile_map import TileMap, even, ticks, tile_map
from iomodel.plots.tile_times_plot import STYLES
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = {"shared memory": (COLOURS[1], "-"), "registers": (COLOURS[3], "--"), "SRAM": (COLOURS[1], "-")}


@takes_budget
def feasible_tiles(
    algorithm: AlgorithmLike,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None = None,
    implementation: str | Implementation | None = None,
    *,
    marks: Mapping[str, Mapping[str, int]] | None = None,
    **options: Any,
) -> Figure:
    """Draw the feasible tiles, coloured by their requests, with limits as lines and the best tile marked.

    On a device, all tiles of the map have the same warps and stages, and are multiples of the MMA steps of the warps; a
    tile fits if :func:`iomodel.check` accepts it. Under a bare budget, with an alignment, and with the textbook's
    implementation, all live data must fit one memory, as in :func:`iomodel.solve`.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`; of more than two tiles, the first two are varied and the others keep the
        sizes chosen by the solver.
    workload : Attention or VarlenAttention
        The attention call; on a device an Attention.
    hardware : Hardware or str, optional
        The device.
    implementation : str or Implementation, optional
        The kernels: one of :func:`iomodel.list_implementations`, by default that of
        :func:`iomodel.estimate`.
    marks : mapping of label to tiles, optional
        Other tiles to mark, such as ``{"shipped": {"block_q": 128, "block_kv": 64}}`` [rows].
    **options
        Options of the algorithm, and the launch configuration of the kernel, `warps` and `stages` [-]: that of the
        least traffic by default.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown; a value is out of range; the device lacks a figure; matplotlib is missing.
    InfeasibleError
        No tile fits.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> w = iomodel.Attention(q_len=4096, head_dim=128)
    >>> picture = plots.feasible_tiles("flash2", w, "a100-sxm4-80gb")  # doctest: +SKIP
    """
    where = "" if hardware is None else f" on {as_device(hardware).name}"
    picture = figure(f"Feasible tiles of {find_algorithm(algorithm).name}{where}", height=5.0)
    budget = budget_in(options)
    chosen = {name: options.pop(name, None) for name in ("warps", "stages")}
    launch = {name: size for name, size in chosen.items() if size is not None}
    grid = tile_map(algorithm, workload, hardware, implementation, launch, budget, options)
    points = _marks(marks, grid.names)
    axes = picture.add_subplot()
    plain(axes, grid=False)
    solution = grid.solution
    placement = solution.placed.residency if solution.placed is not None else f"all in {solution.budget}"
    subtitle(axes, "\n".join([words.call(solution.cost.workload), placement, "; ".join(grid.notes)]))
    _scales(axes, grid)
    _cells(picture, axes, grid)
    _misfits(axes, grid)
    _limits(axes, grid)
    _mark(axes, grid, points)
    legend(picture, 3)
    return picture


def _marks(marks: Mapping[str, Mapping[str, int]] | None, names: tuple[str, str]) -> dict[str, tuple[int, int]]:
    """Validate the tiles to mark and return both sizes of each."""
    example = "{'shipped': {'block_q': 128, 'block_kv': 64}}"
    points = {}
    for label, tiles in as_mapping("marks", {} if marks is None else marks, example).items():
        sizes = as_mapping(f"marks: {label}", tiles, example)
        missing = next((name for name in names if name not in sizes), None)
        if missing is not None:
            raise InputError(f"marks: {shown(label)} has no {missing}; allowed: tiles such as {example}")
        points[str(label)] = (as_integer(names[0], sizes[names[0]]), as_integer(names[1], sizes[names[1]]))
    return points


def _scales(axes: Any, grid: TileMap) -> None:
    for axis, sizes, scaled in ((axes.xaxis, grid.columns, axes.set_xscale), (axes.yaxis, grid.rows, axes.set_yscale)):
        scaled("linear" if even(sizes) else "log")
        place_ticks(axis, ticks(sizes, 9), lambda size: f"{size:,.0f}")
    units = {entry.name: entry.unit for entry in TILES}
    axes.set_xlabel(f"{grid.names[1]} [{units[grid.names[1]]}]", fontsize=10)
    axes.set_ylabel(f"{grid.names[0]} [{units[grid.names[0]]}]", fontsize=10)


def _cells(picture: Any, axes: Any, grid: TileMap) -> None:
    """Draw colours for tiles that fit, hatching elsewhere."""
    from matplotlib.colors import LogNorm

    shown_bytes = np.ma.masked_where(~grid.fits, grid.traffic)
    least, most = float(shown_bytes.min()), float(shown_bytes.max())
    factor, unit = words.scale(most, "B")
    axes.set_facecolor("#F2F2F2")
    drawn = axes.pcolormesh(
        _edges(grid.columns), _edges(grid.rows), shown_bytes / factor, cmap="cividis_r", gid="traffic", zorder=1,
        norm=LogNorm(least / factor, max(most, 1.001 * least) / factor), edgecolor="white", linewidth=0.3,
    )  # fmt: skip
    bar = picture.colorbar(drawn, ax=axes, pad=0.02, aspect=30)
    bar.set_label(f"{labels.REQUESTS} [{unit}]", fontsize=10)
    bar.ax.tick_params(labelsize=9)
    place_ticks(bar.ax.yaxis, log_ticks(least / factor, most / factor), lambda value: f"{value:,.4g}")
    inside = np.argwhere(grid.fits)
    if len(inside) <= 600:  # one dot per tile; the limits lie between dots
        axes.plot(np.array(grid.columns)[inside[:, 1]], np.array(grid.rows)[inside[:, 0]], "o", color="white",
                  markersize=2.4, markeredgecolor="black", markeredgewidth=0.4, zorder=2)  # fmt: skip
    axes.fill_between(_edges(grid.columns)[[0, -1]], *_edges(grid.rows)[[0, -1]], facecolor="none", hatch="....",
                      edgecolor="#CFCFCF", linewidth=0, zorder=0, label="exceeds a limit")  # fmt: skip


def _misfits(axes: Any, grid: TileMap) -> None:
    """Draw stripes where no limit is exceeded but the kernel does not support the tile."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    room = np.all([share <= 1 for share in grid.shares.values()], axis=0)
    cells = np.argwhere(room & ~grid.fits)
    if len(cells) == 0:
        return
    x, y = _edges(grid.columns), _edges(grid.rows)
    patches = [Rectangle((x[v], y[u]), x[v + 1] - x[v], y[u + 1] - y[u]) for u, v in cells]
    style: dict[str, Any] = {"facecolor": "white", "edgecolor": "#AFAFAF", "hatch": "////", "linewidth": 0}
    axes.add_collection(PatchCollection(patches, zorder=1, gid="misfit", **style))
    axes.add_patch(Rectangle((x[0], y[0]), 0, 0, label=grid.misfit, **style))  # for the legend


def _edges(sizes: Sequence[int]) -> Any:
    """Compute the edges of cells, each of which ends at its size, so that no cell that fits crosses a limit."""
    ends = np.array(sizes, dtype=float)
    first = 0.0 if even(sizes) else ends[0] ** 2 / ends[1]
    return np.append(first, ends)


def _limits(axes: Any, grid: TileMap) -> None:
    """Draw a line for every resource, between the tiles that fit it and those that do not."""
    for name, share in grid.shares.items():
        colour, style = LINES[name]
        if share.max() > 1 >= share.min():
            # Just above 1: a tile that uses all of the resource fits, and lies on the inner side.
            drawn = axes.contour(grid.columns, grid.rows, share, levels=[1 + 1e-9], colors=[colour], linewidths=2,
                                 linestyles=[style], zorder=3)  # fmt: skip
            drawn.set_gid(f"limit {name}")
            axes.plot([], [], color=colour, linestyle=style, linewidth=2, label=f"limit of {name}")


def _mark(axes: Any, grid: TileMap, points: Mapping[str, tuple[int, int]]) -> None:
    solution = grid.solution
    row, column = (solution.tiles[name] for name in grid.names)
    label = f"fewest requests: {row:,} x {column:,}, {words.short(solution.cost.hbm_bytes, 'B')}"
    star = {**STYLES["fewest requests"], "markeredgecolor": "black", "markeredgewidth": 1.2}
    axes.plot([column], [row], linestyle="none", zorder=5, label=label, gid="optimum", **star)
    for number, (name, (u, v)) in enumerate(points.items()):
        style = {"marker": "sD^vo"[number % 5], "markersize": 15, "fillstyle": "none", "color": "black"}
        label = f"{name}: {u:,} x {v:,}"
        axes.plot([v], [u], linestyle="none", zorder=6, markeredgewidth=1.6, label=label, gid=f"mark {name}", **style)
    for limit, sizes, marked in (
        (axes.set_xlim, grid.columns, [v for _, v in points.values()]),
        (axes.set_ylim, grid.rows, [u for u, _ in points.values()]),
    ):
        first, last = _edges(sizes)[[0, -1]]
        limit(min([first, *(0.9 * size for size in marked)]), max([1.02 * last, *(1.1 * size for size in marked)]))
