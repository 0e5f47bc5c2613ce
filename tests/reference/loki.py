"""Loki: attention to the keys of the largest scores in a few principal components (Singhania et al. 2024,
arXiv:2406.02542, Algorithm 1).

The cache holds keys in the basis of their principal components, where the leading columns give an approximate score.
Keys that are new are rotated and put there first.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import split
from .masks import dense_attention
from .streaming import Streamed


def weights(Q: FloatArray, K: FloatArray, V: FloatArray) -> dict[str, FloatArray]:
    """R [kv_heads, d, d]: an orthogonal matrix for each key head of the layer, its columns the components."""
    draw = np.random.default_rng(1).standard_normal((K.shape[1], K.shape[3], K.shape[3]))
    return {"R": np.stack([np.linalg.qr(matrix)[0] for matrix in draw])}


def rotate_keys(machine: Machine, b: int, h: int, block: int) -> None:
    """Put the new keys of a key head into the cache, rotated."""
    hbm, sram = machine.hbm, machine.sram
    q_len, d = hbm.arrays["K_new"].shape[2:]
    first = hbm.arrays["K"].shape[2] - q_len
    for rows in split(q_len, block):
        n = rows.stop - rows.start
        r, new = sram.alloc("R", (d, d)), sram.alloc("K_new", (block, d))[:n]
        k = sram.alloc("K", (block, d), "fp32")[:n]
        r[:] = hbm.load("R", h)
        new[:] = hbm.load("K_new", (b, h, rows))
        k[:] = machine.matmul(new, r)
        hbm.store("K", (b, h, slice(first + rows.start, first + rows.stop)), k)
        sram.free()


def approximate(machine: Machine, b: int, h: int, kv_head: int, *, block_q: int, block_kv: int, rank: int) -> None:
    """Rotate the queries of a head and score every key by its leading components."""
    hbm, sram = machine.hbm, machine.sram
    (q_len, d), kv_len = hbm.arrays["Q"].shape[2:], hbm.arrays["K"].shape[2]
    for rows in split(q_len, block_q):
        n = rows.stop - rows.start
        r, q = sram.alloc("R", (d, d)), sram.alloc("Q", (block_q, d))[:n]
        rotated = sram.alloc("Q_rot", (block_q, d), "fp32")[:n]
        k_tile = sram.alloc("K", (block_kv, rank))
        s_tile = sram.alloc("S", (block_q, block_kv), "fp32")[:n]
        r[:] = hbm.load("R", kv_head)
        q[:] = hbm.load("Q", (b, h, rows))
        rotated[:] = machine.matmul(q, r)
        hbm.store("Q_rot", (b, h, rows), rotated)
        for keys in split(kv_len, block_kv):
            k, s = k_tile[: keys.stop - keys.start], s_tile[:, : keys.stop - keys.start]
            k[:] = hbm.load("K", (b, kv_head, keys, slice(rank)))
            s[:] = machine.matmul(rotated[:, :rank], k.T)
            hbm.store("S", (b, h, rows, keys), s)
        sram.free()


def select(machine: Machine, at: tuple[int, int, int], top_k: int) -> None:
    """The keys of the largest approximate scores of one query, the scores read one by one (an ideal pass)."""
    hbm, sram = machine.hbm, machine.sram
    chosen, s = sram.alloc("I", (top_k,), "int32"), sram.alloc("S", (1,))
    scores = []
    for key in range(hbm.arrays["S"].shape[3]):
        s[:] = hbm.load("S", (*at, slice(key, key + 1)))
        scores.append(s[0])
    chosen[:] = np.argsort(-np.array(scores), kind="stable")[:top_k]
    hbm.store("I", at, chosen)
    sram.free()


def exact(machine: Machine, at: tuple[int, int, int], kv_head: int, *, top_k: int, block: int) -> None:
    """Attention of one query to the keys it selected, all components of them."""
    hbm, sram = machine.hbm, machine.sram
    b, h, query = at
    d, d_v = hbm.arrays["K"].shape[3], hbm.arrays["V"].shape[3]
    chosen, q = sram.alloc("I", (top_k,), "int32"), sram.alloc("Q_rot", (1, d))
    k_tile, v_tile = sram.alloc("K", (block, d)), sram.alloc("V", (block, d_v))
    streamed = Streamed(machine, 1, d_v, 1, block)
    chosen[:] = hbm.load("I", at)
    q[:] = hbm.load("Q_rot", (b, h, slice(query, query + 1)))
    for tile in split(top_k, block):
        keys = chosen[tile].astype(int)
        k, v = k_tile[: len(keys)], v_tile[: len(keys)]
        k[:] = hbm.load("K", (b, kv_head, keys))
        v[:] = hbm.load("V", (b, kv_head, keys))
        streamed.add(streamed.scores(q, k), v)
    hbm.store("O", (b, h, slice(query, query + 1)), streamed.output())
    sram.free()


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    capacity: int | None = None,
    block_proj: int,
    block_q: int,
    block_kv: int,
    block_sum: int,
    rank: int = 32,
    top_k: int = 256,
) -> Run:
    """Four kernels, each over all heads; K in HBM is the rotated cache, without the newest q_len keys at first."""
    if right is not None:
        raise ValueError("every query sees every key")
    (batch, heads, q_len, _), (_, kv_heads, kv_len, d_v) = Q.shape, V.shape
    R, group = weights(Q, K, V)["R"], heads // kv_heads
    cache = np.where(np.arange(kv_len)[:, None] < kv_len - q_len, K @ R, np.nan)
    machine = Machine(Q, cache, V, capacity, K_new=K[:, :, kv_len - q_len :], R=R)
    hbm = machine.hbm
    for b, kv_head in np.ndindex(batch, kv_heads):
        rotate_keys(machine, b, kv_head, block_proj)
    hbm.alloc("Q_rot", Q.shape)
    hbm.alloc("S", (batch, heads, q_len, kv_len))
    for b, h in np.ndindex(batch, heads):
        approximate(machine, b, h, h // group, block_q=block_q, block_kv=block_kv, rank=rank)
    hbm.alloc("I", (batch, heads, q_len, top_k), width="int32")
    for at in np.ndindex(batch, heads, q_len):
        select(machine, at, top_k)
    hbm.free("S")
    hbm.alloc("O", (batch, heads, q_len, d_v))
    for at in np.ndindex(batch, heads, q_len):
        exact(machine, at, at[1] // group, top_k=top_k, block=block_sum)
    hbm.free("Q_rot")
    hbm.free("I")
    return machine.result(O=hbm.arrays["O"])


def naive(
    Q: FloatArray, K: FloatArray, V: FloatArray, *, right: int | None = None, rank: int = 32, top_k: int = 256
) -> FloatArray:
    """Dense attention to the keys as they came, those with the `top_k` largest scores on R's first columns."""
    assert right is None
    basis = weights(Q, K, V)["R"][:, :, :rank]
    group = Q.shape[1] // K.shape[1]
    seen = np.zeros((*Q.shape[:3], K.shape[2]), dtype=np.bool_)
    for b, h, i in np.ndindex(Q.shape[:3]):
        P = basis[h // group]
        scores = [float((Q[b, h, i] @ P) @ (key @ P)) for key in K[b, h // group]]
        best = sorted(range(len(scores)), key=lambda j: (-scores[j], j))[:top_k]
        seen[b, h, i, best] = True
    return dense_attention(Q, K, V, seen)[0]
