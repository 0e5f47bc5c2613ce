"""Inverse questions: how much SRAM for this traffic, and from what length on one algorithm beats another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from iomodel.crossings.answer import pair_of
from iomodel.crossings.axes import axis_for
from iomodel.crossings.contenders import contenders
from iomodel.crossings.curves import Asked
from iomodel.crossings.looking import Range, every
from iomodel.crossovers import LONGEST, curve_for
from iomodel.errors import InfeasibleError, InputError, UnknownNameError, shown
from iomodel.masks import Count
from iomodel.solution import Solution
from iomodel.solve import solve
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Attention, VarlenAttention, as_attention

Unit = Literal["bytes", "elements"]


def least_sram(
    algorithm: str,
    workload: Attention | VarlenAttention,
    hbm_bytes: int,
    unit: Unit = "bytes",
    alignment: int = 1,
    **options: Any,
) -> Solution:
    """The least on-chip memory with which an algorithm moves at most `hbm_bytes`, and its tiles there.

    Traffic never rises with memory, for every tile that fits a budget fits a larger one; so the least is found by
    bisection over solved problems, exactly.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    workload : Attention or VarlenAttention
        The attention call.
    hbm_bytes : int
        The traffic to keep to [B].
    unit : {"bytes", "elements"}
        How to measure memory; elements are the papers' M.
    alignment : int
        Tiles are multiples of it [rows].
    **options
        Options of the algorithm, and ``packed=True``.

    Returns
    -------
    Solution
        Its ``budget.amount`` is the answer.

    Raises
    ------
    InfeasibleError
        No amount of memory brings the traffic down to `hbm_bytes`; `least` is the least traffic [B].

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> s = iomodel.least_sram("flash2", w, hbm_bytes=2 * 6291456, unit="elements", lse=False)
    >>> s.budget.amount, dict(s.tiles)
    (48991, {'block_q': 373, 'block_kv': 1})
    """
    limit = as_integer("hbm_bytes", hbm_bytes)
    if not isinstance(unit, str) or unit not in ("bytes", "elements"):
        raise UnknownNameError("unit", unit, ["bytes", "elements"])
    for name in ("hardware", "sram_bytes", "sram_elements"):
        if name in options:
            raise InputError(f"{name}: given; allowed: none, for the least amount of memory is what is looked for")

    def at(amount: int) -> Solution:
        if unit == "bytes":
            return solve(algorithm, workload, sram_bytes=amount, alignment=alignment, **options)
        return solve(algorithm, workload, sram_elements=amount, alignment=alignment, **options)

    too_little = 0
    try:
        best = at(1)
    except InfeasibleError as error:
        too_little = error.least - 1  # nothing fits
        best = at(error.least)
    while best.cost.hbm_bytes > limit:
        if best.saturated:
            raise InfeasibleError(
                f"hbm_bytes: {limit:,} B given; {algorithm} moves at least {best.cost.hbm_bytes:,} B, "
                "however much SRAM there is",
                least=best.cost.hbm_bytes,
                unit="B",
            )
        too_little = best.budget.amount
        best = at(4 * too_little)
    while best.budget.amount - too_little > 1:
        tried = at((too_little + best.budget.amount) // 2)
        if tried.cost.hbm_bytes <= limit:
            best = tried
        else:
            too_little = tried.budget.amount
    return best


def crossover(
    challenger: str,
    incumbent: str,
    workload: Attention,
    tiles: Mapping[str, int],
    *,
    up_to: int = 65536,
    **options: Any,
) -> int | None:
    """The self-attention length from which one algorithm moves fewer HBM bytes than another, at given tiles.

    The short answer to one of the questions of :func:`crossovers`. Every length from 1 to `up_to` is counted exactly,
    all at once. An algorithm takes those of the tiles and options that it knows; one that knows none of the tiles
    (standard attention) makes its ideal passes.

    Parameters
    ----------
    challenger, incumbent : str
        Two of :func:`iomodel.list_algorithms`.
    workload : Attention
        Heads, widths, dtype and mask; its lengths are replaced.
    tiles : mapping of tile name to int
        Tiles for both [rows]; those of a second pass follow where they are not given.
    up_to : int
        The longest length to look at [rows].
    **options
        Options of either algorithm, and ``packed=True``.

    Returns
    -------
    int or None
        The least N such that the challenger moves fewer bytes at every length from N to `up_to` [rows]; None if it
        does not at `up_to`.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=1, head_dim=64)
    >>> iomodel.crossover("flash2", "standard", w, {"block_q": 128, "block_kv": 64})
    1
    >>> iomodel.crossover("flash1", "standard", w, {"block_q": 64, "block_kv": 32})
    """
    workload = as_attention(workload)
    up_to = as_integer("up_to", up_to)
    if up_to > LONGEST:
        raise InputError(f"up_to: {up_to} given; allowed: at most {LONGEST}")
    given = as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    axis = axis_for("length", workload)
    found = contenders([challenger, incumbent], workload, given, options, twice=True)
    if any(one.formulas.hbm_bytes.has(Count) for one in found):
        raise InputError(
            f"mask: {shown(workload.mask)} given; allowed: full, or without pages causal or a Window, "
            "for other counts follow no formula in the length"
        )
    curves = [curve_for(Asked(one, workload, axis, "bytes"), None, {}) for one in found]
    seen = every(curves, Range(1, up_to, 1), lambda items, _: iter(items))
    return pair_of(seen, 0, 1, (challenger, incumbent), 1).lasting
