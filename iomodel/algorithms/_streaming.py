"""Steps that several algorithms share: a running softmax over key tiles, and a sequence in chunks."""

from collections.abc import Sequence
from typing import Literal

from sympy import Expr, Symbol, ceiling

from iomodel.nests.language import Axis, Exp, Hold, Load, Loop, MatMul, Piece, Statement, Store, Tensor
from iomodel.nests.symbols import ONE, B_c, B_r, N_k, N_q
from iomodel.nests.tensors import K, O, Q, S, V, depth, key, l, m, query, value


def streamed(rows: Axis, keys: Axis, scores: Tensor, loads: Sequence[Statement]) -> list[Statement]:
    """Declare the work on one key tile: scores, one exponential per score and one per row for rescaling, and O.

    FlashAttention-2 (Dao 2023, arXiv:2307.08691, Algorithm 1), without features and LSE.
    """
    return [
        *loads,
        Hold(scores, "fp32"),
        MatMul(rows, keys, depth),
        Exp(rows, keys),
        Exp(rows),
        MatMul(rows, value, keys),
    ]


def flash(output: Tensor = O) -> Loop:
    """Declare query tiles outside and visible key tiles inside: at least one, because a position sees itself."""
    return Loop(query, B_r, [
        Hold(output, "fp32"), Hold(l), Hold(m), Load(Q),
        Loop(key, B_c, streamed(query, key, S, [Load(K), Load(V)]), masked=True),
        Store(output),
    ])  # fmt: skip


def chunks(
    length: Expr, mask: Literal["full", "causal", "window"] = "full", along: Sequence[Symbol] = (N_q, N_k)
) -> list[Piece]:
    """Split the positions of all axes of the same lengths `along` into chunks of equal length, with a shorter last one.

    Queries and keys are split together.
    """
    full = ceiling(along[0] / length) - 1
    rest = along[0] - full * length
    return [Piece(full, dict.fromkeys(along, length), mask), Piece(ONE, dict.fromkeys(along, rest), mask)]
