"""Inverse problems: the least SRAM for a given traffic, and the crossover length of two algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from iomodel.algorithms import AlgorithmLike
from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice, as_integer, as_mapping
from iomodel.counting.bands import Count
from iomodel.errors import InfeasibleError, InputError, shown
from iomodel.solving.solution import Solution
from iomodel.solving.solve import solve
from iomodel.studies.crossovers.contenders import axis_for, contenders
from iomodel.studies.crossovers.crossovers import LONGEST, compare_pair
from iomodel.studies.crossovers.curves import Curve
from iomodel.studies.crossovers.points import PointRange, every
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.varlen import VarlenAttention

Unit = Literal["bytes", "elements"]


@strict
def least_sram(
    algorithm: AlgorithmLike,
    workload: Attention | VarlenAttention,
    hbm_bytes: int,
    unit: Unit = "bytes",
    alignment: int | None = None,
    **options: Any,
) -> Solution:
    """Find the least on-chip memory with which an algorithm moves at most `hbm_bytes`, and its tiles there.

    Traffic never rises with memory, because every tile that fits a budget fits a larger one. A bisection over solved
    problems therefore finds the exact minimum.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention or VarlenAttention
        The attention call.
    hbm_bytes : int
        The highest allowed traffic [B].
    unit : {"bytes", "elements"}
        The unit of memory; elements are the papers' M.
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
    >>> s = iomodel.theory.least_sram("flash2", w, hbm_bytes=2 * 6291456, unit="elements", lse=False)
    >>> s.budget.amount, dict(s.tiles)
    (48991, {'block_q': 373, 'block_kv': 1})
    """
    limit = as_integer("hbm_bytes", hbm_bytes)
    as_choice("unit", unit, ("bytes", "elements"))
    for name in ("hardware", "sram_bytes", "sram_elements"):
        if name in options:
            raise InputError(f"{name}: given; allowed: none, because the amount of memory is the result")

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


@strict
def crossover(
    challenger: AlgorithmLike,
    incumbent: AlgorithmLike,
    workload: Attention,
    tiles: Mapping[str, int],
    *,
    up_to: int = 65536,
    **options: Any,
) -> int | None:
    """Find the self-attention length from which one algorithm moves fewer HBM bytes than another, at given tiles.

    The result is the `lasting` point of :func:`crossovers`. Every length from 1 to `up_to` is counted exactly. Each
    algorithm takes those of the tiles and options that it has; an algorithm without any of the tiles (standard
    attention) makes its ideal passes.

    Parameters
    ----------
    challenger, incumbent : str or Algorithm
        Two of :func:`iomodel.list_algorithms`.
    workload : Attention
        Heads, widths, dtype and mask; its lengths are replaced.
    tiles : mapping of tile name to int
        Tiles for both [rows]; tiles of a second pass default to those of the first.
    up_to : int
        The longest length to count [rows].
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
    >>> iomodel.theory.crossover("flash2", "standard", w, {"block_q": 128, "block_kv": 64})
    1
    >>> iomodel.theory.crossover("flash1", "standard", w, {"block_q": 64, "block_kv": 32})
    """
    workload = as_attention(workload)
    up_to = as_integer("up_to", up_to)
    if up_to > LONGEST:
        raise InputError(f"up_to: {up_to} given; allowed: at most {LONGEST}")
    shared = as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    axis = axis_for("length", workload)
    compared = contenders([challenger, incumbent], workload, shared, options, repeated=True)
    if any(contender.formulas(workload).hbm_bytes.has(Count) for contender in compared):
        raise InputError(
            f"mask: {shown(workload.mask)} given; allowed: full, or without pages causal or a Window, "
            "because other counts follow no formula in the length"
        )
    curves = [Curve(contender, workload, axis, "bytes", {}) for contender in compared]
    values = every(curves, PointRange(1, up_to, 1), iter)
    return compare_pair(values, (0, 1), (str(challenger), str(incumbent)), 1).lasting
