"""Sequences split into chunks that are processed in turn."""

from collections.abc import Sequence
from typing import Literal

from sympy import Expr, Integer, Symbol, ceiling

from iomodel.nests.language import Piece
from iomodel.nests.symbols import N_k, N_q


def chunks(
    length: Expr, mask: Literal["full", "causal", "window"] = "full", along: Sequence[Symbol] = (N_q, N_k)
) -> list[Piece]:
    """Split the positions of all axes of the same lengths `along` into chunks of equal length, with a shorter last one.

    Queries and keys are split together.
    """
    full = ceiling(along[0] / length) - 1
    rest = along[0] - full * length
    return [
        Piece(full, dict.fromkeys(along, length), mask),
        Piece(Integer(1), dict.fromkeys(along, rest), mask),
    ]
