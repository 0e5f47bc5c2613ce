"""The least traffic of an algorithm as an exact step function of the on-chip memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Literal

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common import labels
from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.results import Record
from iomodel.common.tabular import Tabular
from iomodel.common.validation import as_choice, as_integer
from iomodel.counting.bounds import Bound, largest_bounds
from iomodel.errors import InfeasibleError, InputError
from iomodel.solving.envelope import Stair, lower_envelope
from iomodel.solving.parts import tileable_parts
from iomodel.solving.question import Question
from iomodel.solving.textbook import named_tiles
from iomodel.workloads.workload import Workload

SHOWN = 24
"""The most steps in the table of the terminal."""
UNITS = {"bytes": "B", "elements": "elements"}


@dataclass(frozen=True)
class StaircaseStep(Record):
    """One step: the least memory with which the traffic is as low.

    Attributes
    ----------
    sram : int
        The memory from which the tiles fit, in the unit of the staircase.
    tiles : mapping of str to int
        The tiles of least footprint with this traffic [rows].
    hbm_bytes, hbm_elements : int
        The traffic [B], [elements].
    lower_bound : Bound
        The largest bound, for every schedule that forms each product once, in this memory.
    """

    sram: int
    tiles: Mapping[str, int]
    hbm_bytes: int
    hbm_elements: int
    lower_bound: Bound


@dataclass(frozen=True)
class Staircase(Result, Tabular):
    """The least traffic of an algorithm on a call at every size of one on-chip memory.

    Attributes
    ----------
    algorithm : str
        The algorithm.
    workload : Attention, VarlenAttention or Linear
        The call.
    options : mapping of str to Any
        Every option of the algorithm.
    unit : {"elements", "bytes"}
        The unit of memory; elements are the papers' M.
    alignment : int
        Tiles are multiples of it [rows].
    steps : tuple of StaircaseStep
        The steps, the smallest memory first. Between two steps nothing changes; after the last nothing ever does.
    """

    algorithm: str
    workload: Workload
    options: Mapping[str, Any]
    unit: str
    alignment: int
    steps: tuple[StaircaseStep, ...]

    def at(self, sram: int) -> StaircaseStep:
        """Return the step that a memory is on.

        Parameters
        ----------
        sram : int
            The memory, in the unit of the staircase.

        Raises
        ------
        InfeasibleError
            No tile fits; its `least` is the smallest feasible memory.

        Examples
        --------
        >>> import iomodel
        >>> stairs = iomodel.staircase("flash2", iomodel.Attention(q_len=4096, head_dim=64), unit="elements", lse=False)
        >>> stairs.at(50_000).hbm_elements, stairs.at(50_000).sram
        (6291456, 48991)
        """
        size, least = as_integer("sram", sram), self.steps[0].sram
        if size < least:
            raise InfeasibleError(
                f"sram: {size:,} {UNITS[self.unit]} given; allowed: from {least:,} up, the smallest tile of "
                f"{self.algorithm}",
                least=least,
                unit=UNITS[self.unit],
            )
        return self.steps[bisect_right(self.steps, size, key=lambda step: step.sram) - 1]

    def least_sram(self, hbm_bytes: int) -> StaircaseStep:
        """Return the first step with at most a given traffic: its `sram` is the least memory that buys it.

        Parameters
        ----------
        hbm_bytes : int
            The highest allowed traffic [B].

        Raises
        ------
        InfeasibleError
            No amount of memory brings the traffic down to `hbm_bytes`; `least` is the least traffic [B].

        Examples
        --------
        >>> import iomodel
        >>> stairs = iomodel.staircase("flash2", iomodel.Attention(q_len=4096, head_dim=64), unit="elements", lse=False)
        >>> stairs.least_sram(2 * 6291456).sram
        48991
        """
        limit = as_integer("hbm_bytes", hbm_bytes)
        for step in self.steps:
            if step.hbm_bytes <= limit:
                return step
        least = self.steps[-1].hbm_bytes
        raise InfeasibleError(
            f"hbm_bytes: {limit:,} B given; {self.algorithm} moves at least {least:,} B, however much SRAM there is",
            least=least,
            unit="B",
        )

    def saved(self, sram: int, larger: int) -> int:
        """Return the traffic that a larger memory saves over a smaller one [B].

        Examples
        --------
        >>> import iomodel
        >>> stairs = iomodel.staircase("flash2", iomodel.Attention(q_len=4096, head_dim=64), unit="elements", lse=False)
        >>> stairs.saved(50_000, 100_000), stairs.saved(100_000, 150_000)
        (5242880, 2097152)
        """
        before, after = self.at(sram), self.at(larger)
        if after.sram < before.sram:
            raise InputError(f"larger: {larger:,} given; allowed: at least sram, {sram:,}")
        return before.hbm_bytes - after.hbm_bytes

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per step: memory, tiles, traffic, and the lower bound with the name of its class."""
        return [
            {
                "sram": step.sram,
                **step.tiles,
                "hbm_elements": step.hbm_elements,
                "hbm_bytes": step.hbm_bytes,
                "lower_bound": step.lower_bound.name,
                "lower_bound_elements": step.lower_bound.elements,
                "lower_bound_bytes": step.lower_bound.bytes,
            }
            for step in self.steps
        ]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        names = list(self.steps[0].tiles)
        columns = (f">SRAM from [{UNITS[self.unit]}]", *(f">{name}" for name in names))
        columns += (f">{labels.REQUESTS} [B]", ">saved [B]", f">{labels.REQUESTS} / lower bound", "bound")
        shown = _spread([step.hbm_bytes for step in self.steps])
        rows = []
        for place, before in zip(shown, [None, *shown], strict=False):
            step = self.steps[place]
            saved = "" if before is None else f"{self.steps[before].hbm_bytes - step.hbm_bytes:,}"
            ratio = f"{step.hbm_bytes / step.lower_bound.bytes:,.3f}"
            sizes = (f"{size:,}" for size in step.tiles.values())
            rows.append((f"{step.sram:,}", *sizes, f"{step.hbm_bytes:,}", saved, ratio, step.lower_bound.name))
        left_out = len(self.steps) - len(shown)
        notes = [f"{left_out:,} of {len(self.steps):,} steps are left out; to_pandas() and --json have all."]
        title = f"{self.algorithm}: {labels.LEAST_REQUESTS} against SRAM"
        return [Table(title, columns, rows, notes if left_out else (), extra=("bound", "saved [B]"))]


def _spread(traffic: list[int]) -> list[int]:
    """Choose places of falling traffic in equal ratios, both ends among them.

    >>> _spread([2**power for power in range(100, 0, -1)])[:3], _spread([9, 4, 2])
    ([0, 4, 9], [0, 1, 2])
    """
    if len(traffic) <= SHOWN:
        return list(range(len(traffic)))
    falls = (log(traffic[0]) - log(traffic[-1])) / (SHOWN - 1)
    wanted = [log(traffic[0]) - falls * place for place in range(SHOWN)]
    heights = [log(size) for size in traffic]
    return sorted({min(range(len(traffic)), key=lambda place: abs(heights[place] - height)) for height in wanted})


@strict
def staircase(
    algorithm: AlgorithmLike,
    workload: Workload,
    *,
    unit: Literal["elements", "bytes"] = "bytes",
    alignment: int | None = None,
    min_block_kv: int | None = None,
    **options: Any,
) -> Staircase:
    """Compute the least traffic of an algorithm at every size of one on-chip memory: all solutions of a call at once.

    It is the lower envelope, over all tiles, of the declaration's exact footprint and count, so that it equals
    :func:`iomodel.solve` with a bare budget at every memory. With more memory than the step needs, `solve` may choose
    other tiles of the same traffic, with a larger block_kv.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention, VarlenAttention or Linear
        The call.
    unit : {"elements", "bytes"}
        The unit of memory: bytes with the width of each buffer, or elements of any width (the papers' M).
    alignment : int, optional
        Tiles are multiples of it, of 1 by default [rows].
    min_block_kv : int, optional
        The least block_kv allowed [rows].
    **options
        Options of the algorithm, and ``packed=True``.

    Returns
    -------
    Staircase
        With flash2, and no mask or a causal one with as many keys as queries or more, it has at most 2 sqrt(N_q) steps.

    Raises
    ------
    UnknownNameError, InputError
        An unknown name; a value out of range; more than 2,000,000 tiles compete.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=1000, head_dim=64)
    >>> stairs = iomodel.staircase("flash2", w, unit="elements", min_block_kv=16, lse=False)
    >>> len(stairs.steps), stairs.steps[-1].sram, dict(stairs.steps[-1].tiles)
    (63, 148048, {'block_q': 1000, 'block_kv': 16})
    """
    as_choice("unit", unit, UNITS)
    for name in ("hardware", "sram_bytes", "sram_elements", "epsilon"):
        if name in options:
            raise InputError(f"{name}: given; allowed: none, because the result holds for every memory")
    question = Question.ask(algorithm, workload, None, options=options)
    step, bound, call = as_integer("alignment", 1 if alignment is None else alignment), question.bound, question.call
    compiled, ranges = tileable_parts(bound, UNITS[unit], step, min_block_kv)
    envelopes = [lower_envelope(part.problem(bound, ranges, 0)) for part in compiled.formulas]
    rest = compiled.rest.scalars(call.longest, bound.numbers, ())
    fixed = {name: ranges[name].first for part in compiled.formulas for name in part.least}
    steps = []
    for size, stairs in _joined(envelopes, max(rest)):
        tiles = named_tiles(compiled.formulas, [stair.tile for stair in stairs], bound.compiled.tiles)
        cost = bound.cost({**tiles, **fixed})
        _, any_schedule = largest_bounds(algorithm, call, **{f"sram_{unit}": size})
        steps.append(StaircaseStep(size, cost.tiles, cost.hbm_bytes, cost.hbm_elements, any_schedule))
    return Staircase(name_of(algorithm), call, FrozenDict(bound.options), unit, step, tuple(steps))


def _joined(envelopes: Sequence[list[Stair]], rest: int) -> list[tuple[int, list[Stair]]]:
    """Return the memories at which the stairs of some part change, with the stairs of all parts there."""
    least = max(rest, *(stairs[0].footprint for stairs in envelopes))
    sizes = sorted({least, *(stair.footprint for stairs in envelopes for stair in stairs if stair.footprint > least)})
    places = [[stair.footprint for stair in stairs] for stairs in envelopes]
    return [
        (size, [stairs[bisect_right(steps, size) - 1] for stairs, steps in zip(envelopes, places, strict=True)])
        for size in sizes
    ]
