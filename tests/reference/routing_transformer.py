"""Routing Transformer: each cluster attends within itself (Roy et al. 2020, arXiv:2003.05997, Algorithm 1).

A cluster takes the w = ceil(N / clusters) queries and keys nearest to its centroid. The update of the centroids belongs
to training and is not here. Causal, the keys are the queries, and K is no input.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import split
from .masks import dense_attention
from .streaming import Streamed, ceil

EPSILON = 1e-5  # under the root of the layer norm


def weights(Q: FloatArray, K: FloatArray, V: FloatArray, *, clusters: int = 32) -> dict[str, FloatArray]:
    """MU [heads, clusters, d]: the centroids of each query head of the layer, of unit norm."""
    mu = np.random.default_rng(2).standard_normal((Q.shape[1], clusters, Q.shape[3]))
    return {"MU": mu / np.linalg.norm(mu, axis=-1, keepdims=True)}


def normed(x: FloatArray) -> FloatArray:
    """Layer norm of each row without scale and bias, done on chip after a load."""
    centred: FloatArray = x - x.mean(axis=1, keepdims=True)
    deviation: FloatArray = np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
    return centred / deviation


def project(machine: Machine, x: str, b: int, h: int, source: int, block: int) -> None:
    """The products of Q or K with every centroid; `source` is the head of it to project."""
    hbm, sram = machine.hbm, machine.sram
    n, d = hbm.arrays[x].shape[2:]
    clusters = hbm.arrays["MU"].shape[1]
    for rows in split(n, block):
        mu, tile = sram.alloc("MU", (clusters, d)), sram.alloc(x, (block, d))[: rows.stop - rows.start]
        product = sram.alloc("PROD", (block, clusters), "fp32")[: len(tile)]
        mu[:] = hbm.load("MU", h)
        tile[:] = normed(hbm.load(x, (b, source, rows)))
        product[:] = machine.matmul(tile, mu.T)
        hbm.store(f"{x}_PROD", (b, h, rows), product)
        sram.free()


def assign(machine: Machine, x: str, b: int, h: int) -> None:
    """The w positions nearest to each centroid, in their order; an ideal pass for each cluster."""
    hbm, sram = machine.hbm, machine.sram
    _, _, clusters, w = hbm.arrays[f"{x}_IDX"].shape
    for cluster in range(clusters):
        index, product = sram.alloc("IDX", (w,), "int32"), sram.alloc("PROD", (1,))
        products = []
        for position in range(hbm.arrays[f"{x}_PROD"].shape[2]):
            product[:] = hbm.load(f"{x}_PROD", (b, h, position, slice(cluster, cluster + 1)))
            products.append(product[0])
        index[:] = np.sort(np.argsort(-np.array(products), kind="stable")[:w])
        hbm.store(f"{x}_IDX", (b, h, cluster), index)
        sram.free()


def within(
    machine: Machine, at: tuple[int, int, int], kv_head: int, *, causal: bool, block_q: int, block_kv: int
) -> None:
    """Attention of a cluster's queries to its keys, no tile of it skipped."""
    hbm, sram = machine.hbm, machine.sram
    b, h, _ = at
    w, d, d_v = hbm.arrays["Q_IDX"].shape[3], hbm.arrays["Q"].shape[3], hbm.arrays["V"].shape[3]
    k_name, k_head, k_index = ("Q", h, "Q_IDX") if causal else ("K", kv_head, "K_IDX")
    for rows in split(w, block_q):
        n = rows.stop - rows.start
        q_idx, k_idx = sram.alloc("Q_IDX", (block_q,), "int32")[:n], sram.alloc("K_IDX", (block_kv,), "int32")
        q, k_tile = sram.alloc("Q", (block_q, d))[:n], sram.alloc("K", (block_kv, d))
        v_tile = sram.alloc("V", (block_kv, d_v))
        streamed = Streamed(machine, n, d_v, block_q, block_kv)
        q_idx[:] = hbm.load("Q_IDX", (*at, rows))
        queries = q_idx.astype(int)
        q[:] = normed(hbm.load("Q", (b, h, queries)))
        for keys in split(w, block_kv):
            n_k = keys.stop - keys.start
            k_idx[:n_k] = hbm.load(k_index, (*at, keys))
            positions = k_idx[:n_k].astype(int)
            k_tile[:n_k] = normed(hbm.load(k_name, (b, k_head, positions)))
            v_tile[:n_k] = hbm.load("V", (b, kv_head, positions))
            later = positions[None, :] > queries[:, None] if causal else None
            streamed.add(streamed.scores(q, k_tile[:n_k], later), v_tile[:n_k])
        hbm.store("O", (b, h, queries), streamed.output())
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
    clusters: int = 32,
) -> Run:
    """Project, choose, fill the output with 0 for those whom no cluster takes, attend; a later cluster overwrites."""
    (batch, heads, n, _), kv_heads, causal = Q.shape, K.shape[1], right == 0
    if K.shape[2] != n or not (causal or right is None):
        raise ValueError("self-attention only, full or causal")
    group = heads // kv_heads
    machine = Machine(Q, None if causal else K, V, capacity, **weights(Q, K, V, clusters=clusters))
    hbm, routed = machine.hbm, "Q" if causal else "QK"
    for x in routed:
        hbm.alloc(f"{x}_PROD", (batch, heads, n, clusters))
        for b, h in np.ndindex(batch, heads):
            project(machine, x, b, h, h if x == "Q" else h // group, block_proj)
    for x in routed:
        hbm.alloc(f"{x}_IDX", (batch, heads, clusters, ceil(n, clusters)), width="int32")
        for b, h in np.ndindex(batch, heads):
            assign(machine, x, b, h)
        hbm.free(f"{x}_PROD")
    hbm.alloc("O", (batch, heads, n, V.shape[3]))
    for at in np.ndindex(batch, heads):
        hbm.store("O", at, 0.0)
    for at in np.ndindex(batch, heads, clusters):
        within(machine, at, at[1] // group, causal=causal, block_q=block_q, block_kv=block_kv)
    chosen = {f"{x}_IDX": hbm.arrays[f"{x}_IDX"] for x in routed}
    for name in chosen:
        hbm.free(name)
    return machine.result(O=hbm.arrays["O"], **chosen)


def naive(Q: FloatArray, K: FloatArray, V: FloatArray, *, right: int | None = None, clusters: int = 32) -> FloatArray:
    """Dense attention under one mask for each cluster, each row kept from the last cluster that has it."""

    def standardised(x: FloatArray) -> FloatArray:
        deviation: FloatArray = np.sqrt(x.var(axis=-1, keepdims=True) + EPSILON)
        output: FloatArray = (x - x.mean(axis=-1, keepdims=True)) / deviation
        return output

    def members(x: FloatArray, centroid: FloatArray) -> list[int]:
        scores = x @ centroid
        return sorted(range(n), key=lambda j: (-scores[j], j))[: ceil(n, clusters)]

    mu = weights(Q, K, V, clusters=clusters)["MU"]
    n, group = Q.shape[2], Q.shape[1] // K.shape[1]
    K, V = np.repeat(K, group, axis=1), np.repeat(V, group, axis=1)
    Q = standardised(Q)
    K = Q if right == 0 else standardised(K)
    output = np.zeros((*Q.shape[:3], V.shape[3]))
    for b, h in np.ndindex(Q.shape[:2]):
        for centroid in mu[h]:
            rows = members(Q[b, h], centroid)
            seen = np.zeros((n, n), dtype=np.bool_)
            seen[:, members(K[b, h], centroid)] = True
            if right == 0:
                seen = np.tril(seen)
            here = slice(b, b + 1), slice(h, h + 1)
            output[b, h, rows] = dense_attention(Q[here], K[here], V[here], seen)[0][0, 0, rows]
    return output
