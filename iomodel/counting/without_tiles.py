"""Figures of a call that no tile decides: the compulsory traffic, the useful FLOPs and their ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.bounds import Bound, compulsory, visible_pairs
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.cost import cost
from iomodel.counting.kinds import FormulaKind
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import FOLLOWS
from iomodel.workloads.call import Call
from iomodel.workloads.workload import Mixed, Workload

USEFUL = "", "useful_flops"
SIDES = "reads", "writes"
ROWS = "Q", "K", "V"
"""Inputs that the compulsory traffic of attention counts."""


@dataclass(frozen=True)
class WithoutTiles:
    """The figures of one algorithm on one call that hold at every tile.

    Attributes
    ----------
    compulsory : Bound
        The traffic that every algorithm needs.
    kv_bytes : int or None
        The part of it that K and V take [B]; None but for a forward pass of exact attention.
    beside : mapping of tensor name to int
        Inputs of a call of attention other than rows of Q, K and V, which the compulsory traffic leaves out: scales,
        page tables, a bias [B].
    useful_flops : int or None
        Matrix FLOPs of the visible pairs [FLOP]; None where a tile decides them.
    visible_pairs : int or None
        Pairs of a query and a key that it sees, over all batches and heads [-]; None but for attention.
    least_flops : int or None
        Matrix FLOPs of an approximation with tiles of one row, which compute no pair that its choice leaves out [FLOP];
        None where no tile decides them.
    exact_flops : int or None
        Matrix FLOPs of exact attention on the visible pairs, forward [FLOP]; None but for approximations.
    reads, writes : mapping of tensor name to int
        HBM accesses of each tensor of which no tile decides them [elements].
    element_bytes : mapping of (side, tensor name) to Fraction
        Size of an element of each of these tensors, but for one that changes its dtype [B].
    tiles : tuple of str
        The tiles that every other count needs; those that follow another tile are left out.
    """

    compulsory: Bound
    kv_bytes: int | None
    beside: Mapping[str, int]
    useful_flops: int | None
    visible_pairs: int | None
    least_flops: int | None
    exact_flops: int | None
    reads: Mapping[str, int]
    writes: Mapping[str, int]
    element_bytes: Mapping[tuple[str, str], Fraction]
    tiles: tuple[str, ...]

    @property
    def share_of_exact(self) -> float | None:
        """FLOPs of an approximation over those of exact attention on the visible pairs [-]; None for other calls."""
        own = self.least_flops if self.useful_flops is None else self.useful_flops
        return own / self.exact_flops if own is not None and self.exact_flops else None

    @property
    def intensity(self) -> float | None:
        """Useful FLOPs over compulsory traffic [FLOP/B]; None where a tile decides the FLOPs."""
        return None if self.useful_flops is None else self.useful_flops / self.compulsory.bytes


def without_tiles(algorithm: AlgorithmLike, workload: Workload, **options: Any) -> WithoutTiles:
    """Compute the figures of a call that hold at every tile.

    Examples
    --------
    >>> from iomodel import Attention
    >>> free = without_tiles("standard", Attention(q_len=2048, head_dim=128))
    >>> free.useful_flops, free.intensity, free.tiles[:2], free.writes["S"]
    (2147483648, 1024.0, ('gemm1_m', 'gemm1_n'), 4194304)
    """
    bound = BoundCall.bind(algorithm, workload, options)
    tiles = tuple(name for name in bound.tiles if FOLLOWS.get(name) not in bound.tiles)
    free = _free(bound)
    reads, writes = (FrozenDict({name: n for (of, name), n in free.items() if of == side}) for side in SIDES)
    least = compulsory(algorithm, workload)
    return WithoutTiles(
        compulsory=least,
        kv_bytes=_of_keys(bound, least),
        beside=_beside(bound),
        useful_flops=free.get(USEFUL),
        visible_pairs=visible_pairs(workload),
        least_flops=_of_single_rows(bound, workload, options) if free.get(USEFUL) is None else None,
        exact_flops=_exact(bound),
        reads=reads,
        writes=writes,
        element_bytes=FrozenDict(bound.element_bytes),
        tiles=tiles,
    )


def _of_single_rows(bound: BoundCall, workload: Workload, options: Mapping[str, Any]) -> int | None:
    """Count the matrix FLOPs of an approximation with tiles of one row; None where such tiles are refused."""
    if not bound.algorithm.approximates:
        return None
    try:
        return cost(bound.algorithm, workload, dict.fromkeys(bound.tiles, 1), **options).flops
    except InputError:
        return None


def _exact(bound: BoundCall) -> int | None:
    """Count the matrix FLOPs of exact attention in place of an approximation; None for any other call."""
    call = bound.workload
    if not bound.algorithm.approximates or not isinstance(call, Call) or call.direction != "forward":
        return None
    return 2 * (visible_pairs(bound.workload) or 0) * (call.head_dim + call.value_dim)


def inputs_beside(algorithm: AlgorithmLike, workload: Workload, **options: Any) -> Mapping[str, int]:
    """Measure the inputs of a call that its compulsory traffic leaves out, such as a bias [B].

    >>> from iomodel import Attention
    >>> inputs_beside("flash2", Attention(heads=2, q_len=64, head_dim=64, bias=True))
    {'bias': 16384}
    """
    return _beside(BoundCall.bind(algorithm, workload, options))


def _of_keys(bound: BoundCall, least: Bound) -> int | None:
    """Compute the compulsory bytes of K and V, which twice as many query heads of each leave as they are."""
    call = bound.workload
    if not isinstance(call, Call) or call.direction != "forward" or bound.algorithm.approximates:
        return None
    return 2 * least.bytes - compulsory(bound.algorithm, call.model_copy(update={"heads": 2 * call.heads})).bytes


def _beside(bound: BoundCall) -> Mapping[str, int]:
    """Measure the inputs of a forward call of attention other than Q, K and V, over all sequences [B]."""
    if bound.kind.operation != "attention" or bound.kind.direction != "forward":
        return FrozenDict()
    names, formulas = _inputs(bound.algorithm, bound.kind, bound.structure, bound.compiled.numbers)
    calls = bound.workload.sequences if isinstance(bound.workload, Mixed) else [bound.workload.longest]
    rows = [formulas.scalars(call, bound.numbers, ()) for call in calls] if names else []
    totals = zip(*rows, strict=True)
    return FrozenDict({name: each[0] if once else sum(each) for (name, once), each in zip(names, totals, strict=True)})


@lru_cache(maxsize=64)
def _inputs(
    declaration: Algorithm, kind: FormulaKind, structure: tuple[tuple[str, Any], ...], numbers: tuple[str, ...]
) -> tuple[tuple[tuple[str, bool], ...], Formulas]:
    """Compile the bytes of the inputs other than Q, K and V, each with its name, and whether sequences share it."""
    from iomodel.counting.compile import ONCE, compile_formulas
    from iomodel.counting.coverage import View
    from iomodel.counting.expressions import declared
    from iomodel.counting.folds import in_bytes, inputs

    sizes = inputs(declared(declaration, kind, dict(structure)), View(kind.mask), in_bytes)
    left = {tensor: size for tensor, size in sizes.items() if tensor.name not in ROWS}
    names = tuple((tensor.name, tensor.per in ONCE) for tensor in left)
    return names, compile_formulas([*left.values()], numbers, (), kind.operation)


def _free(bound: BoundCall) -> dict[tuple[str, str], int]:
    """Sum each count that no tile decides over the sequences of a call."""
    names, formulas = _formulas(bound.algorithm, bound.kind, bound.structure, bound.compiled.numbers)
    calls = bound.workload.sequences if isinstance(bound.workload, Mixed) else [bound.workload.longest]
    rows = [formulas.scalars(call, bound.numbers, ()) for call in calls] if names else []
    return dict(zip(names, map(sum, zip(*rows, strict=True)), strict=True)) if rows else {}


@lru_cache(maxsize=64)
def _formulas(
    declaration: Algorithm, kind: FormulaKind, structure: tuple[tuple[str, Any], ...], numbers: tuple[str, ...]
) -> tuple[tuple[tuple[str, str], ...], Formulas]:
    """Compile the counts of an algorithm without the symbol of a tile, each with its side and its tensor."""
    from iomodel.counting.compile import compile_formulas
    from iomodel.counting.expressions import formulas
    from iomodel.nests.symbols import NAME_OF

    made = formulas(declaration, kind, structure)
    known = {USEFUL: made.useful_flops}
    known |= {(side, name): count for side in SIDES for name, count in getattr(made, side).items()}
    free = {
        name: count
        for name, count in known.items()
        if {NAME_OF.get(symbol) for symbol in count.free_symbols}.isdisjoint(made.tiles)
    }
    return tuple(free), compile_formulas([*free.values()], numbers, (), kind.operation)
