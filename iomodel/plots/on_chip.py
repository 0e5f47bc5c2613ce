"""Drawing of a thread block on chip: the buffers in shared memory, registers and tensor memory, to scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from iomodel.algorithms import AlgorithmLike
from iomodel.devices.device import Hardware
from iomodel.nests.implementation import Implementation
from iomodel.placement.contents import Contents, Region, contents
from iomodel.placement.limits import COLUMN
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, GREY, beside, figure, subtitle
from iomodel.plots.styles import current
from iomodel.workloads.attention import Attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHER, FREE = "#B8B8B8", "#F7F7F7"
LIGHT = 140
"""Least lightness of a ground, of 255 [-]."""
LETTER = 0.011
"""Width of a letter, as a share of a bar [-]."""


class MemoryBar(NamedTuple):
    """One memory: its title, its contents, its use and its limit, and the text of a size."""

    title: str
    parts: Sequence[Region]
    used: float
    limit: float
    unit: str


def on_chip(
    algorithm: AlgorithmLike,
    workload: Attention,
    hardware: Hardware | str,
    tiles: Mapping[str, int] | None = None,
    implementation: str | Implementation | None = None,
    **options: Any,
) -> Figure:
    """Draw the buffers of a thread block in shared memory, registers and tensor memory, each to scale.

    Parameters
    ----------
    algorithm : str or Algorithm
        An algorithm with kernels for the call.
    workload : Attention
        The attention call.
    hardware : Hardware or str
        The device.
    tiles : mapping of tile name to int, optional
        As for :func:`iomodel.check`; by default the tile that the kernels ship.
    implementation : str or Implementation, optional
        The kernels, by default the first listed that run the call there.
    **options
        Options of the algorithm.

    Returns
    -------
    matplotlib.figure.Figure
        A bar for each memory, as long as its limit; the registers of a thread have a bar for each phase of the inner
        loop. Buffers that use the same storage in turn share a box.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        As for :func:`iomodel.check`; no tile is given and none is shipped; the kernels have no layout; matplotlib is
        missing.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> picture = plots.on_chip("flash2", iomodel.Attention(q_len=4096, head_dim=128), "h100-sxm5")  # doctest: +SKIP
    """
    held = contents(algorithm, workload, hardware, tiles, implementation, **options)
    bars = _bars(held)
    check = held.check
    picture = figure(f"{check.algorithm}: {words.tiles(check.tiles)} on {check.hardware}", 8.4, 1.3 + 0.62 * len(bars))
    axes = picture.add_subplot()
    axes.set_facecolor("white")
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    names = dict.fromkeys(part.name for bar in bars for part in bar.parts if part.name != "other")
    colours = {name: _tint(COLOURS[place % len(COLOURS)]) for place, name in enumerate(names)}
    for row, bar in enumerate(bars):
        _draw(axes, row, bar, colours)
    axes.set(xlim=(0, 1), ylim=(len(bars) - 0.4, -0.5))
    axes.set_yticks(range(len(bars)), [bar.title for bar in bars], fontsize=9)
    axes.tick_params(length=0, labelbottom=False)
    subtitle(axes, f"{words.call(workload)}; {check.residency}")
    return picture


def _bars(held: Contents) -> list[MemoryBar]:
    """List the memories with contents."""
    use = held.check.resources
    shared = use["shared memory"]
    bars = [MemoryBar("shared memory\nof a block", held.shared, shared.used, shared.limit, "B")]
    registers = use["registers"]
    for number, phase in enumerate(held.registers, 1):
        title = "registers\nof a thread" + (f", phase {number}" if len(held.registers) > 1 else "")
        parts = [*phase, Region("other", held.overhead)]
        bars.append(MemoryBar(title, parts, sum(part.size for part in parts), registers.limit, ""))
    if "tensor memory" in use:
        columns = [Region(part.name, part.size / COLUMN, part.instead) for part in held.tensor]
        tensor = use["tensor memory"]
        bars.append(MemoryBar("tensor memory\nof an SM", columns, tensor.used, tensor.limit, "columns"))
    return bars


def _size(value: float, unit: str) -> str:
    return words.memory(value) if unit == "B" else f"{value:,.4g} {unit}".strip()


def _draw(axes: Any, row: int, bar: MemoryBar, colours: Mapping[str, str]) -> None:
    """Draw the limit as a frame, and the buffers from the left; a use beyond the limit extends the scale."""
    scale = max(bar.limit, bar.used)
    axes.barh(row, bar.limit / scale, height=0.62, facecolor=FREE, edgecolor=GREY, linewidth=0.8, zorder=1,
              gid=f"limit {row}")  # fmt: skip
    left = 0.0
    beneath: list[list[str]] = []
    for part in bar.parts:
        width = part.size / scale
        colour = colours.get(part.name, OTHER)
        axes.barh(row, width, left=left, height=0.62, facecolor=colour, edgecolor="white", linewidth=1.0, zorder=2,
                  hatch="" if part.name in colours else "////", gid=f"part {row} {part.name}")  # fmt: skip
        lines = ["/".join((part.name, *part.instead)), _size(part.size, bar.unit)]
        letter = LETTER * current().letter
        named = lines[:1] if width > letter * (len(lines[0]) + 1) else []
        shown = lines if width > letter * max(map(len, lines)) else named
        axes.annotate("\n".join(shown), (left + width / 2, row), ha="center", va="center", fontsize=8,
                      color=_ink(colour), parse_math=False, zorder=3)  # fmt: skip
        if width and shown != lines:
            beneath.append(lines)
        left += width
    if beneath:
        sizes = [lines[1].split() for lines in beneath]
        alike = len({tuple(size[1:]) for size in sizes}) == 1
        last = len(beneath) - 1
        listed = (
            f"{lines[0]} {size[0] if alike and place < last else ' '.join(size)}"
            for place, (lines, size) in enumerate(zip(beneath, sizes, strict=True))
        )
        axes.annotate(", ".join(listed), (0, row + 0.33), ha="left", va="top", fontsize=7, color=GREY,
                      parse_math=False, zorder=3)  # fmt: skip
    over = bar.used > bar.limit
    used = _size(bar.used, "B") if bar.unit == "B" else f"{bar.used:,.4g}"
    text = f"{used} of {_size(bar.limit, bar.unit)}" + (", too much" if over else "")
    beside(axes, row, text, 8, fontsize=8.5, color=GREY, fontweight="bold" if over else "normal")


def _tint(colour: str) -> str:
    """Mix a dark colour with as much white, so that dark letters are legible on it."""
    red, green, blue = parts = _parts(colour)
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < LIGHT
    return "#" + "".join(f"{(part + 255) // 2:02X}" for part in parts) if dark else colour


def _ink(colour: str) -> str:
    """Choose the ink for a light ground: a dark shade of it."""
    parts = _parts(colour)
    hue = [part - min(parts) for part in parts]
    return "#" + "".join(f"{66 * part // max(1, *hue):02X}" for part in hue)


def _parts(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
