"""The running softmax of FlashAttention-2 (Dao 2023, arXiv:2307.08691, Algorithm 1), without features and LSE."""

from collections.abc import Sequence

from iomodel.nest import Axis, Exp, Hold, Load, Loop, MatMul, Statement, Store, Tensor
from iomodel.symbols import B_c, B_r
from iomodel.tensors import K, O, Q, S, V, depth, key, l, m, query, value


def streamed(rows: Axis, keys: Axis, scores: Tensor, loads: Sequence[Statement]) -> list[Statement]:
    """What is done with a tile of keys: its scores, an exponential each and one a row to rescale, its share of O."""
    return [
        *loads,
        Hold(scores, "fp32"),
        MatMul(rows, keys, depth),
        Exp(rows, keys),
        Exp(rows),
        MatMul(rows, value, keys),
    ]


def flash(output: Tensor = O) -> Loop:
    """Query tiles outside, the key tiles that each sees inside: one at least, for a position sees itself."""
    return Loop(query, B_r, [
        Hold(output, "fp32"), Hold(l), Hold(m), Load(Q),
        Loop(key, B_c, streamed(query, key, S, [Load(K), Load(V)]), masked=True),
        Store(output),
    ])  # fmt: skip
