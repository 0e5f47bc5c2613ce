"""From where on one algorithm moves less, computes less or takes less time than another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from iomodel.check import as_device
from iomodel.crossings.answer import answer
from iomodel.crossings.axes import AXES, axis_for
from iomodel.crossings.contenders import contenders
from iomodel.crossings.curves import Asked, Curve, Fixed, Solved, Timed
from iomodel.crossings.looking import Range, every, some
from iomodel.crossings.metrics import METRICS
from iomodel.crossings.result import Crossovers
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.hardware import Hardware
from iomodel.progress import watched
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Attention, as_attention

LONGEST = 10**7
"""The most points of which every one is looked at."""
SOLVED = 1 << 17
"""Likewise where tiles are solved for at every point, unless that is asked for."""


def crossovers(
    algorithms: Sequence[Any],
    workload: Attention,
    hardware: Hardware | str | None = None,
    *,
    over: str = "length",
    metric: str = "bytes",
    tiles: Mapping[str, int] | None = None,
    sram_bytes: int | None = None,
    sram_elements: int | None = None,
    alignment: int | None = None,
    start: int = 1,
    limit: int | None = None,
    step: int = 1,
    exhaustive: bool | None = None,
    progress: bool = False,
    **options: Any,
) -> Crossovers:
    """Where algorithms overtake each other as a length, a width, the batch or the memory grows.

    Parameters
    ----------
    algorithms : sequence of str or pair
        Two to sixteen. Options and tiles of one alone follow its name, ``"split_kv:splits=4,no-lse"``, or stand beside
        it, ``("split_kv", {"splits": 4})``.
    workload : Attention
        The call; what is varied is replaced in it.
    hardware : Hardware or str, optional
        The device whose memory the best tiles keep to, or whose time counts.
    over : {"length", "q_len", "kv_len", "head_dim", "batch", "sram_elements", "sram_bytes"}
        What is varied; length is q_len and kv_len together.
    metric : {"bytes", "elements", "flops", "exps", "time"}
        What is compared: HBM traffic [B], HBM accesses [elements], matrix FLOPs of the visited tiles, exponentials, or
        the time that :func:`iomodel.estimate` finds [s].
    tiles : mapping of tile name to int, optional
        Tiles for all that know them [rows]. One without any has its best tiles at every point: those of least traffic
        under the budget, those of least time for a time. Without a budget, standard attention makes its ideal passes.
    sram_bytes, sram_elements, alignment : int, optional
        A bare budget in place of a device, and what tiles are multiples of, as in :func:`iomodel.solve`.
    start, limit, step : int
        The points: start, start + step, ..., up to the limit (65,536 for a length).
    exhaustive : bool, optional
        Whether to look at every point. By default so where that is soon done: counts at given tiles for up to ten
        million points; at the best tiles, without a mask, for up to 131,072. Else points are spread over the range,
        eight an octave, and between two that differ it is halved down to neighbours.
    progress : bool
        Show a bar on a terminal's stderr where it takes its time.
    **options
        Options for all that know them, and ``packed=True``.

    Returns
    -------
    Crossovers
        Who is least where, each pair, formulas where there are any, and what is proven.

    Raises
    ------
    UnknownNameError, InputError
        An unknown name; an algorithm that does not answer the call, or twice the same; neither tiles nor a budget.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=1, head_dim=64)
    >>> found = iomodel.crossovers(["flash1", "standard"], w, tiles={"block_q": 64, "block_kv": 64})
    >>> one = found.pair("flash1", "standard")
    >>> one.first, one.lasting, one.for_ever
    (36, 136, True)
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> found = iomodel.crossovers(["small_cache", "flash2"], w, over="head_dim", sram_elements=8192)
    >>> one = found.pair("small_cache", "flash2")
    >>> one.first, one.formula.expression, round(one.formula.value)
    (107, sqrt(6)*sqrt(M)/2, 111)
    """
    workload = as_attention(workload)
    if not isinstance(metric, str) or metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS)
    axis = axis_for(over, workload)
    where = _range(start, axis.limit if limit is None else limit, step, given=limit is not None)
    device = None if hardware is None else as_device(hardware)
    budget = {"hardware": device, "sram_bytes": sram_bytes, "sram_elements": sram_elements, "alignment": alignment}
    budget = {name: value for name, value in budget.items() if value is not None}
    given = {} if tiles is None else as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    found = contenders(algorithms, workload, given, options, launched=metric == "time")
    curves: list[Curve] = [curve_for(Asked(one, workload, axis, metric), device, budget) for one in found]
    if exhaustive is not None and not isinstance(exhaustive, bool):
        raise InputError(f"exhaustive: {shown(exhaustive)} given; allowed: True, False or None")
    most = LONGEST if all(isinstance(curve, Fixed) for curve in curves) else SOLVED
    whole = exhaustive if exhaustive is not None else where.count <= most and all(curve.cheap for curve in curves)
    if whole and where.count > LONGEST:
        raise InputError(
            f"limit: {where.limit} given, {where.count:,} points; allowed: {LONGEST:,}, or exhaustive=False"
        )

    def watch(items: Iterable[Any], total: int) -> Iterator[Any]:
        return watched(items, total, progress is True, "points")

    seen = (every if whole else some)(curves, where, watch)
    return answer(found, curves, workload, device, budget, axis, metric, where, seen, whole)


def _range(start: object, limit: object, step: object, given: bool) -> Range:
    first, last, each = as_integer("start", start), as_integer("limit", limit), as_integer("step", step)
    if last < first:
        told = "" if given else ", where one stops unless told"
        raise InputError(f"limit: {last} given{told}; allowed: at least start = {first}")
    return Range(first, last - (last - first) % each, each)


def curve_for(asked: Asked, device: Hardware | None, budget: Mapping[str, Any]) -> Curve:
    """How the values of a contender are found."""
    axis, contender = asked.axis, asked.contender
    if asked.metric == "time":
        beside = [name for name in budget if name != "hardware"]
        if axis.memory:
            raise InputError(f"over: {axis.name} given with metric 'time'; allowed: {_lasting()}")
        if device is None or beside:
            said = f"{beside[0]} given" if beside else "none given"
            raise InputError(f"hardware: {said} with metric 'time'; allowed: a device alone, such as 'h100-sxm5'")
        return Timed(asked, device)
    if contender.tiles:
        return Fixed(asked)
    if axis.memory:
        if set(budget) - {"alignment"}:
            raise InputError(
                f"over: {axis.name} given with {min(set(budget) - {'alignment'})}; allowed: one of the two"
            )
        return Solved(asked, budget)
    if set(budget) - {"alignment"}:
        return Solved(asked, budget)
    if contender.untiled:
        return Fixed(asked)
    own = ", ".join(contender.formulas.own_tiles)
    raise InputError(
        f"tiles: none given for {contender.label}, nor a budget; allowed: its tiles {own}, or one of hardware, "
        "sram_bytes, sram_elements"
    )


def _lasting() -> str:
    return ", ".join(name for name, axis in AXES.items() if not axis.memory)
