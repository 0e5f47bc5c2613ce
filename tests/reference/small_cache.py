"""Attention in a cache smaller than d^2 (Saha and Ye 2024, arXiv:2402.07443, the schedule for small caches).

A tile of S stays on chip, and columns of Q, K, V and O stream past it: the tile can then be larger than one
that keeps its rows of Q, K, V and O whole. The softmax is the online one of FlashAttention.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .extras import Extras
from .grid import Program, Visit, programs, visits
from .masks import BoolArray, finite, reciprocal
from .written import PLAIN, Written, masks_of


def scores(machine: Machine, program: Program, visit: Visit, s: FloatArray, blocks: tuple[int, int]) -> None:
    """S = Q K^T of one tile, as the sum of one outer product for each column of the depth."""
    hbm, sram = machine.hbm, machine.sram
    d = hbm.arrays["Q"].shape[-1]
    q = sram.alloc("Q", (blocks[0], 1), "io")[: s.shape[0]]
    k = sram.alloc("K", (blocks[1], 1), "io")[: s.shape[1]]
    s[:] = 0.0
    for c in range(d):
        column = slice(c, c + 1)
        q[:] = hbm.load("Q", (*program.rows(visit.rows), column))
        k[:] = 0.0
        k[: visit.loaded.stop - visit.loaded.start] = hbm.load("K", (*program.keys(visit.loaded), column))
        s += machine.matmul(q, k.T)
    s /= np.sqrt(d)
    s[visit.hidden] = -np.inf
    sram.free("Q", "K")


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    left: int | None = None,
    right: int | None = None,
    align: str = "bottom-right",
    packed: bool = False,
    capacity: int | None = None,
    seen: BoolArray | None = None,
    extras: Extras | None = None,
    written: Written = PLAIN,
    block_q: int,
    block_kv: int,
) -> Run:
    """Query tiles outside, key tiles inside; the unfinished O goes to HBM and back at every key tile."""
    if extras is not None:
        raise ValueError("small_cache computes plain attention")
    d_v = V.shape[-1]
    machine = Machine(Q, K, V, capacity)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("O", (*Q.shape[:3], d_v))
    columns = [slice(c, c + 1) for c in range(d_v)]
    mask, as_read = masks_of(
        Q, K, left=left, right=right, align=align, packed=packed, seen=seen, written=written, block_q=block_q
    )
    tiles = visits(mask, block_q, block_kv, as_read)

    for program in programs(Q, K, packed):
        for rows, visited in tiles:
            n = rows.stop - rows.start
            l = sram.alloc("l", (block_q,), "fp32")[:n]
            m = sram.alloc("m", (block_q,), "fp32")[:n]
            factor = sram.alloc("factor", (block_q,), "fp32")[:n]
            s_tile = sram.alloc("S", (block_q, block_kv), "fp32")
            at = program.rows(rows)
            l[:], m[:] = 0.0, -np.inf
            for visit in visited:
                s = s_tile[:n, : visit.keys.stop - visit.keys.start]
                scores(machine, program, visit, s, (block_q, block_kv))
                m_new = np.maximum(m, s.max(axis=1))
                base = finite(m_new)
                factor[:] = machine.exp(m - base)
                s[:] = machine.exp(s - base[:, None])  # P overwrites S
                l[:] = factor * l + s.sum(axis=1)
                m[:] = m_new
                v = sram.alloc("V", (block_kv, 1), "io")[: s.shape[1]]
                o = sram.alloc("O", (block_q, 1), "fp32")[:n]
                for column in columns:
                    v[:] = 0.0
                    v[: visit.loaded.stop - visit.loaded.start] = hbm.load("V", (*program.keys(visit.loaded), column))
                    o[:] = 0.0 if visit is visited[0] else hbm.load("O", (*at, column))
                    o[:] = factor[:, None] * o + machine.matmul(s, v)
                    if visit is visited[-1]:
                        o *= reciprocal(l)[:, None]
                    hbm.store("O", (*at, column), o)
                sram.free("V", "O")
            if not visited:
                sram.alloc("V", (block_kv, 1), "io")  # reserved, whether anything is seen or not
                sram.alloc("O", (block_q, 1), "fp32")
                for column in columns:
                    hbm.store("O", (*at, column), 0.0)
            sram.free()
    return machine.result(O=hbm.arrays["O"])
