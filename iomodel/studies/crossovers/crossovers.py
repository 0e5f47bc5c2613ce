"""Points at which one algorithm starts to move less, compute less or take less time than another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.progress import watched
from iomodel.common.validation import as_choice, as_integer, as_mapping
from iomodel.counting.choice import once
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, shown
from iomodel.nests.alphabet import TILE_NAMES
from iomodel.placement.budget import budget_in, takes_budget
from iomodel.studies.crossovers.contenders import METRICS, axis_for, contenders
from iomodel.studies.crossovers.crossovers_result import KEPT, Crossover, Crossovers
from iomodel.studies.crossovers.curves import Curve, CurveValues, runs
from iomodel.studies.crossovers.formula import crossing_formula
from iomodel.studies.crossovers.points import PointRange, every, sampled
from iomodel.workloads.attention import Attention, as_attention

LONGEST = 10**7
"""The most points of an exhaustive count, for two algorithms."""
SOLVED = 1 << 17
"""The most points at which tiles are solved by default."""


@strict
@takes_budget
def crossovers(
    algorithms: Sequence[Any],
    workload: Attention,
    hardware: Hardware | str | None = None,
    *,
    over: str = "length",
    metric: str = "bytes",
    tiles: Mapping[str, int] | None = None,
    start: int = 1,
    limit: int | None = None,
    step: int = 1,
    exhaustive: bool | None = None,
    progress: bool = False,
    **options: Any,
) -> Crossovers:
    """Compare algorithms along a length, a width, the batch or the memory, and find where the order changes.

    Parameters
    ----------
    algorithms : sequence of str or pair
        Two to sixteen. Options and tiles for one algorithm follow its name, ``"split_kv:splits=4,no-lse"``, or are
        given beside it, ``("split_kv", {"splits": 4})``.
    workload : Attention
        The call; the axis replaces some of its fields.
    hardware : Hardware or str, optional
        The device whose memory bounds the best tiles, or on which the time is estimated.
    over : {"length", "q_len", "kv_len", "head_dim", "batch", "sram_elements", "sram_bytes"}
        The axis; length is q_len and kv_len together.
    metric : {"bytes", "elements", "flops", "exps", "time"}
        The quantity compared: requests [B], HBM accesses [elements], matrix FLOPs of the visited tiles,
        exponentials, or the time of :func:`iomodel.estimate` [s].
    tiles : mapping of tile name to int, optional
        Tiles for every algorithm that takes them [rows]. An algorithm without tiles is compared at its best tiles at
        every point: those of least traffic within the budget, or those of least time. Without a budget, standard
        attention makes its ideal passes.
    start : int
        The first point.
    limit : int, optional
        The last point; by default 65,536 for a length.
    step : int
        The distance between points.
    exhaustive : bool, optional
        Evaluate every point. The default is to do so where it is fast: counts at given tiles for up to ten
        million points of two algorithms; at the best tiles, without a mask, for up to 131,072. Otherwise eight points
        an octave are evaluated, and intervals whose ends differ are bisected.
    progress : bool
        Show a bar on a terminal's stderr during long runs.
    **options
        Options for every algorithm that takes them, and ``packed=True``.

    Returns
    -------
    Crossovers
        The algorithm with the least value at every point, each pair, and formulas where there are any.

    Raises
    ------
    UnknownNameError, InputError
        An unknown name; an algorithm that does not answer the call, or is given twice; neither tiles nor a budget.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=1, head_dim=64)
    >>> study = iomodel.crossovers(["flash1", "standard"], w, tiles={"block_q": 64, "block_kv": 64})
    >>> pair = study.pair("flash1", "standard")
    >>> pair.first, pair.lasting
    (36, 136)
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> study = iomodel.crossovers(["small_cache", "flash2"], w, over="head_dim", sram_elements=8192)
    >>> pair = study.pair("small_cache", "flash2")
    >>> pair.first, pair.formula.expression, round(pair.formula.value)
    (107, sqrt(6)*sqrt(M)/2, 111)
    """
    workload = as_attention(workload)
    as_choice("metric", metric, METRICS)
    axis = axis_for(over, workload)
    grid = _grid(start, limit, step, axis.limit)
    budget = {} if hardware is None else {"hardware": as_device(hardware)}
    budget |= budget_in(options)
    shared = {} if tiles is None else as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    by_name = {name: options.pop(name) for name in [*options] if name in TILE_NAMES}
    once(shared, by_name)
    compared = contenders(algorithms, workload, {**shared, **by_name}, options, timed=metric == "time")
    curves = [Curve(contender, workload, axis, metric, budget) for contender in compared]
    whole = _exhaustive(exhaustive, curves, grid)

    def watch(items: Sequence[Any]) -> Iterator[Any]:
        return watched(items, len(items), progress is True, "points")

    values = every(curves, grid, watch) if whole else sampled(curves, grid, watch)
    return _study(curves, values, grid, whole)


def _grid(start: object, limit: object, step: object, default: int) -> PointRange:
    first, stride = as_integer("start", start), as_integer("step", step)
    last = default if limit is None else as_integer("limit", limit)
    if last < first:
        note = ", the default," if limit is None else ""
        raise InputError(f"limit: {last}{note} given; allowed: at least start = {first}")
    return PointRange(first, last - (last - first) % stride, stride)


def _exhaustive(exhaustive: bool | None, curves: Sequence[Curve], grid: PointRange) -> bool:
    if exhaustive is not None and not isinstance(exhaustive, bool):
        raise InputError(f"exhaustive: {shown(exhaustive)} given; allowed: True, False or None")
    longest = 2 * LONGEST // len(curves)
    if exhaustive is None:
        most = longest if all(curve.fixed for curve in curves) else SOLVED
        return grid.count <= most and all(curve.fast for curve in curves)
    if exhaustive and grid.count > longest:
        raise InputError(f"limit: {grid.limit} given, {grid.count:,} points; allowed: {longest:,}, or exhaustive=False")
    return exhaustive


def _study(curves: Sequence[Curve], values: CurveValues, grid: PointRange, whole: bool) -> Crossovers:
    """Join the values into winners and pairs, with formulas and the extent of the proof."""
    labels = [curve.contender.label for curve in curves]
    pairs: dict[tuple[int, int], Crossover] = {}
    for i, j in combinations(range(len(curves)), 2):
        forward, back = (compare_pair(values, place, labels, grid.step) for place in ((i, j), (j, i)))
        change = forward.lasting or forward.first or back.lasting
        near = back.first if change in (None, grid.start) else change
        formula, reason = crossing_formula(curves[i], curves[j], near)
        pairs[i, j], pairs[j, i] = (replace(pair, formula=formula, no_formula=reason) for pair in (forward, back))
    first, last, codes = runs(values.points, values.least())
    least = [tuple(label for i, label in enumerate(labels) if code >> i & 1) for code in codes[:KEPT].tolist()]
    spread: Any = np.searchsorted(values.points, grid.points(grid.spread()))
    budget = FrozenDict(curves[0].budget)
    return Crossovers(
        contenders=tuple(curve.contender for curve in curves),
        workload=curves[0].workload,
        hardware=budget.get("hardware"),
        budget=budget,
        axis=curves[0].axis,
        metric=curves[0].metric,
        start=grid.start,
        limit=grid.limit,
        step=grid.step,
        looked=len(values.points),
        proof=_proof(grid, len(values.points), whole, curves[0].axis.letter),
        winners=tuple(zip(first[:KEPT].tolist(), last[:KEPT].tolist(), least, strict=True)),
        changes=len(codes) - 1,
        missing=FrozenDict(
            (label, int(np.count_nonzero(~present)))
            for label, present in zip(labels, values.present, strict=True)
            if not present.all()
        ),
        pairs=tuple(pairs[place] for place in sorted(pairs)),
        points=tuple(values.points[spread].tolist()),
        values=FrozenDict(
            (
                label,
                tuple(x if here else None for x, here in zip(column[spread].tolist(), present[spread], strict=True)),
            )
            for label, column, present in zip(labels, values.values, values.present, strict=True)
        ),
    )


def compare_pair(values: CurveValues, place: tuple[int, int], labels: Sequence[str], step: int) -> Crossover:
    """Compare two contenders point by point."""
    first, last, codes = runs(values.points, values.signs(*place))
    below, equal = np.flatnonzero(codes == -1), codes == 0
    return Crossover(
        challenger=labels[place[0]],
        incumbent=labels[place[1]],
        first=int(first[below[0]]) if len(below) else None,
        lasting=int(first[-1]) if codes[-1] == -1 else None,
        changes=len(codes) - 1,
        below=tuple(zip(first[below[:KEPT]].tolist(), last[below[:KEPT]].tolist(), strict=True)),
        equal=int(((last[equal] - first[equal]) // step + 1).sum()),
        formula=None,
        no_formula="",
    )


def _proof(grid: PointRange, evaluated: int, whole: bool, letter: str) -> str:
    span = f"from {grid.start:,} to {grid.limit:,}"
    if not whole:
        return (
            f"evaluated at {evaluated:,} of {grid.count:,} points {span}: each change listed is exact, but two changes "
            "between neighbouring evaluated points may be missed"
        )
    every_point = f"every {letter}" if grid.step == 1 else f"every {grid.step:,}th {letter}"
    return f"exact: counted at {every_point} {span}"
