"""Times of every tile that fits a device, with the fastest, the shipped and the most frugal tile marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.errors import InputError, shown
from iomodel.nests.alphabet import TILES
from iomodel.plots import words
from iomodel.plots.canvas import drawing, legend
from iomodel.solving.tile_times import TileTimes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLOWEST = 2.0
"""Time relative to the fastest at which the colours end [-]."""
STYLES: dict[str, dict[str, Any]] = {
    "fewest requests": {"marker": "v", "markersize": 11, "color": "white"},
    "shipped": {"marker": "s", "markersize": 13, "fillstyle": "none", "color": "black"},
    "fastest": {"marker": "*", "markersize": 17, "color": "white"},
}


def tile_times(times: TileTimes) -> Figure:
    """Draw the time of every tile that fits, relative to the fastest; yellow is fast.

    Parameters
    ----------
    times : TileTimes
        The result of :func:`iomodel.kernels.tile_times`.

    Returns
    -------
    matplotlib.figure.Figure
        Tiles are cells at even distances; a tile without a cell fits in no launch configuration.

    Raises
    ------
    InputError
        The argument is no such result; matplotlib is missing.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> w = iomodel.Attention(heads=32, q_len=8192, head_dim=128, mask="causal")
    >>> picture = plots.tile_times(iomodel.kernels.tile_times("flash3", w, "h100-sxm5"))  # doctest: +SKIP
    """
    if not isinstance(times, TileTimes):
        raise InputError(f"times: {shown(times)} given; allowed: a result of iomodel.kernels.tile_times")
    title = f"Time of every tile of {times.algorithm} on {times.hardware.name}"
    picture, axes = drawing(title, f"{words.workload(times.workload)}\n{times.implementation}", 4.2, grid=False)
    best = times.fastest.seconds or 1.0
    cells = np.array([[np.nan if value is None else value / best for value in row] for row in times.seconds])
    drawn = axes.pcolormesh(
        np.arange(len(times.second_sizes) + 1) - 0.5, np.arange(len(times.first_sizes) + 1) - 0.5,
        np.ma.masked_invalid(cells), cmap="cividis_r", vmin=1.0, vmax=SLOWEST, edgecolor="white", linewidth=1.0,
        gid="times",
    )  # fmt: skip
    bar = picture.colorbar(
        drawn, ax=axes, pad=0.02, aspect=30, extend="max" if np.nanmax(cells) > SLOWEST else "neither"
    )
    bar.set_label("time over that of the fastest tile [-]", fontsize=10)
    units = {entry.name: entry.unit for entry in TILES}
    for side, name, sizes in (("y", times.names[0], times.first_sizes), ("x", times.names[1], times.second_sizes)):
        places = range(0, len(sizes), -(-len(sizes) // 12))
        getattr(axes, f"set_{side}ticks")(list(places), [f"{sizes[place]:,}" for place in places])
        getattr(axes, f"set_{side}label")(f"{name} [{units[name]}]", fontsize=10)
    for name, tile in times.marks.items():
        row, column = (tile.tiles[of] for of in times.names)
        label = f"{name}: {row:,} x {column:,}, {words.short(tile.seconds or 0.0, 's')}"
        axes.plot(
            [times.second_sizes.index(column)], [times.first_sizes.index(row)], linestyle="none", label=label,
            markeredgecolor="black", markeredgewidth=1.3, zorder=5, gid=f"mark {name}", **STYLES[name],
        )  # fmt: skip
    legend(picture, 2)
    return picture
