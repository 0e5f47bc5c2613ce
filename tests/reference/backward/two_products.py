"""The backward pass of two tiled products, for a small on-chip memory: five products and two passes over elements.

Each product is a kernel that keeps a tile of its result on chip while columns or rows of its operands stream. D and
the step from dP to dS hold single elements. P, dP and dS lie in HBM between the kernels; all skip what nobody sees:
tiles of P and dP, single queries of dV and dK, single keys of dQ, single pairs of dS.
"""

from collections.abc import Mapping

import numpy as np

from iomodel.testing.machine import FloatArray, Run

from ..extras import NONE, Extras
from ..grid import Program, split
from ..masks import BoolArray, finite
from ..written import PLAIN, Written
from .gradients import KeyGradients
from .tiles import Call, prepare

Tile = tuple[int, int]


def statistics(call: Call) -> None:
    """D = rowsum(dO o O), one element of each at a time."""
    hbm, sram = call.machine.hbm, call.machine.sram
    call.statistics.alloc("D", 1)
    for program in call.programs:
        o, do = sram.alloc("O", (1, 1), "io"), sram.alloc("dO", (1, 1), "io")
        d = sram.alloc("D", (1,), "fp32")
        for row in split(program.length, 1):
            d[:] = 0.0
            for u in range(hbm.arrays["O"].shape[-1]):
                at = (*program.rows(row), slice(u, u + 1))
                o[:], do[:] = hbm.load("O", at), hbm.load("dO", at)
                d += o[0, 0] * do[0, 0]
            call.statistics.store("D", program, row, 1, d)
        sram.free()


def pairs(call: Call, program: Program, tile: Tile, operands: tuple[str, str], result: str) -> None:
    """P = exp(Q K^T / sqrt(d) - LSE), or dP = dO V^T, by tiles with a visible pair, a column at a time."""
    hbm, sram, (tile_m, tile_n) = call.machine.hbm, call.machine.sram, tile
    of_rows, of_keys = operands
    depth = hbm.arrays[of_rows].shape[-1]
    lse_tile = sram.alloc("LSE", (tile_m,), "fp32") if result == "P" else None
    whole = sram.alloc(result, (tile_m, tile_n), "fp32")
    a_tile, b_tile = sram.alloc(of_rows, (tile_m, 1), "io"), sram.alloc(of_keys, (tile_n, 1), "io")
    for rows, visited in call.by_queries(tile_m, tile_n):
        n = rows.stop - rows.start
        if lse_tile is not None:
            lse_tile[:n] = call.statistics.load("LSE", program, rows, tile_m)
        for visit in visited:
            n_k = visit.keys.stop - visit.keys.start
            held, a, b = whole[:n, :n_k], a_tile[:n], b_tile[:n_k]
            held[:], b[:] = 0.0, 0.0
            for t in range(depth):
                a[:] = hbm.load(of_rows, (*program.rows(rows), slice(t, t + 1)))
                loaded = visit.loaded.stop - visit.loaded.start
                b[:loaded] = hbm.load(of_keys, (*program.keys(visit.loaded), slice(t, t + 1)))
                held += call.machine.matmul(a, b.T)
            if lse_tile is not None:
                held /= np.sqrt(depth)
                held[visit.hidden] = -np.inf
                held[:] = call.machine.exp(held - finite(lse_tile[:n])[:, None])
            hbm.store(result, (*program.rows(rows), visit.keys), held)
    sram.free()


def scores_gradient(call: Call, program: Program) -> None:
    """dS = P o (dP - D) / sqrt(d), one visible pair at a time."""
    hbm, sram = call.machine.hbm, call.machine.sram
    d = sram.alloc("D", (1,), "fp32")
    p, dp = sram.alloc("P", (1, 1), "io"), sram.alloc("dP", (1, 1), "fp32")
    for row, visited in call.by_queries(1, 1):
        d[:] = call.statistics.load("D", program, row, 1)
        for visit in visited:
            at = (*program.rows(row), visit.keys)
            p[:], dp[:] = hbm.load("P", at), hbm.load("dP", at)
            dp -= d[:, None]
            dp *= p / np.sqrt(hbm.arrays["Q"].shape[-1])
            hbm.store("dS", at, dp)
    sram.free()


def of_keys(
    call: Call, program: Program, gradients: KeyGradients, tile: Tile, operands: tuple[str, str], result: str
) -> None:
    """dV = P^T dO or dK = dS^T Q by tiles of the result; of each query that sees the tile a row streams."""
    hbm, sram, (tile_m, tile_n) = call.machine.hbm, call.machine.sram, tile
    weights, rows_of = operands
    whole = sram.alloc(result, (tile_m, tile_n), "fp32")
    w_tile, r_tile = sram.alloc(weights, (1, tile_m), "io"), sram.alloc(rows_of, (1, tile_n), "io")
    for keys, visited in call.by_keys(1, tile_m):
        n_k = keys.stop - keys.start
        for columns in split(hbm.arrays[rows_of].shape[-1], tile_n):
            n = columns.stop - columns.start
            held, w, r = whole[:n_k, :n], w_tile[:, :n_k], r_tile[:, :n]
            held[:] = 0.0
            for visit in visited:
                w[:] = hbm.load(weights, (*program.rows(visit.rows), keys))
                w[visit.hidden] = 0.0
                r[:] = hbm.load(rows_of, (*program.rows(visit.rows), columns))
                held += call.machine.matmul(w.T, r)
            gradients.put(result, program, keys, held, columns)
    sram.free()


def of_queries(call: Call, program: Program, tile: Tile) -> None:
    """dQ = dS K by tiles of the result; of each key that the tile sees a row streams."""
    hbm, sram, (tile_m, tile_n) = call.machine.hbm, call.machine.sram, tile
    whole = sram.alloc("dQ", (tile_m, tile_n), "fp32")
    w_tile, k_tile = sram.alloc("dS", (tile_m, 1), "io"), sram.alloc("K", (1, tile_n), "io")
    for rows, visited in call.by_queries(tile_m, 1):
        n_q = rows.stop - rows.start
        for columns in split(hbm.arrays["K"].shape[-1], tile_n):
            n = columns.stop - columns.start
            held, w, k = whole[:n_q, :n], w_tile[:n_q], k_tile[:, :n]
            held[:] = 0.0
            for visit in visited:
                w[:] = hbm.load("dS", (*program.rows(rows), visit.keys))
                w[visit.hidden] = 0.0
                k[:] = hbm.load("K", (*program.keys(visit.keys), columns))
                held += call.machine.matmul(w, k)
            hbm.store("dQ", (*program.rows(rows), columns), held)
    sram.free()


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    dO: FloatArray,
    saved: Mapping[str, FloatArray],
    *,
    left: int | None = None,
    right: int | None = None,
    align: str = "bottom-right",
    seen: BoolArray | None = None,
    packed: bool = False,
    capacity: int | None = None,
    extras: Extras = NONE,
    written: Written = PLAIN,
    gemm3_m: int,
    gemm3_n: int,
    gemm4_m: int,
    gemm4_n: int,
    gemm5_m: int,
    gemm5_n: int,
    gemm6_m: int,
    gemm6_n: int,
) -> Run:
    """Run the kernels one after the other on O and LSE, each over all batches and heads."""
    if extras != NONE:
        raise ValueError("the backward pass of two_products computes plain attention")
    call = prepare(
        (Q, K, V, dO), saved, ("O", "LSE"),
        left=left, right=right, align=align, seen=seen, packed=packed, capacity=capacity, extras=extras,
        written=written, rows=(gemm4_m,),
    )  # fmt: skip
    hbm, shape = call.machine.hbm, (*Q.shape[:3], K.shape[2])
    gradients = KeyGradients(call.machine, Q, packed)
    hbm.alloc("P", shape)
    for program in call.programs:
        pairs(call, program, (gemm4_m, gemm4_n), ("Q", "K"), "P")
    gradients.alloc("dV")
    for program in call.programs:
        of_keys(call, program, gradients, (gemm3_m, gemm3_n), ("P", "dO"), "dV")
    statistics(call)
    hbm.alloc("dP", shape)
    for program in call.programs:
        pairs(call, program, (gemm4_m, gemm4_n), ("dO", "V"), "dP")
    hbm.alloc("dS", shape)
    for program in call.programs:
        scores_gradient(call, program)
    for name in ("D", "P", "dP"):
        hbm.free(name)
    hbm.alloc("dQ", Q.shape)
    for program in call.programs:
        of_queries(call, program, (gemm5_m, gemm5_n))
    gradients.alloc("dK")
    for program in call.programs:
        of_keys(call, program, gradients, (gemm6_m, gemm6_n), ("dS", "Q"), "dK")
    hbm.free("dS")
    gradients.finish()
    return call.machine.result(dQ=hbm.arrays["dQ"], dK=hbm.arrays["dK"], dV=hbm.arrays["dV"])
