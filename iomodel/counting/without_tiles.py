"""Figures of a call that no tile decides: the compulsory traffic, the useful FLOPs and their ratio."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.bounds import Bound, compulsory
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.kinds import FormulaKind
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import FOLLOWS
from iomodel.workloads.workload import Mixed, Workload


@dataclass(frozen=True)
class WithoutTiles:
    """The figures of one algorithm on one call that hold at every tile.

    Attributes
    ----------
    compulsory : Bound
        The traffic that every algorithm needs.
    useful_flops : int or None
        Matrix FLOPs of the visible pairs [FLOP]; None where a tile decides them.
    tiles : tuple of str
        The tiles that every other count needs; those that follow another tile are left out.
    """

    compulsory: Bound
    useful_flops: int | None
    tiles: tuple[str, ...]

    @property
    def intensity(self) -> float | None:
        """Useful FLOPs over compulsory traffic [FLOP/B]; None where a tile decides the FLOPs."""
        return None if self.useful_flops is None else self.useful_flops / self.compulsory.bytes


def without_tiles(algorithm: AlgorithmLike, workload: Workload, **options: Any) -> WithoutTiles:
    """Compute the figures of a call that hold at every tile.

    Examples
    --------
    >>> from iomodel import Attention
    >>> free = without_tiles("flash2", Attention(q_len=2048, head_dim=128))
    >>> free.useful_flops, free.intensity, free.tiles
    (2147483648, 1024.0, ('block_q', 'block_kv'))
    """
    bound = BoundCall.bind(algorithm, workload, options)
    tiles = tuple(name for name in bound.tiles if FOLLOWS.get(name) not in bound.tiles)
    return WithoutTiles(compulsory(algorithm, workload), _useful_flops(bound), tiles)


def _useful_flops(bound: BoundCall) -> int | None:
    """Sum the useful FLOPs over the sequences of a call; None where a tile decides them."""
    formula = _formula(bound.algorithm, bound.kind, bound.structure, bound.compiled.numbers)
    if formula is None:
        return None
    calls = bound.workload.sequences if isinstance(bound.workload, Mixed) else [bound.workload.longest]
    return sum(formula.scalars(call, bound.numbers, ())[0] for call in calls)


@lru_cache(maxsize=64)
def _formula(
    declaration: Algorithm, kind: FormulaKind, structure: tuple[tuple[str, Any], ...], numbers: tuple[str, ...]
) -> Formulas | None:
    """Compile the useful FLOPs of an algorithm; return None where they have the symbol of a tile."""
    from iomodel.counting.compile import compile_formulas
    from iomodel.counting.expressions import formulas
    from iomodel.nests.symbols import NAME_OF

    expressions = formulas(declaration, kind, structure)
    names = {NAME_OF.get(symbol) for symbol in expressions.useful_flops.free_symbols}
    if not names.isdisjoint(expressions.tiles):
        return None
    return compile_formulas([expressions.useful_flops], numbers, (), kind.operation)
