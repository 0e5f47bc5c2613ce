"""Reformer: attention within buckets of a locality-sensitive hash (Kitaev et al. 2020, arXiv:2001.04451, section 2).

Keys are the queries, scaled to unit length. In each round the positions are sorted by bucket and cut into chunks of
m = ceil(2 N / buckets); a chunk attends to itself and the one before. The rounds are weighed by their normalisers;
a pair that several rounds share counts in each of them, without the correction of the paper's appendix A.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import split
from .masks import finite, reciprocal
from .streaming import Streamed, ceil

ALONE = -1e5  # the score of a position with itself: it counts where there is nothing else


def weights(
    Q: FloatArray, K: FloatArray, V: FloatArray, *, buckets: int = 64, rounds: int = 4
) -> dict[str, FloatArray]:
    """R [heads, rounds, d, buckets / 2]: the random projections of each query head of the layer."""
    shape = (Q.shape[1], rounds, Q.shape[3], buckets // 2)
    return {"R": np.random.default_rng(3).standard_normal(shape)}


def unit(x: FloatArray) -> FloatArray:
    """Rows of length 1."""
    root: FloatArray = np.sqrt((x**2).sum(axis=1, keepdims=True))
    return x / root


def hash_tiles(machine: Machine, b: int, h: int, block: int) -> None:
    """h(x) = argmax [x R; -x R] of every position, in every round."""
    hbm, sram = machine.hbm, machine.sram
    _, rounds, d, half = hbm.arrays["R"].shape
    for rows in split(hbm.arrays["Q"].shape[2], block):
        n = rows.stop - rows.start
        q, r = sram.alloc("Q", (block, d))[:n], sram.alloc("R", (d, half))
        products = sram.alloc("H", (block, half), "fp32")[:n]
        q[:] = hbm.load("Q", (b, h, rows))
        for i in range(rounds):
            r[:] = hbm.load("R", (h, i))
            products[:] = machine.matmul(q, r)
            bucket = np.argmax(np.concatenate([products, -products], axis=1), axis=1)
            hbm.store("BUCKET", (b, h, i, rows), bucket)
        sram.free()


def sort(machine: Machine, at: tuple[int, int, int]) -> None:
    """Order positions by (bucket, position), each read and written once (one ideal pass)."""
    hbm, sram = machine.hbm, machine.sram
    bucket = sram.alloc("BUCKET", (1,), "int32")
    found = []
    for position in range(hbm.arrays["BUCKET"].shape[3]):
        bucket[:] = hbm.load("BUCKET", (*at, slice(position, position + 1)))
        found.append(bucket[0])
    for place, position in enumerate(np.argsort(found, kind="stable")):
        hbm.store("ORDER", (*at, place), position)
    sram.free()


def chunk(
    machine: Machine, at: tuple[int, int, int], rows: slice, keys: slice, *, causal: bool, block_q: int, block_kv: int
) -> None:
    """Attention of a chunk of the sorted sequence to itself and the chunk before; no tile of it is skipped."""
    hbm, sram = machine.hbm, machine.sram
    b, h, i = at
    d, d_v = hbm.arrays["Q"].shape[3], hbm.arrays["V"].shape[3]
    for mine in split(rows.stop - rows.start, block_q):
        n = mine.stop - mine.start
        order, bucket = (sram.alloc(name, (block_q,), "int32")[:n] for name in ("ORDER", "BUCKET"))
        order_k, bucket_k = (sram.alloc(f"{name} of keys", (block_kv,), "int32") for name in ("ORDER", "BUCKET"))
        q, k_tile = sram.alloc("Q", (block_q, d))[:n], sram.alloc("K", (block_kv, d))
        v_tile = sram.alloc("V", (block_kv, d_v))
        streamed = Streamed(machine, n, d_v, block_q, block_kv)
        order[:] = hbm.load("ORDER", (*at, slice(rows.start + mine.start, rows.start + mine.stop)))
        queries = order.astype(int)
        bucket[:] = hbm.load("BUCKET", (*at, queries))
        q[:] = hbm.load("Q", (b, h, queries))
        for tile in split(keys.stop - keys.start, block_kv):
            n_k = tile.stop - tile.start
            order_k[:n_k] = hbm.load("ORDER", (*at, slice(keys.start + tile.start, keys.start + tile.stop)))
            positions = order_k[:n_k].astype(int)
            bucket_k[:n_k] = hbm.load("BUCKET", (*at, positions))
            k_tile[:n_k] = unit(hbm.load("Q", (b, h, positions)))
            v_tile[:n_k] = hbm.load("V", (b, h, positions))
            hidden = bucket[:, None] != bucket_k[None, :n_k]
            if causal:
                hidden |= positions[None, :] > queries[:, None]
            s = streamed.scores(q, k_tile[:n_k], hidden)
            s[queries[:, None] == positions[None, :]] = ALONE
            streamed.add(s, v_tile[:n_k])
        hbm.store("O_acc", (i, b, h, queries), streamed.output())
        hbm.store("LSE_acc", (i, b, h, queries), streamed.lse())
        sram.free()


def combine(machine: Machine, at: tuple[int, int, int]) -> None:
    """Weigh the rounds of one position by exp(LSE)."""
    hbm, sram = machine.hbm, machine.sram
    rounds, *_, d_v = hbm.arrays["O_acc"].shape
    share, o = sram.alloc("LSE_acc", (rounds,), "fp32"), sram.alloc("O", (d_v,), "fp32")
    o_round = sram.alloc("O_acc", (d_v,), "fp32")
    share[:] = hbm.load("LSE_acc", (slice(None), *at))
    share[:] = machine.exp(share - share.max())
    o[:] = 0.0
    for i in range(rounds):
        o_round[:] = hbm.load("O_acc", (i, *at))
        o += share[i] / share.sum() * o_round
    hbm.store("O", at, o)
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
    buckets: int = 64,
    rounds: int = 4,
) -> Run:
    """Hash, sort, attend, combine, each over all heads; K is not an input."""
    (batch, heads, n, _), d_v = Q.shape, V.shape[3]
    if K.shape[1:3] != (heads, n) or right not in {None, 0} or buckets % 2:
        raise ValueError("self-attention with a key head for each head, full or causal; an even number of buckets")
    machine = Machine(Q, V=V, capacity=capacity, **weights(Q, K, V, buckets=buckets, rounds=rounds))
    hbm = machine.hbm
    hbm.alloc("BUCKET", (batch, heads, rounds, n), width="int32")
    for b, h in np.ndindex(batch, heads):
        hash_tiles(machine, b, h, block_proj)
    hbm.alloc("ORDER", (batch, heads, rounds, n), width="int32")
    for at in np.ndindex(batch, heads, rounds):
        sort(machine, at)
    hbm.alloc("O_acc", (rounds, batch, heads, n, d_v), width="fp32")
    hbm.alloc("LSE_acc", (rounds, batch, heads, n), width="fp32")
    chunks, m = split(n, ceil(2 * n, buckets)), ceil(2 * n, buckets)
    for at in np.ndindex(batch, heads, rounds):
        for rows in chunks:
            keys = slice(max(0, rows.start - m), rows.stop)
            chunk(machine, at, rows, keys, causal=right == 0, block_q=block_q, block_kv=block_kv)
    hbm.free("BUCKET")
    hbm.free("ORDER")
    hbm.alloc("O", (batch, heads, n, d_v))
    for at in np.ndindex(batch, heads, n):
        combine(machine, at)
    hbm.free("O_acc")
    hbm.free("LSE_acc")
    return machine.result(O=hbm.arrays["O"])


def naive(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    buckets: int = 64,
    rounds: int = 4,
) -> FloatArray:
    """For each position and round the set of others it attends to, by the definition; one softmax over all rounds.

    A pair is in the sum as often as rounds share it. A round where a position meets nobody else counts only if they
    all do.
    """
    R = weights(Q, K, V, buckets=buckets, rounds=rounds)["R"]
    n, m = Q.shape[2], ceil(2 * Q.shape[2], buckets)
    times = np.zeros((*Q.shape[:3], n))  # in how many rounds i attends to j
    for b, h, r in np.ndindex(*Q.shape[:2], rounds):
        rotated = [row @ R[h, r] for row in Q[b, h]]
        bucket = [int(np.argmax([*x, *-x])) for x in rotated]
        place = {i: p for p, i in enumerate(sorted(range(n), key=lambda i: (bucket[i], i)))}
        for i, j in np.ndindex(n, n):
            near = place[i] // m - place[j] // m in {0, 1}
            times[b, h, i, j] += near and bucket[i] == bucket[j] and (right is None or j <= i)
    others = np.where(np.eye(n, dtype=np.bool_), 0.0, times)
    times = np.where(others.any(axis=-1, keepdims=True), others, np.eye(n))
    S = Q @ (Q / np.linalg.norm(Q, axis=-1, keepdims=True)).swapaxes(-1, -2) / np.sqrt(Q.shape[3])
    m_row = np.where(times > 0, S, -np.inf).max(axis=-1)
    P = times * np.exp(np.minimum(S - finite(m_row)[..., None], 0.0))
    output: FloatArray = P @ V * reciprocal(P.sum(axis=-1))[..., None]
    return output
