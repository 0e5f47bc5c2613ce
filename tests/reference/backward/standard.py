"""Standard attention, backward (Dao et al. 2022, arXiv:2205.14135, appendix B, Algorithm 3).

Five kernels, one for each line of the algorithm; each runs over all batches and heads before the next
begins. P, dP and dS go through HBM whole, whatever the mask: it shows in the values of P only. Where
dropout was a kernel of its own in the forward pass, its gradient is one here.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from iomodel.testing.machine import FloatArray, Run

from ..extras import NONE, Extras, kept
from ..grid import Program, split
from ..masks import BoolArray
from ..passes import dropout_gradient
from .gradients import KeyGradients
from .product import Tile, product
from .tiles import Call, prepare


class Kernels:
    """The five kernels, each for the rows of one program."""

    def __init__(self, call: Call, gradients: KeyGradients, dropout_pass: bool) -> None:
        self.weights, self.weights_gradient = ("P_drop", "dP_drop") if dropout_pass else ("P", "dP")
        self.call, self.gradients = call, gradients
        self.machine, self.hbm = call.machine, call.machine.hbm
        self.kv_len, self.d = self.hbm.arrays["K"].shape[2:]
        self.d_v = self.hbm.arrays["V"].shape[-1]
        self.random = "R" in self.hbm.arrays

    def rows(self, name: str, program: Program, rows: slice, columns: slice) -> FloatArray:
        """Load a part of a tensor that has a row for each query."""
        return self.hbm.load(name, (*program.rows(rows), columns))

    def keys(self, name: str, program: Program, keys: slice, columns: slice) -> FloatArray:
        """Load a part of K or V."""
        return self.hbm.load(name, (*program.keys(keys), columns))

    def kept(self, program: Program, rows: slice, keys: slice) -> FloatArray:
        """What dropout keeps of a part of P, and with which factor."""
        return kept(self.machine, self.call.extras, program, rows, keys)

    def line_1(self, program: Program, tile: Tile | None) -> None:
        """dV = P^T dO, P after dropout, which is drawn anew for each tile of columns."""
        product(
            self.machine, (self.kv_len, self.d_v, program.length), tile,
            load_a=lambda keys, rows: (self.rows(self.weights, program, rows, keys) * self.kept(program, rows, keys)).T,
            load_b=lambda rows, columns: self.rows("dO", program, rows, columns),
            store=lambda keys, columns, dv: self.gradients.put("dV", program, keys, dv, columns),
            random=self.random,
        )  # fmt: skip

    def line_2(self, program: Program, tile: Tile | None) -> None:
        """dP = dO V^T, after dropout again."""
        product(
            self.machine, (program.length, self.kv_len, self.d_v), tile,
            load_a=lambda rows, columns: self.rows("dO", program, rows, columns),
            load_b=lambda columns, keys: self.keys("V", program, keys, columns).T,
            store=lambda rows, keys, dp: self.hbm.store(
                self.weights_gradient, (*program.rows(rows), keys), dp * self.kept(program, rows, keys)
            ),
            random=self.random,
        )  # fmt: skip

    def line_3(self, program: Program, block: int) -> None:
        """dS = P o (dP - rowsum(P o dP)), a block of whole rows at a time, in place of dP."""
        sram, hbm = self.machine.sram, self.hbm
        for rows in split(program.length, block):
            p = sram.alloc("P", (block, self.kv_len), "io")[: rows.stop - rows.start]
            dp = sram.alloc("dP", (block, self.kv_len), "fp32")[: rows.stop - rows.start]
            p[:], dp[:] = hbm.load("P", program.rows(rows)), hbm.load("dP", program.rows(rows))
            dp -= (p * dp).sum(axis=1)[:, None]  # row by row: the sum is a scalar
            dp *= p / np.sqrt(self.d)
            hbm.store("dS", program.rows(rows), dp)
            sram.free()

    def line_4(self, program: Program, tile: Tile | None) -> None:
        """dQ = dS K."""
        product(
            self.machine, (program.length, self.d, self.kv_len), tile,
            load_a=lambda rows, keys: self.rows("dS", program, rows, keys),
            load_b=lambda keys, columns: self.keys("K", program, keys, columns),
            store=lambda rows, columns, dq: self.hbm.store("dQ", (*program.rows(rows), columns), dq),
        )  # fmt: skip

    def line_5(self, program: Program, tile: Tile | None) -> None:
        """dK = dS^T Q."""
        product(
            self.machine, (self.kv_len, self.d, program.length), tile,
            load_a=lambda keys, rows: self.rows("dS", program, rows, keys).T,
            load_b=lambda rows, columns: self.rows("Q", program, rows, columns),
            store=lambda keys, columns, dk: self.gradients.put("dK", program, keys, dk, columns),
        )  # fmt: skip


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
    dropout_pass: bool = False,
    gemm3_m: int | None = None,
    gemm3_n: int | None = None,
    gemm4_m: int | None = None,
    gemm4_n: int | None = None,
    gemm5_m: int | None = None,
    gemm5_n: int | None = None,
    gemm6_m: int | None = None,
    gemm6_n: int | None = None,
) -> Run:
    """Run Algorithm 3 on P, with all eight tiles of its four products or, without any, in its ideal form.

    With `dropout_pass`, also on the dropped P and the mask that the forward pass left; without dropout at rate 0.
    """
    rate = extras.dropout or 0.0
    if dropout_pass:
        extras = replace(extras, dropout=None)
    if extras.softcap is not None:
        raise ValueError("standard attention keeps no scores to take the derivative of the softcap at")
    call = prepare(
        (Q, K, V, dO), saved, ("P", "P_drop", "dropout_mask") if dropout_pass else ("P",),
        left=left, right=right, align=align, seen=seen, packed=packed, capacity=capacity, extras=extras,
    )  # fmt: skip
    pairs = [(gemm3_m, gemm3_n), (gemm4_m, gemm4_n), (gemm5_m, gemm5_n), (gemm6_m, gemm6_n)]
    tiles = [(m, n) for m, n in pairs if m is not None and n is not None]
    if len(tiles) < len(pairs) and any(side is not None for pair in pairs for side in pair):
        raise ValueError("give all eight tiles, or none")
    tile_1, tile_2, tile_4, tile_5 = tiles or (None, None, None, None)
    hbm = call.machine.hbm
    gradients = KeyGradients(call.machine, Q, packed)
    kernels = Kernels(call, gradients, dropout_pass)
    block = 1 if tiles else call.programs[0].length
    gradients.alloc("dV")
    for program in call.programs:
        kernels.line_1(program, tile_1)
    hbm.alloc(kernels.weights_gradient, (*Q.shape[:3], K.shape[2]))
    for program in call.programs:
        kernels.line_2(program, tile_2)
    if dropout_pass:
        hbm.alloc("dP", (*Q.shape[:3], K.shape[2]))
        for program in call.programs:
            dropout_gradient(call.machine, rate, program, block)
        hbm.free("dP_drop")
    hbm.alloc("dS", (*Q.shape[:3], K.shape[2]))
    for program in call.programs:
        kernels.line_3(program, block)
    hbm.free("dP")
    hbm.alloc("dQ", Q.shape)
    for program in call.programs:
        kernels.line_4(program, tile_4)
    gradients.alloc("dK")
    for program in call.programs:
        kernels.line_5(program, tile_5)
    hbm.free("dS")
    gradients.finish()
    return call.machine.result(dQ=hbm.arrays["dQ"], dK=hbm.arrays["dK"], dV=hbm.arrays["dV"])
