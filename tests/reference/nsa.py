"""Native Sparse Attention: compressed, selected and local keys (Yuan et al. 2025, arXiv:2502.11089, section 3).

The heads of a group share what is selected. The compression phi is linear in the keys of a block here, one matrix for
each offset, and the gates are given.
"""

from typing import Any

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import IntArray, visits
from .masks import dense_attention, finite, reciprocal, visible
from .nsa_kernels import Blocks, attend_compressed, attend_selected, compress, gate, importance, select
from .streaming import attend

BRANCHES = ["O_cmp", "O_slc", "O_win"]


def weights(Q: FloatArray, K: FloatArray, V: FloatArray, *, compress_block: int = 32) -> dict[str, FloatArray]:
    """W_K [a, d, d] and W_V [a, d_v, d_v], a map for each offset in a block; GATE [B, H, N, 3] between 0 and 1."""
    rng = np.random.default_rng(4)
    maps = {
        name: rng.standard_normal((compress_block, width, width)) / np.sqrt(compress_block * width)
        for name, width in (("W_K", K.shape[3]), ("W_V", V.shape[3]))
    }
    return maps | {"GATE": rng.random((*Q.shape[:3], len(BRANCHES)))}


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    capacity: int | None = None,
    block_proj: int,
    block_sum: int,
    block_q: int,
    block_kv: int,
    compress_block: int = 32,
    compress_stride: int = 16,
    select_block: int = 64,
    selected: int = 16,
    local: int = 512,
    future_blocks: bool = False,
) -> Run:
    """Compress, attend to the summaries, weigh and select blocks, attend to them and to the last keys, add up."""
    (batch, heads, n, _), kv_heads, d_v = Q.shape, K.shape[1], V.shape[3]
    if right != 0 or K.shape[2] != n:
        raise ValueError("causal self-attention only")
    blocks = Blocks(n, compress_block, compress_stride, select_block, selected)
    if compress_block % compress_stride or select_block % compress_stride or n % select_block or n < compress_block:
        raise ValueError("blocks of whole strides, and a sequence of whole blocks no shorter than a compressed one")
    machine = Machine(Q, K, V, capacity, **weights(Q, K, V, compress_block=compress_block))
    hbm, group = machine.hbm, heads // kv_heads
    everywhere = list(np.ndindex(batch, kv_heads))
    hbm.alloc("K_cmp", (batch, kv_heads, blocks.compressed, K.shape[3]))
    hbm.alloc("V_cmp", (batch, kv_heads, blocks.compressed, d_v))
    for at in everywhere:
        compress(machine, blocks, at, block_proj)
    hbm.alloc("O_cmp", (batch, heads, n, d_v))
    hbm.alloc("LSE", (batch, heads, n), width="fp32")
    for at in everywhere:
        attend_compressed(machine, blocks, at, block_sum)
    hbm.free("V_cmp")
    hbm.alloc("P_slc", (batch, kv_heads, n, blocks.selectable))
    for at in everywhere:
        importance(machine, blocks, at, block_sum)
    hbm.free("K_cmp")
    hbm.free("LSE")
    hbm.alloc("I", (batch, kv_heads, n, selected), width="int32")
    for position in np.ndindex(batch, kv_heads, n):
        select(machine, blocks, position, future_blocks)
    scores = hbm.arrays["P_slc"]
    hbm.free("P_slc")
    hbm.alloc("O_slc", (batch, heads, n, d_v))
    for position in np.ndindex(batch, kv_heads, n):
        attend_selected(machine, blocks, position)
    hbm.free("I")
    hbm.alloc("O_win", (batch, heads, n, d_v))
    window = visits(visible(n, n, local - 1, 0, "bottom-right"), block_q, block_kv)
    tiles = [(rows, [(visit.keys, visit.hidden) for visit in visited]) for rows, visited in window]
    for b, h in np.ndindex(batch, heads):
        attend(machine, tiles, (b, h), (b, h // group), block_q=block_q, block_kv=block_kv, o="O_win")
    hbm.alloc("O", (batch, heads, n, d_v))
    for position in np.ndindex(batch, heads, n):
        gate(machine, BRANCHES, position)
    branches = {name: hbm.arrays[name] for name in BRANCHES}
    for name in BRANCHES:
        hbm.free(name)
    return machine.result(O=hbm.arrays["O"], P_slc=scores, **branches)


def choose(P: FloatArray, own: int, selected: int) -> list[int]:
    """The blocks of one position: its own, the first, the one before, then by importance, as far as there is room."""
    rest = sorted(set(range(own + 1)) - {0, own - 1, own}, key=lambda block: (-P[block], block))
    forced = list(dict.fromkeys(block for block in (own, 0, own - 1) if block >= 0))
    return [*forced, *rest][:selected]


def shared_probability(
    Q: FloatArray, K_cmp: FloatArray, covered: IntArray, stride: int, select_block: int
) -> FloatArray:
    """What each block to select gets of the compressed ones, in proportion to the positions it shares with them."""
    (batch, heads, n, d), kv_heads = Q.shape, K_cmp.shape[1]
    ended = covered[:, -1] <= np.arange(n)[:, None]
    keys = np.repeat(K_cmp, heads // kv_heads, axis=1)
    S = np.where(ended, Q @ keys.swapaxes(-1, -2) / np.sqrt(d), -np.inf)
    P = np.exp(S - finite(S.max(axis=-1))[..., None])
    P *= reciprocal(P.sum(axis=-1))[..., None]
    of_group = P.reshape(batch, kv_heads, heads // kv_heads, n, -1).sum(axis=2)
    importance = np.zeros((batch, kv_heads, n, n // select_block))
    for j, block in np.ndindex(len(covered), n // select_block):  # in this order: equal sums then have equal bits
        shared = np.count_nonzero(covered[j] // select_block == block)
        importance[..., block] += shared / stride * of_group[..., j]
    return importance


def naive(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = 0,
    compress_block: int = 32,
    compress_stride: int = 16,
    select_block: int = 64,
    selected: int = 16,
    local: int = 512,
) -> FloatArray:
    """Three dense attentions, each under its own mask, added up by the gates."""
    assert right == 0
    given: dict[str, Any] = weights(Q, K, V, compress_block=compress_block)
    n, group = Q.shape[2], Q.shape[1] // K.shape[1]
    covered = np.arange(0, n - compress_block + 1, compress_stride)[:, None] + np.arange(compress_block)
    K_cmp = np.einsum("bhjrd,rde->bhje", K[:, :, covered], given["W_K"])
    V_cmp = np.einsum("bhjrd,rde->bhje", V[:, :, covered], given["W_V"])
    ended = covered[:, -1] <= np.arange(n)[:, None]
    importance = shared_probability(Q, K_cmp, covered, compress_stride, select_block)
    seen = np.zeros((*Q.shape[:3], n), dtype=np.bool_)
    for b, h, i in np.ndindex(Q.shape[:3]):
        for block in choose(importance[b, h // group, i], i // select_block, selected):
            seen[b, h, i, block * select_block : (block + 1) * select_block] = True
    causal = np.tri(n, dtype=np.bool_)
    branches = [
        dense_attention(Q, K_cmp, V_cmp, ended)[0],
        dense_attention(Q, K, V, seen & causal)[0],
        dense_attention(Q, K, V, causal & ~np.tri(n, k=-local, dtype=np.bool_))[0],
    ]
    output: FloatArray = np.einsum("bhnc,cbhnd->bhnd", given["GATE"], np.stack(branches))
    return output
