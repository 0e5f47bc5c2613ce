"""Attention as two tiled products for a small on-chip memory: two kernels, with the scores S in HBM between them.

The first makes S tile by tile, a column of Q and of K at a time, and keeps of the softmax one number for each row,
the log-sum-exp; the second makes O tile by tile, a key at a time, and takes each weight from S and that number.
P is never in HBM. Both skip what nobody sees: the first its key tiles, the second single keys.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .extras import Extras
from .grid import Program, Visit, programs, split, visits
from .masks import BoolArray, finite, logsumexp
from .written import PLAIN, Statistics, Written, masks_of

Tiles = list[tuple[slice, list[Visit]]]


def scores(machine: Machine, program: Program, statistics: Statistics, tiles: Tiles, gemm_m: int, gemm_n: int) -> None:
    """S = Q K^T / sqrt(d) and its LSE for one head, a column of the depth at a time."""
    hbm, sram = machine.hbm, machine.sram
    d = hbm.arrays["Q"].shape[-1]
    for rows, visited in tiles:
        n = rows.stop - rows.start
        m = sram.alloc("m", (gemm_m,), "fp32")[:n]
        l = sram.alloc("l", (gemm_m,), "fp32")[:n]
        s_tile = sram.alloc("S", (gemm_m, gemm_n), "fp32")
        q = sram.alloc("Q", (gemm_m, 1), "io")[:n]
        k_tile = sram.alloc("K", (gemm_n, 1), "io")
        m[:], l[:] = -np.inf, 0.0
        for visit in visited:
            n_k = visit.keys.stop - visit.keys.start
            s, k = s_tile[:n, :n_k], k_tile[:n_k]
            s[:] = 0.0
            for t in range(d):
                column = slice(t, t + 1)
                q[:] = hbm.load("Q", (*program.rows(rows), column))
                k[:] = 0.0
                k[: visit.loaded.stop - visit.loaded.start] = hbm.load("K", (*program.keys(visit.loaded), column))
                s += machine.matmul(q, k.T)
            s /= np.sqrt(d)
            s[visit.hidden] = -np.inf
            # The new maximum and the factor are scalars of a row, and the exponentials are added up as they come:
            # the tile stays one of scores, which is stored.
            m_new = np.maximum(m, s.max(axis=1))
            base = finite(m_new)
            l[:] = machine.exp(m - base) * l + machine.exp(s - base[:, None]).sum(axis=1)
            m[:] = m_new
            hbm.store("S", (*program.rows(rows), visit.keys), s)
        statistics.store("LSE", program, rows, gemm_m, logsumexp(m, l))
        sram.free()


def weights(machine: Machine, s: FloatArray, lse: FloatArray, hidden: BoolArray) -> FloatArray:
    """exp(S - LSE), and 0 where hidden, whatever S is there; masked elements count, as on hardware."""
    return machine.exp(np.where(hidden, -np.inf, s) - finite(lse)[:, None])


def output(machine: Machine, program: Program, statistics: Statistics, tiles: Tiles, gemm_m: int, gemm_n: int) -> None:
    """O = exp(S - LSE) V for one head, by tiles of O; each visit is one key."""
    hbm, sram = machine.hbm, machine.sram
    values = "V" if "V" in hbm.arrays else "K"  # of a latent, the first columns
    for rows, visited in tiles:
        n = rows.stop - rows.start
        lse = sram.alloc("LSE", (gemm_m,), "fp32")[:n]
        o_tile = sram.alloc("O", (gemm_m, gemm_n), "fp32")
        s = sram.alloc("S", (gemm_m, 1), "io")[:n]
        v_tile = sram.alloc("V", (1, gemm_n), "io")
        lse[:] = statistics.load("LSE", program, rows, gemm_m)
        for columns in split(hbm.arrays["O"].shape[-1], gemm_n):
            n_v = columns.stop - columns.start
            o, v = o_tile[:n, :n_v], v_tile[:, :n_v]
            o[:] = 0.0
            for visit in visited:
                v[:] = hbm.load(values, (*program.keys(visit.keys), columns), counted="V")
                s[:] = hbm.load("S", (*program.rows(rows), visit.keys))
                s[:] = weights(machine, s, lse, visit.hidden)  # they overwrite the scores
                o += machine.matmul(s, v)
            hbm.store("O", (*program.rows(rows), columns), o)
        sram.free()


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
    gemm1_m: int,
    gemm1_n: int,
    gemm2_m: int,
    gemm2_n: int,
) -> Run:
    """Run the two kernels; each runs over all batches and heads before the next begins.

    S has room for every pair. What no tile of the first kernel holds is never written, and moved by the second only
    beside a pair that is seen.
    """
    latent = extras is not None and extras.latent
    if extras not in (None, Extras(latent=True)):
        raise ValueError("two_products computes plain attention, perhaps with V in K")
    machine = Machine(Q, K, None if latent else V, capacity)
    hbm, heads = machine.hbm, programs(Q, K, packed)
    statistics = Statistics(machine, Q, K, packed, written)
    hbm.alloc("S", (*Q.shape[:3], K.shape[2]))
    statistics.alloc("LSE", gemm1_m, gemm2_m)

    def seen_by(gemm_m: int, gemm_n: int) -> Tiles:
        mask, as_read = masks_of(
            Q, K, left=left, right=right, align=align, packed=packed, seen=seen, written=written, block_q=gemm_m
        )
        return visits(mask, gemm_m, gemm_n, as_read)

    for program in heads:
        scores(machine, program, statistics, seen_by(gemm1_m, gemm1_n), gemm1_m, gemm1_n)
    hbm.alloc("O", (*Q.shape[:3], V.shape[-1]))
    for program in heads:
        output(machine, program, statistics, seen_by(gemm2_m, 1), gemm2_m, gemm2_n)
    return machine.result(O=hbm.arrays["O"], LSE=statistics.value("LSE"))
