"""Times of every tile that fits a device, as a map over the two tiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.common.display import Result, StyledLine, Table, sizes_text
from iomodel.common.keywords import strict
from iomodel.common.sketch import cells
from iomodel.common.tabular import Tabular
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError
from iomodel.nests.implementation import Implementation
from iomodel.solving.candidates import Candidates, candidates
from iomodel.solving.certificate import RunnerUp
from iomodel.solving.fastest import as_runner_up, shipped_of
from iomodel.solving.question import Question
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention, as_call

SHADES = ((1.02, "█"), (1.1, "▓"), (1.25, "▒"), (1.6, "░"), (float("inf"), "·"))
"""Shades of a tile in text, each up to a time relative to the fastest [-]."""
COLOURS = ("#FDE725", "#5EC962", "#21918C", "#3B528B", "#7A5C8E")
"""Colours of the same steps, after the map viridis; the last is lighter, for dark pages."""
WIDEST = 64
"""Most characters of a row of the map; more sizes share a character, which shows the fastest of them."""
LETTERS: Mapping[str, str] = {"fewest requests": "R", "shipped": "S", "fastest": "F"}
"""Letters of the marked tiles in text; of two on one tile the later stands."""


@dataclass(frozen=True)
class TileTimes(Result, Tabular):
    """The time of every tile that fits a device, at the fastest launch configuration and choice of options.

    Attributes
    ----------
    algorithm, implementation : str
        What is timed, and the kernels that run it.
    hardware : Hardware
        The device.
    workload : Attention or VarlenAttention
        The call.
    names : tuple of str
        The two tiles.
    first_sizes, second_sizes : tuple of int
        Sizes of the two tiles, in ascending order [rows].
    seconds : tuple of tuple of float or None
        Time of each tile, by the size of the first and of the second; None where no launch configuration fits [s].
    requested_bytes : tuple of tuple of int or None
        Bytes that the blocks of the same launch request [B].
    fastest, fewest_requests : RunnerUp
        The fastest tile, and the one of the least requests, with their launch configuration.
    shipped : RunnerUp or None
        The fastest of the tiles that the implementation ships.
    """

    algorithm: str
    implementation: str
    hardware: Hardware
    workload: Attention | VarlenAttention
    names: tuple[str, str]
    first_sizes: tuple[int, ...]
    second_sizes: tuple[int, ...]
    seconds: tuple[tuple[float | None, ...], ...]
    requested_bytes: tuple[tuple[int | None, ...], ...]
    fastest: RunnerUp
    fewest_requests: RunnerUp
    shipped: RunnerUp | None

    @property
    def marks(self) -> dict[str, RunnerUp]:
        """The marked tiles by what they are, the fastest last; a shipped tile off the map has no mark."""
        first, second = self.names
        marked = {"fewest requests": self.fewest_requests, "shipped": self.shipped, "fastest": self.fastest}
        return {
            name: tile
            for name, tile in marked.items()
            if tile is not None and tile.tiles[first] in self.first_sizes and tile.tiles[second] in self.second_sizes
        }

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per tile that fits: its sizes [rows], time [s] and requests [B]."""
        return [
            {self.names[0]: row, self.names[1]: column, "seconds": seconds, "requested_bytes": requested}
            for row, times, requests in zip(self.first_sizes, self.seconds, self.requested_bytes, strict=True)
            for column, seconds, requested in zip(self.second_sizes, times, requests, strict=True)
            if seconds is not None
        ]

    def tables(self) -> list[Table | str]:
        """Return the map and the marked tiles for the terminal."""
        marked = [
            (name, sizes_text(tile.tiles), f"{(tile.seconds or nan) * 1e6:,.1f}", f"{tile.hbm_bytes / 1e6:,.0f}")
            for name, tile in reversed(self.marks.items())
        ]
        title = f"{self.algorithm}, {self.implementation} on {self.hardware.name}: time of every tile that fits"
        return [title, "", *self.map(), Table("", ("", "tiles", ">time [us]", ">requests [MB]"), marked)]

    def sketch(self) -> str:
        """Draw the map with a coloured cell for each tile; yellow is fast."""
        best, letters = self.fastest.seconds or 1.0, {}
        for mark, tile in self.marks.items():
            first, second = (tile.tiles[name] for name in self.names)
            letters[self.first_sizes.index(first), self.second_sizes.index(second)] = LETTERS[mark]
        colours = [[None if time is None else _colour(time, best) for time in times] for times in self.seconds]
        rows, columns = ([f"{size:,}" for size in sizes] for sizes in (self.first_sizes, self.second_sizes))
        marks = ", ".join(f"{LETTERS[name]} {name}" for name in reversed(self.marks))
        legend = f"{marks}; yellow: at most {SHADES[0][0]:g} times the least time, violet: over {SHADES[-2][0]:g}"
        return cells(colours, letters, rows, columns, self.names, legend)

    def map(self) -> list[str]:
        """Return the lines of the map, a character for each tile, the larger sizes of the first tile above.

        A terminal with colours shows the cells in those of :meth:`sketch`.
        """
        letters: dict[tuple[int, ...], str] = {
            tuple(tile.tiles[name] for name in self.names): LETTERS[mark] for mark, tile in self.marks.items()
        }
        best = self.fastest.seconds or 1.0
        margin = max(len(self.names[0]), *(len(f"{size:,}") for size in self.first_sizes))
        together = -(-len(self.second_sizes) // WIDEST)  # sizes that share a character
        lines: list[str] = []
        for first, times in reversed(list(zip(self.first_sizes, self.seconds, strict=True))):
            text, styles = f"  {first:>{margin},} | ", {}
            for start in range(0, len(times), together):
                sizes = self.second_sizes[start : start + together]
                marked = (letters[first, size] for size in sizes if (first, size) in letters)
                known = [value for value in times[start : start + together] if value is not None]
                letter = next(marked, None)
                if known:
                    colour = _colour(min(known), best)
                    styles[len(text)] = f"bold {_ink(colour)} on {colour}" if letter else f"{colour} on {colour}"
                text += letter or (_shade(min(known), best) if known else " ")
            lines.append(StyledLine(text.rstrip(), styles))
        least, most = (f"{size:,}" for size in (self.second_sizes[0], self.second_sizes[-1]))
        width = -(-len(self.second_sizes) // together)
        axis = least + most.rjust(max(width - len(least), len(most) + 1))
        shades = ", ".join(f"{shade} {_limit(limit)}" for limit, shade in SHADES)
        marks = ", ".join(f"{LETTERS[name]} {name}" for name in reversed(self.marks))
        legend = f"  {marks}; time over the fastest: {shades}"
        keys = {
            legend.rindex(shade): f"{colour} on {colour}" for (_, shade), colour in zip(SHADES, COLOURS, strict=True)
        }
        return [
            f"  {self.names[0]:>{margin}}", *lines, f"  {'':{margin}}   {axis}  {self.names[1]}", "",
            StyledLine(legend, keys),
        ]  # fmt: skip


def _limit(limit: float) -> str:
    return f"to {limit:g}" if limit < float("inf") else "more"


def _colour(seconds: float, best: float) -> str:
    return next(colour for (limit, _), colour in zip(SHADES, COLOURS, strict=True) if seconds <= limit * best)


def _ink(colour: str) -> str:
    """Return the colour of a letter that is legible on a cell."""
    return "black" if colour in COLOURS[:3] else "white"


def _shade(seconds: float, best: float) -> str:
    return next(shade for limit, shade in SHADES if seconds <= limit * best)


@strict
def tile_times(
    algorithm: AlgorithmLike,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str,
    *,
    implementation: str | Implementation | None = None,
    min_block_kv: int | None = None,
    min_blocks_per_sm: int = 1,
    **options: Any,
) -> TileTimes:
    """Time every tile that fits a device, each at its fastest launch configuration and searched options.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms` with an implementation on the device.
    workload : Attention or VarlenAttention
        The call.
    hardware : Hardware or str
        The device.
    implementation, min_block_kv, min_blocks_per_sm, **options
        As in :func:`iomodel.solve`.

    Raises
    ------
    InfeasibleError
        No tile fits.
    UnknownNameError, InputError
        An unknown name; a value out of range; no implementation that runs the call on the device.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(heads=32, q_len=8192, head_dim=128, mask="causal")
    >>> times = iomodel.kernels.tile_times("flash2", w, "a100-sxm4-80gb")
    >>> dict(times.fastest.tiles), len(times.records())
    ({'block_q': 128, 'block_kv': 64, 'warps': 4, 'stages': 1}, 37)
    """
    limits = {"min_block_kv": min_block_kv, "min_blocks_per_sm": min_blocks_per_sm}
    question = Question.ask(algorithm, as_call(workload), as_device(hardware), implementation, options, **limits)
    if not question.kernels:
        obstacle = question.no_kernel
        raise InputError(f"implementation: none runs the call ({obstacle})")
    return _mapped(candidates(question.by(question.library)))


def _mapped(ranked: Candidates) -> TileTimes:
    names = ranked.ways[0].placement.tiles
    found: dict[tuple[int, int], int] = {}
    for place, tile in enumerate(_tiles(ranked)):
        found.setdefault(tile, place)  # the fastest of a tile comes first
    rows, columns = (tuple(sorted({tile[side] for tile in found})) for side in (0, 1))

    def each(name: str, kind: type) -> Any:
        values = [kind(value) for value in ranked.columns[name].tolist()]
        return tuple(
            tuple(values[found[row, column]] if (row, column) in found else None for column in columns) for row in rows
        )

    question = ranked.families[0].setting.question
    assert isinstance(question.call, Attention | VarlenAttention)
    return TileTimes(
        question.name, question.library.name, question.device, question.call, names, rows, columns,
        each("seconds", float), each("requested", int),
        as_runner_up(ranked, 0), as_runner_up(ranked, int(ranked.columns["requested"].argmin())),
        shipped_of(question),
    )  # fmt: skip


def _tiles(ranked: Candidates) -> Iterable[tuple[int, int]]:
    """Yield the two tiles of each candidate, the query tile first."""
    way = ranked.ways[0]
    first, second = way.sizes((ranked.columns["outer"].tolist(), ranked.columns["inner"].tolist())).values()
    return zip(first, second, strict=True)
