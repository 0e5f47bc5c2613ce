"""Standard attention, forward (Dao et al. 2022, arXiv:2205.14135, section 2.2, Algorithm 0).

Three kernels, one for each line of the algorithm; each runs over all batches and heads before the next
begins. S and P go through HBM whole, whatever the mask: it changes their values only.
"""

import numpy as np

from .grid import Program, programs, row_mask, split
from .machine import FloatArray, Machine, Run
from .masks import BoolArray, finite, reciprocal

ALL = slice(None)


def scores(machine: Machine, program: Program, gemm_m: int, gemm_n: int) -> None:
    """Line 1 for one head: S = Q K^T by output tiles, streaming the depth one column at a time."""
    hbm, sram = machine.hbm, machine.sram
    d, kv_len = hbm.arrays["Q"].shape[-1], hbm.arrays["K"].shape[2]
    for rows in split(program.length, gemm_m):
        for keys in split(kv_len, gemm_n):
            n, n_k = rows.stop - rows.start, keys.stop - keys.start
            s = sram.alloc("S", (gemm_m, gemm_n), "fp32")[:n, :n_k]
            q = sram.alloc("Q", (gemm_m, 1), "io")[:n]
            k = sram.alloc("K", (gemm_n, 1), "io")[:n_k]
            s[:] = 0.0
            for c in range(d):
                q[:] = hbm.load("Q", (*program.rows(rows), slice(c, c + 1)))
                k[:] = hbm.load("K", (*program.keys(keys), slice(c, c + 1)))
                s += machine.matmul(q, k.T)
            hbm.store("S", (*program.rows(rows), keys), s / np.sqrt(d))
            sram.free()


def scores_ideal(machine: Machine, program: Program) -> None:
    """Line 1 for one head with everything on chip: each operand is moved once."""
    hbm, sram = machine.hbm, machine.sram
    d, kv_len = hbm.arrays["Q"].shape[-1], hbm.arrays["K"].shape[2]
    rows = program.length
    q = sram.alloc("Q", (rows, d), "io")
    k = sram.alloc("K", (kv_len, d), "io")
    s = sram.alloc("S", (rows, kv_len), "fp32")
    q[:] = hbm.load("Q", program.rows(ALL))
    k[:] = hbm.load("K", program.keys(ALL))
    s[:] = machine.matmul(q, k.T)
    hbm.store("S", program.rows(ALL), s / np.sqrt(d))
    sram.free()


def softmax(machine: Machine, program: Program, seen: BoolArray, block: int) -> None:
    """Line 2 for one head: P = softmax(S), a block of whole rows at a time, in place."""
    hbm, sram = machine.hbm, machine.sram
    for rows in split(program.length, block):
        s = sram.alloc("S", (block, seen.shape[1]), "fp32")[: rows.stop - rows.start]
        s[:] = hbm.load("S", program.rows(rows))
        s[~seen[rows]] = -np.inf
        s[:] = machine.exp(s - finite(s.max(axis=1))[:, None])
        s *= reciprocal(s.sum(axis=1))[:, None]
        hbm.store("P", program.rows(rows), s)
        sram.free()


def output(machine: Machine, program: Program, gemm_m: int, gemm_n: int) -> None:
    """Line 3 for one head: O = P V by output tiles, streaming the keys one at a time."""
    hbm, sram = machine.hbm, machine.sram
    _, _, kv_len, d_v = hbm.arrays["V"].shape
    for rows in split(program.length, gemm_m):
        for columns in split(d_v, gemm_n):
            n, n_v = rows.stop - rows.start, columns.stop - columns.start
            o = sram.alloc("O", (gemm_m, gemm_n), "fp32")[:n, :n_v]
            p = sram.alloc("P", (gemm_m, 1), "io")[:n]
            v = sram.alloc("V", (1, gemm_n), "io")[:, :n_v]
            o[:] = 0.0
            for j in range(kv_len):
                key = slice(j, j + 1)
                p[:] = hbm.load("P", (*program.rows(rows), key))
                v[:] = hbm.load("V", (*program.keys(key), columns))
                o += machine.matmul(p, v)
            hbm.store("O", (*program.rows(rows), columns), o)
            sram.free()


def output_ideal(machine: Machine, program: Program) -> None:
    """Line 3 for one head with everything on chip: each operand is moved once."""
    hbm, sram = machine.hbm, machine.sram
    _, _, kv_len, d_v = hbm.arrays["V"].shape
    rows = program.length
    p = sram.alloc("P", (rows, kv_len), "io")
    v = sram.alloc("V", (kv_len, d_v), "io")
    o = sram.alloc("O", (rows, d_v), "fp32")
    p[:] = hbm.load("P", program.rows(ALL))
    v[:] = hbm.load("V", program.keys(ALL))
    o[:] = machine.matmul(p, v)
    hbm.store("O", program.rows(ALL), o)
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
    gemm1_m: int | None = None,
    gemm1_n: int | None = None,
    gemm2_m: int | None = None,
    gemm2_n: int | None = None,
) -> Run:
    """Run Algorithm 0, with all four tiles of its two products or, without any, in its ideal form."""
    machine = Machine(Q, K, V, capacity)
    hbm = machine.hbm
    heads = programs(Q, K, packed)
    seen = row_mask(Q, K, left=left, right=right, align=align, packed=packed)
    tiled = None not in (gemm1_m, gemm1_n, gemm2_m, gemm2_n)
    if not tiled and (gemm1_m or gemm1_n or gemm2_m or gemm2_n):
        raise ValueError("give all four tiles, or none")
    hbm.alloc("S", (*Q.shape[:3], K.shape[2]))
    for program in heads:
        if gemm1_m and gemm1_n:
            scores(machine, program, gemm1_m, gemm1_n)
        else:
            scores_ideal(machine, program)
    hbm.alloc("P", (*Q.shape[:3], K.shape[2]))
    for program in heads:
        softmax(machine, program, seen, 1 if tiled else program.length)
    hbm.free("S")
    hbm.alloc("O", (*Q.shape[:3], V.shape[-1]))
    for program in heads:
        if gemm2_m and gemm2_n:
            output(machine, program, gemm2_m, gemm2_n)
        else:
            output_ideal(machine, program)
    return machine.result(O=hbm.arrays["O"])
