"""What the forward pass leaves and the gradients of attention, by their formulas on whole matrices."""

import numpy as np

from iomodel.testing.machine import FloatArray

from ..extras import NONE, Extras, keep_mask, offset
from ..masks import BoolArray, finite, logsumexp, reciprocal


def dense_scores(Q: FloatArray, K: FloatArray, seen: BoolArray, align: str, extras: Extras) -> FloatArray:
    """The scores of all pairs, -inf for those that are not visible."""
    group = Q.shape[1] // K.shape[1]
    S: FloatArray = Q @ np.repeat(K, group, axis=1).swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    if extras.softcap is not None:
        S = extras.softcap * np.tanh(S / extras.softcap)
    if extras.bias is not None:
        S = S + extras.bias
    if extras.slopes is not None:
        q_len, kv_len = seen.shape
        centre = np.arange(q_len)[:, None] + offset(q_len, kv_len, align)
        S = S + extras.slopes[:, None, None] * (np.arange(kv_len)[None, :] - centre)
    return np.where(seen, S, -np.inf)


def dense_dropout(shape: tuple[int, ...], extras: Extras) -> FloatArray:
    """Z / (1 - p) of all pairs."""
    if extras.dropout is None:
        return np.ones(shape)
    batch, heads, q_len, kv_len = shape
    places = np.ogrid[:heads, :q_len, :kv_len]
    return np.stack([keep_mask(extras, b, *places) for b in range(batch)]) / (1 - extras.dropout)


def forward_saved(
    Q: FloatArray, K: FloatArray, V: FloatArray, *, seen: BoolArray, align: str = "bottom-right", extras: Extras = NONE
) -> dict[str, FloatArray]:
    """What the forward pass leaves, P before dropout and after it; a row that sees nothing has 0 for O and P."""
    S = dense_scores(Q, K, seen, align, extras)
    m = S.max(axis=-1)
    if extras.sinks is not None:
        m = np.maximum(m, extras.sinks[:, None])
    P = np.exp(S - finite(m)[..., None])
    l = P.sum(axis=-1)
    if extras.sinks is not None:
        l = l + np.exp(extras.sinks[:, None] - m)
    P = P * reciprocal(l)[..., None]
    Z = dense_dropout(P.shape, extras)
    O = P * Z @ np.repeat(V, Q.shape[1] // K.shape[1], axis=1)
    return {"O": O, "LSE": logsumexp(m, l), "l": l, "m": m, "P": P, "P_drop": P * Z, "dropout_mask": 1.0 * (Z != 0)}


def dense_gradients(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    dO: FloatArray,
    *,
    seen: BoolArray,
    align: str = "bottom-right",
    extras: Extras = NONE,
) -> dict[str, FloatArray]:
    """dQ, dK and dV of sum(dO o O): the chain rule through the product, the dropout, the softmax and the scores."""
    batch, kv_heads, kv_len, d = K.shape
    group = Q.shape[1] // kv_heads
    K_all, V_all = np.repeat(K, group, axis=1), np.repeat(V, group, axis=1)
    P = forward_saved(Q, K, V, seen=seen, align=align, extras=extras)["P"]
    Z = dense_dropout(P.shape, extras)
    dV = (P * Z).swapaxes(-1, -2) @ dO
    dP = dO @ V_all.swapaxes(-1, -2) * Z
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    if extras.softcap is not None:
        S = Q @ K_all.swapaxes(-1, -2) / np.sqrt(d)
        dS = dS / np.cosh(S / extras.softcap) ** 2
    dK = dS.swapaxes(-1, -2) @ Q / np.sqrt(d)
    return {
        "dQ": dS @ K_all / np.sqrt(d),
        "dK": dK.reshape(batch, kv_heads, group, kv_len, d).sum(axis=2),
        "dV": dV.reshape(batch, kv_heads, group, kv_len, -1).sum(axis=2),
    }
