"""Running softmax of FlashAttention-2 (Dao 2023, arXiv:2307.08691, Algorithm 1), without features and LSE."""

from collections.abc import Sequence

from iomodel.nests.language import Axis, Exp, Hold, Load, Loop, MatMul, Statement, Store, Tensor
from iomodel.nests.symbols import B_c, B_r
from iomodel.nests.tensors import K, O, Q, S, V, depth, key, l, m, query, value


def streamed(rows: Axis, keys: Axis, scores: Tensor, loads: Sequence[Statement]) -> list[Statement]:
    """Declare the work on one key tile: scores, one exponential per score and one per row for rescaling, and O."""
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
