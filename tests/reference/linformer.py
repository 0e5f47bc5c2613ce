"""Linformer (Wang et al. 2020, arXiv:2006.04768, section 4, eq. 7): softmax(Q (E K)^T / sqrt(d)) F V.

E and F are shared by all heads ("headwise sharing", section 4); with `shared`, F is E ("key-value sharing").
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import split
from .streaming import attend

Inputs = dict[str, FloatArray]


def weights(Q: FloatArray, K: FloatArray, V: FloatArray, *, projected: int = 256, shared: bool = False) -> Inputs:
    """E and, unless shared, F: [projected, kv_len], Gaussian of variance 1 / projected as in the paper's proof."""
    draw = np.random.default_rng(1).standard_normal
    names = ["E"] if shared else ["E", "F"]
    return {name: draw((projected, K.shape[2])) / np.sqrt(projected) for name in names}


def project(machine: Machine, kv_head: tuple[int, int], block_proj: int, block_sum: int) -> None:
    """K_proj = E K and V_proj = F V of one key head, a tile of projected rows at a time."""
    hbm, sram = machine.hbm, machine.sram
    projected, kv_len = hbm.arrays["E"].shape
    d, d_v = hbm.arrays["K"].shape[-1], hbm.arrays["V"].shape[-1]
    for rows in split(projected, block_proj):
        n = rows.stop - rows.start
        k_proj = sram.alloc("K_proj", (block_proj, d), "fp32")[:n]
        v_proj = sram.alloc("V_proj", (block_proj, d_v), "fp32")[:n]
        buffers = {name: sram.alloc(name, (block_proj, block_sum)) for name in ("E", "F") if name in hbm.arrays}
        k_tile, v_tile = sram.alloc("K", (block_sum, d)), sram.alloc("V", (block_sum, d_v))
        k_proj[:], v_proj[:] = 0.0, 0.0
        for keys in split(kv_len, block_sum):
            n_k = keys.stop - keys.start
            for name, buffer in buffers.items():
                buffer[:n, :n_k] = hbm.load(name, (rows, keys))
            k_tile[:n_k] = hbm.load("K", (*kv_head, keys))
            v_tile[:n_k] = hbm.load("V", (*kv_head, keys))
            k_proj += machine.matmul(buffers["E"][:n, :n_k], k_tile[:n_k])
            v_proj += machine.matmul(buffers.get("F", buffers["E"])[:n, :n_k], v_tile[:n_k])
        hbm.store("K_proj", (*kv_head, rows), k_proj)
        hbm.store("V_proj", (*kv_head, rows), v_proj)
        sram.free()


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    capacity: int | None = None,
    block_q: int,
    block_kv: int,
    block_proj: int,
    block_sum: int,
    projected: int = 256,
    shared: bool = False,
    inputs: Inputs | None = None,
) -> Run:
    """Project the keys and values along the sequence, then FlashAttention-2 over what came of it."""
    if right is not None:
        raise ValueError("a projected key mixes all positions: no mask")
    given = inputs or weights(Q, K, V, projected=projected, shared=shared)
    machine = Machine(Q, K, V, capacity, **{name: given[name] for name in (["E"] if shared else ["E", "F"])})
    hbm = machine.hbm
    batch, heads, q_len, d = Q.shape
    kv_heads, d_v = V.shape[1], V.shape[-1]
    projected = hbm.arrays["E"].shape[0]
    hbm.alloc("K_proj", (batch, kv_heads, projected, d))
    hbm.alloc("V_proj", (batch, kv_heads, projected, d_v))
    for b, g in np.ndindex(batch, kv_heads):
        project(machine, (b, g), block_proj, block_sum)
    hbm.alloc("O", (batch, heads, q_len, d_v))
    tiles = [(rows, [(keys, None) for keys in split(projected, block_kv)]) for rows in split(q_len, block_q)]
    for b, h in np.ndindex(batch, heads):
        kv_head = b, h // (heads // kv_heads)
        attend(machine, tiles, (b, h), kv_head, block_q=block_q, block_kv=block_kv, k="K_proj", v="V_proj")
    hbm.free("K_proj")
    hbm.free("V_proj")
    return machine.result(O=hbm.arrays["O"])


def naive(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    projected: int = 256,
    shared: bool = False,
    inputs: Inputs | None = None,
) -> FloatArray:
    """Eq. 7 as it stands."""
    given = inputs or weights(Q, K, V, projected=projected, shared=shared)
    E, F = given["E"], given["E" if shared else "F"]
    group = Q.shape[1] // K.shape[1]
    keys = np.repeat(np.einsum("pn,bgnd->bgpd", E, K), group, axis=1)
    values = np.repeat(np.einsum("pn,bgnd->bgpd", F, V), group, axis=1)
    scores = np.einsum("bhqd,bhpd->bhqp", Q, keys) / np.sqrt(Q.shape[-1])
    P = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: FloatArray = np.einsum("bhqp,bhpd->bhqd", P / P.sum(axis=-1, keepdims=True), values)
    return result
