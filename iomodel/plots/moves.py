"""Drawing of a schedule: the tile of each tensor that each move carries, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from iomodel.errors import InputError, shown
from iomodel.plots import words
from iomodel.plots.canvas import COLOURS, FAINT, GREY, beside, figure, plain, subtitle
from iomodel.studies.trace.events import READING, WRITING, Event
from iomodel.studies.trace.text import named
from iomodel.studies.trace.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_MOVES = 20_000
"""Most moves of a drawing; more would be illegible."""
LANE, GAP = 1.0, 0.35
"""Height of the lane of a tensor, and the gap to the next."""
LETTERS = 110
"""Letters of a kernel's title that fit in the width of the axes."""
KINDS: dict[str, dict[str, Any]] = {
    "read": {"facecolor": COLOURS[0], "edgecolor": COLOURS[0]},
    "write": {"facecolor": "white", "edgecolor": COLOURS[1], "hatch": "//////"},
    "read and write": {"facecolor": "#F3D9E7", "edgecolor": COLOURS[3], "hatch": "xxxxx"},
}
"""Looks of the moves in each direction; hatches tell them apart without colour."""


Extents = dict[tuple[str, tuple[str, ...]], dict[str, int]]


class Move(NamedTuple):
    """One move: its tensor and direction, its bytes from the start of the schedule, its span of the tensor's rows."""

    tensor: str
    kind: str
    start: int
    stop: int
    low: float
    high: float


def moves(trace: Trace) -> Figure:
    """Draw the schedule of a trace: one lane per tensor, one box per move.

    Parameters
    ----------
    trace : Trace
        Result of :func:`iomodel.trace`, of a call of few tiles.

    Returns
    -------
    matplotlib.figure.Figure
        The horizontal axis is the traffic since the start [B], so that the width of a box is its bytes. The height of
        a lane is the tensor from its first row at the top to its last; a box spans the rows of its tile, and within
        them the columns if the tensor is cut both ways. Beside each lane stands how often the tensor moves.

    Raises
    ------
    InputError
        The argument is not a trace, or has more than 20,000 moves; matplotlib is missing.

    Examples
    --------
    >>> import iomodel
    >>> from iomodel import plots
    >>> w = iomodel.Attention(q_len=64, head_dim=16)
    >>> picture = plots.moves(iomodel.trace("flash2", w, tiles={"block_q": 16, "block_kv": 16}))  # doctest: +SKIP
    """
    if not isinstance(trace, Trace):
        raise InputError(f"trace: {shown(trace)} given; allowed: the result of iomodel.trace")
    events = [event for event in trace.events if event.hbm_bytes]
    if len(events) > MOST_MOVES:
        raise InputError(f"trace: {len(events):,} moves given; allowed: up to {MOST_MOVES:,}, as of fewer tiles")
    extents = _extents(events)
    boxes = _moves(events, extents)
    lanes = list(dict.fromkeys(box.tensor for box in boxes))
    picture = figure(f"Moves of {trace.algorithm}", 8.4, 1.5 + 0.52 * len(lanes))
    axes = picture.add_subplot()
    plain(axes, grid=False)
    total = boxes[-1].stop if boxes else 1
    for row, tensor in enumerate(lanes):
        own = [box for box in boxes if box.tensor == tensor]
        _lane(axes, row * (LANE + GAP), own, total)
        seen = (prod(sizes.values()) for (name, _), sizes in extents.items() if name == tensor)
        size = max(trace.sizes.get(tensor, 1), *seen)  # a gather moves few rows of many; packed rows are of many heads
        beside(axes, row * (LANE + GAP) + LANE / 2, _times(events, tensor, size), fontsize=8, color=GREY)
    axes.set_yticks([row * (LANE + GAP) + LANE / 2 for row in range(len(lanes))], lanes, fontsize=9, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set(xlim=(0, total), ylim=(len(lanes) * (LANE + GAP) - GAP + 0.1, -0.1))
    _kernels(axes, events, total)
    factor, unit = words.scale(total, "B")
    axes.xaxis.set_major_formatter(lambda value, _: words.number(value / factor))
    axes.set_xlabel(f"traffic so far [{unit}]", fontsize=10)
    subtitle(axes, ", ".join(filter(None, [words.workload(trace.workload), named(trace.tiles)])))
    _legend(picture, {box.kind for box in boxes})
    return picture


def _cut(event: Event) -> tuple[str, tuple[str, ...]]:
    """Return the tensor of a move with the axes that it is cut along: a gather cuts it along others than a load."""
    return event.tensor, tuple(axis for axis, _, _ in event.tile)


def _extents(events: Sequence[Event]) -> Extents:
    """Find the size of each axis of each tensor."""
    extents: Extents = defaultdict(dict)
    for event in events:
        sizes = extents[_cut(event)]
        for axis, _, stop in event.tile:
            sizes[axis] = max(stop, sizes.get(axis, 1))
    return extents


def _moves(events: Sequence[Event], extents: Extents) -> list[Move]:
    """Place each event on both axes."""
    boxes, done = [], 0
    for event in events:
        low, high = 0.0, 1.0
        for axis, start, stop in event.tile:
            width, size = high - low, extents[_cut(event)][axis]
            low, high = low + width * start / size, low + width * stop / size
        boxes.append(Move(event.tensor, _kind(event), done, done + event.hbm_bytes, low, high))
        done += event.hbm_bytes
    return boxes


def _kind(event: Event) -> str:
    return " and ".join(["read"] * (event.op in READING) + ["write"] * (event.op in WRITING))


def _lane(axes: Any, top: float, boxes: Sequence[Move], total: int) -> None:
    """Draw the tensor as a frame, and its moves as boxes."""
    from matplotlib.collections import PolyCollection

    axes.axhspan(top, top + LANE, facecolor="#F7F7F7", edgecolor=FAINT, linewidth=0.6, zorder=0)
    for kind, style in KINDS.items():
        own = [box for box in boxes if box.kind == kind]
        if not own:
            continue
        spans = np.array([(box.start, box.stop, top + LANE * box.low, top + LANE * box.high) for box in own])
        left, right, upper, lower = spans.T
        corners = np.stack([np.stack([left, upper], 1), np.stack([right, upper], 1),
                            np.stack([right, lower], 1), np.stack([left, lower], 1)], 1)  # fmt: skip
        thin = 0.3 if len(own) > 200 or (right - left).mean() < total / 300 else 0.7
        axes.add_collection(
            PolyCollection(list(corners), linewidth=thin, zorder=2, gid=f"{kind} {own[0].tensor}", **style)
        )


def _times(events: Sequence[Event], tensor: str, size: int) -> str:
    """Say how often the elements of a tensor are read and written."""
    reads = sum(event.reads for event in events if event.tensor == tensor)
    writes = sum(event.writes for event in events if event.tensor == tensor)
    counts = {"read": reads / size, "written": writes / size}
    return ", ".join(f"{word} {words.number(count)}x" for word, count in counts.items() if count)


def _kernels(axes: Any, events: Sequence[Event], total: int) -> None:
    """Mark where each kernel begins, if there are several."""
    starts: dict[str, int] = {}
    done = 0
    for event in events:
        starts.setdefault(event.kernel, done)
        done += event.hbm_bytes
    if len(starts) < 2:
        return
    ends = [*list(starts.values())[1:], total]
    for (title, start), end in zip(starts.items(), ends, strict=True):
        axes.axvline(start, color="black", linewidth=0.8, linestyle=":", zorder=3, gid=f"kernel {title}")
        if len(title) < LETTERS * (end - start) / total:
            axes.annotate(title, (start, -0.12), xytext=(3, 0), textcoords="offset points", fontsize=7.5, va="bottom",
                          parse_math=False)  # fmt: skip
    axes.set_ylim(top=-0.65)


def _legend(picture: Any, kinds: set[str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(label=kind, **style) for kind, style in KINDS.items() if kind in kinds]
    picture.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, edgecolor=FAINT)
