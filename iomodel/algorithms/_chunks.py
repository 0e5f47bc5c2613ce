"""Sequences split into chunks that are processed in turn."""

from typing import Literal

from sympy import Expr, Integer, ceiling

from iomodel.nests.language import Piece
from iomodel.nests.symbols import N_k, N_q


def chunks(length: Expr, mask: Literal["full", "causal", "window"] = "full") -> list[Piece]:
    """Split queries and keys together into chunks of equal length, with a shorter last one."""
    full = ceiling(N_q / length) - 1
    rest = N_q - full * length
    return [
        Piece(full, {N_q: length, N_k: length}, mask),
        Piece(Integer(1), {N_q: rest, N_k: rest}, mask),
    ]
