"""Element-wise visibility, and dense attention to compare every kernel with."""

import numpy as np
from numpy.typing import NDArray

from iomodel.testing.machine import FloatArray

BoolArray = NDArray[np.bool_]


def visible(q_len: int, kv_len: int, left: int | None, right: int | None, align: str, more: int = 0) -> BoolArray:
    """Which key each query sees, [q_len, kv_len]; and so many rows after the last query, as queries would.

    Query i sees keys i + off - left to i + off + right inclusive; None is unbounded. The offset is
    kv_len - q_len where the last query is aligned with the last key ("bottom-right", the convention of
    FlashAttention since 2.1), and 0 where the first is aligned with the first ("top-left").
    Full attention is (None, None), causal attention (None, 0).
    """
    offsets = {"bottom-right": kv_len - q_len, "top-left": 0}
    centre = np.arange(q_len + more)[:, None] + offsets[align]
    key = np.arange(kv_len)[None, :]
    seen = np.ones((q_len + more, kv_len), dtype=np.bool_)
    if left is not None:
        seen &= key >= centre - left
    if right is not None:
        seen &= key <= centre + right
    return seen


def useful_pairs(seen: BoolArray) -> int:
    """How many (query, key) pairs are visible."""
    return int(np.count_nonzero(seen))


def finite(m: FloatArray) -> FloatArray:
    """The row maxima, 0 for rows that saw nothing yet: -inf - -inf has no value, exp(-inf - 0) is 0."""
    return np.where(np.isneginf(m), 0.0, m)


def reciprocal(l: FloatArray) -> FloatArray:
    """1 / l, and 0 for the rows that saw nothing, whose output is 0."""
    return np.divide(1.0, l, out=np.zeros_like(l), where=l > 0)


def logsumexp(m: FloatArray, l: FloatArray) -> FloatArray:
    """m + log l of the running maximum m and sum l; -inf for the rows that saw nothing."""
    return m + np.log(l, out=np.zeros_like(l), where=l > 0)


def dense_attention(Q: FloatArray, K: FloatArray, V: FloatArray, seen: BoolArray) -> tuple[FloatArray, FloatArray]:
    """softmax(Q K^T / sqrt(d)) V and its log-sum-exp; a row that sees nothing is 0, its LSE -inf."""
    group = Q.shape[1] // K.shape[1]
    K, V = np.repeat(K, group, axis=1), np.repeat(V, group, axis=1)
    S = np.where(seen, Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]), -np.inf)
    m = S.max(axis=-1)
    P = np.exp(S - finite(m)[..., None])
    l = P.sum(axis=-1)
    return P @ V * reciprocal(l)[..., None], logsumexp(m, l)
