"""Parts of a formula by their kind."""

from __future__ import annotations

from functools import lru_cache

from sympy import Expr, Symbol


@lru_cache(maxsize=65_536)
def parts_of(expr: Expr, kind: type = Symbol) -> frozenset[Expr]:
    """Collect the parts of a formula that are of a kind; sympy visits each occurrence of a part that repeats.

    >>> from iomodel.nests.symbols import B_r, N_q
    >>> sorted(map(str, parts_of(N_q * B_r + N_q)))
    ['B_r', 'N_q']
    """
    inside: frozenset[Expr] = frozenset().union(*(parts_of(arg, kind) for arg in expr.args))
    return inside | {expr} if isinstance(expr, kind) else inside
