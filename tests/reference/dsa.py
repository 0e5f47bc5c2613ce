"""DeepSeek sparse attention (DeepSeek-AI 2025, arXiv:2512.02556, section 2.1): attention to keys that an indexer ranks.

Equation 1 scores a key for a query by a weighted sum of ReLUs over the heads of the indexer; equation 2 attends to the
keys of the k largest scores, the same for all heads. A query with fewer than k keys before it attends to all of them;
the places that it leaves empty in its row of indices hold -1. As flash-decoding (Dao, Haziza, Massa and Sizov, PyTorch
blog, 2023) does with keys, the places of a row may be cut into runs of whole tiles, one block each; a last kernel
weighs their partial outputs by their log-sum-exps.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .extras import NONE, Extras
from .grid import split
from .masks import dense_attention
from .streaming import Streamed


def weights(
    Q: FloatArray, K: FloatArray, V: FloatArray, *, index_heads: int = 64, index_dim: int = 128
) -> dict[str, FloatArray]:
    """Q_I [B, N_q, H_I, d_I], K_I [B, N_k, d_I] and W_I [B, N_q, H_I], which may be negative."""
    draw = np.random.default_rng(5).standard_normal
    batch, q_len, kv_len = Q.shape[0], Q.shape[2], K.shape[2]
    return {
        "Q_I": draw((batch, q_len, index_heads, index_dim)),
        "K_I": draw((batch, kv_len, index_dim)),
        "W_I": draw((batch, q_len, index_heads)),
    }


def seen_by(query: int, q_len: int, kv_len: int, right: int | None) -> int:
    """How many keys a query sees, the first ones; the last query is at the last key."""
    return kv_len if right is None else kv_len - q_len + query + 1


def score(machine: Machine, b: int, right: int | None, block_q: int, block_kv: int) -> None:
    """Equation 1 for the tiles that hold a visible pair; the rows of a product are the heads of its queries."""
    hbm, sram = machine.hbm, machine.sram
    (q_len, heads, width), kv_len = hbm.arrays["Q_I"].shape[1:], hbm.arrays["K_I"].shape[1]
    for rows in split(q_len, block_q):
        n = rows.stop - rows.start
        q, w = sram.alloc("Q_I", (block_q, heads, width))[:n], sram.alloc("W_I", (block_q, heads), "fp32")[:n]
        k_tile, total = sram.alloc("K_I", (block_kv, width)), sram.alloc("S_I", (block_q, block_kv), "fp32")[:n]
        products = sram.alloc("products", (block_q * heads, block_kv), "fp32")[: n * heads]
        q[:], w[:] = hbm.load("Q_I", (b, rows)), hbm.load("W_I", (b, rows))
        for keys in split(kv_len, block_kv):
            if keys.start >= seen_by(rows.stop - 1, q_len, kv_len, right):
                break
            m = keys.stop - keys.start
            k_tile[:m] = hbm.load("K_I", (b, keys))
            products[:, :m] = machine.matmul(q.reshape(n * heads, width), k_tile[:m].T)
            for row in range(n):
                own = relu(products[row * heads : (row + 1) * heads, :m])
                total[row, :m] = machine.matmul(w[row : row + 1], own)[0]
            hbm.store("S_I", (b, rows, keys), total[:, :m])
        sram.free()


def relu(x: FloatArray) -> FloatArray:
    """The positive part."""
    return np.maximum(x, 0.0)


def select(machine: Machine, at: tuple[int, int], right: int | None, top_k: int) -> None:
    """The keys of the largest scores of one query, the visible ones read one by one (an ideal pass)."""
    hbm, sram = machine.hbm, machine.sram
    chosen, s = sram.alloc("I", (top_k,), "int32"), sram.alloc("S_I", (1,), "fp32")
    q_len, kv_len = hbm.arrays["S_I"].shape[1:]
    scores = []
    for key in range(seen_by(at[1], q_len, kv_len, right)):
        s[:] = hbm.load("S_I", (*at, slice(key, key + 1)))
        scores.append(s[0])
    best = np.argsort(-np.array(scores), kind="stable")[:top_k]
    chosen[:] = -1
    chosen[: len(best)] = best
    hbm.store("I", at, chosen)
    sram.free()


def attend(
    machine: Machine,
    at: tuple[int, int],
    kv_head: int,
    heads: slice,
    *,
    filled: int,
    rows: int,
    block: int,
    d_v: int,
    run: slice,
    part: int | None,
) -> None:
    """Equation 2 for a tile of heads of one query, over one run of its places.

    The first `filled` places hold a key. A tile of places is computed whole; its keys alone are loaded. A `part` stores
    its own output and log-sum-exp in fp32.
    """
    hbm, sram = machine.hbm, machine.sram
    b, query = at
    d, apart = hbm.arrays["K"].shape[3], "V" in hbm.arrays
    n, top_k = heads.stop - heads.start, hbm.arrays["I"].shape[2]
    index, q = sram.alloc("I", (block,), "int32"), sram.alloc("Q", (rows, d))[:n]
    k_tile, v_tile = sram.alloc("K", (block, d)), sram.alloc("V", (block, d_v)) if apart else None
    streamed = Streamed(machine, n, d_v, rows, block)
    q[:] = hbm.load("Q", (b, heads, query))
    for start in range(run.start, min(run.stop, filled), block):
        places = slice(start, min(start + block, top_k))
        chosen = index[: places.stop - places.start]
        chosen[:] = hbm.load("I", (b, query, places))
        keys = chosen.astype(int)
        found = keys[keys >= 0]
        k_tile[:] = 0.0
        k_tile[: len(found)] = hbm.load("K", (b, kv_head, found))
        if v_tile is not None:
            v_tile[:] = 0.0
            v_tile[: len(found)] = hbm.load("V", (b, kv_head, found))
        v = k_tile[:, :d_v] if v_tile is None else v_tile
        empty = np.tile(keys < 0, (n, 1))
        streamed.add(streamed.scores(q, k_tile[: len(keys)], empty), v[: len(keys)])
    if part is None:
        hbm.store("O", (b, heads, query), streamed.output())
    else:
        hbm.store("O_acc", (part, b, heads, query), streamed.output())
        hbm.store("LSE_acc", (part, b, heads, query), streamed.lse())
    sram.free()


def combine(machine: Machine, at: tuple[int, int, int]) -> None:
    """Weigh the parts of one head of one query by their log-sum-exps."""
    hbm, sram = machine.hbm, machine.sram
    parts, width = hbm.arrays["O_acc"].shape[0], hbm.arrays["O_acc"].shape[-1]
    lse, o = sram.alloc("LSE_acc", (parts,), "fp32"), sram.alloc("O", (width,), "fp32")
    o_part = sram.alloc("O_acc", (width,), "fp32")
    lse[:] = hbm.load("LSE_acc", (slice(0, parts), *at))
    weight = machine.exp(lse - lse.max())
    o[:] = 0.0
    for part in range(parts):
        o_part[:] = hbm.load("O_acc", (part, *at))
        o += weight[part] * o_part
    hbm.store("O", at, o / weight.sum())
    sram.free()


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    capacity: int | None = None,
    block_sum: int,
    block_q: int,
    block_kv: int,
    index_heads: int = 64,
    index_queries: int = 2,
    index_dim: int = 128,
    top_k: int = 2048,
    splits: int = 1,
    extras: Extras = NONE,
) -> Run:
    """Score, select, attend, and combine the parts of several splits.

    With one latent row for K and V (MLA, absorbed), V is the first columns of K.
    """
    (batch, heads, q_len, _), (_, kv_heads, kv_len, d_v) = Q.shape, V.shape
    if right not in (None, 0) or top_k > kv_len or (right == 0 and q_len > kv_len):
        raise ValueError("every key or the keys up to the query's own, and no more selected than there are")
    inputs = weights(Q, K, V, index_heads=index_heads, index_dim=index_dim)
    machine = Machine(Q, K, None if extras.latent else V, capacity, Q_I=inputs["Q_I"], K_I=inputs["K_I"])
    hbm, group = machine.hbm, heads // kv_heads
    hbm.alloc("W_I", inputs["W_I"].shape, inputs["W_I"], "fp32")
    hbm.alloc("S_I", (batch, q_len, kv_len), width="fp32")
    for b in range(batch):
        score(machine, b, right, index_queries, block_sum)
    hbm.alloc("I", (batch, q_len, top_k), width="int32")
    for at in np.ndindex(batch, q_len):
        select(machine, at, right, top_k)
    hbm.free("S_I")
    if splits == 1:
        hbm.alloc("O", (batch, heads, q_len, d_v))
    else:
        hbm.alloc("O_acc", (splits, batch, heads, q_len, d_v), width="fp32")
        hbm.alloc("LSE_acc", (splits, batch, heads, q_len), width="fp32")
    length = -(-len(split(top_k, block_kv)) // splits) * block_kv  # places of a split
    for b, query, kv_head in np.ndindex(batch, q_len, kv_heads):
        filled = min(top_k, seen_by(query, q_len, kv_len, right))
        for tile in split(group, block_q):
            here = slice(kv_head * group + tile.start, kv_head * group + tile.stop)
            for part in range(splits):
                attend(
                    machine, (b, query), kv_head, here,
                    filled=filled, rows=block_q, block=block_kv, d_v=d_v,
                    run=slice(part * length, (part + 1) * length), part=part if splits > 1 else None,
                )  # fmt: skip
    chosen = hbm.arrays["I"]
    hbm.free("I")
    if splits > 1:
        hbm.alloc("O", (batch, heads, q_len, d_v))
        for row in np.ndindex(batch, heads, q_len):
            combine(machine, row)
        hbm.free("O_acc")
        hbm.free("LSE_acc")
    return machine.result(O=hbm.arrays["O"], I=chosen)


def naive(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    index_heads: int = 64,
    index_queries: int = 2,
    index_dim: int = 128,
    top_k: int = 2048,
    splits: int = 1,
) -> FloatArray:
    """Dense attention under the mask of the keys with the `top_k` largest sums of weighted ReLUs."""
    inputs = weights(Q, K, V, index_heads=index_heads, index_dim=index_dim)
    products = np.einsum("bthd,bsd->bths", inputs["Q_I"], inputs["K_I"])
    scores = np.einsum("bth,bths->bts", inputs["W_I"], np.where(products > 0, products, 0.0))
    (batch, _, q_len, _), kv_len = Q.shape, K.shape[2]
    seen = np.zeros((batch, 1, q_len, kv_len), dtype=np.bool_)
    for b, t in np.ndindex(batch, q_len):
        visible = range(kv_len if right is None else kv_len - q_len + t + 1)
        best = sorted(visible, key=lambda s: (-scores[b, t, s], s))[:top_k]
        seen[b, 0, t, best] = True
    return dense_attention(Q, K, V, seen)[0]
