"""Sequences cut into chunks that are worked on one by one."""

from typing import Literal

from sympy import Expr, Integer, ceiling

from iomodel.nest import Piece
from iomodel.symbols import N_k, N_q


def chunks(length: Expr, mask: Literal["full", "causal", "window"] = "full") -> list[Piece]:
    """Queries and keys together in chunks of so many positions, the last one shorter."""
    full = ceiling(N_q / length) - 1
    rest = N_q - full * length
    return [
        Piece(full, {N_q: length, N_k: length}, mask),
        Piece(Integer(1), {N_q: rest, N_k: rest}, mask),
    ]
