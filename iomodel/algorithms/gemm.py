"""GEMM: a linear layer Y = X W in output tiles, with the sum split among thread blocks where few tiles are left.

A block keeps an output tile in fp32 and streams slices of X and W past it (Goto and van de Geijn 2008, ACM TOMS
34:12). Few rows leave few output tiles; with `splits` the terms of the sum are shared out among blocks too, and a
second kernel adds up. There are `groups` products of one shape: the heads of an absorbed projection, experts that have
as many tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Expr, Max, Min, ceiling, floor

from iomodel.nests.algorithm import Algorithm, Requirement
from iomodel.nests.implementation import Implementation
from iomodel.nests.language import Axis, Exp, Hold, Kernel, Load, Loop, MatMul, Statement, Store, Tensor, When
from iomodel.nests.symbols import ONE, B_k, B_m, B_n, C_in, C_out, T, g, n_s, s

SPLITS = (1, 2, 4, 8, 16)
"""Parts of a sum that the kernels of libraries choose from [-]."""

group = Axis("group", g)
row = Axis("row", T)
term = Axis("term", C_in)
column = Axis("column", C_out)
part = Axis("part", s, of=term, chunk=B_k * ceiling(ceiling(C_in / B_k) / s))
"""Whole slices of the sum, as many to each part, the last ones with fewer or none."""
block = Axis("block", ceiling(C_in / n_s), of=term, chunk=n_s)
"""Terms that share a scale of W: whole slices, or all terms."""
part_of_blocks = Axis("part", s, of=block, chunk=ceiling(ceiling(C_in / n_s) / s))
"""The same for whole blocks."""

X = Tensor("X", (group, row, term), per="call")
W = Tensor("W", (group, term, column), "weight", per="call")
W_gate = Tensor("W_gate", (group, term, column), "weight", per="call")
W_up = Tensor("W_up", (group, term, column), "weight", per="call")
Y = Tensor("Y", (group, row, column), "out", per="call")
"""Of a width of its own: a product of fp8 rows is stored in bf16."""
G = Tensor("G", (group, row, column), "out", per="call")
bias_row = Tensor("bias", (group, column), "out", per="call")


def declare(splits: Expr, gated: bool, scaled: bool, bias: bool, wrapped_edges: bool) -> Iterator[Kernel]:
    """Declare a product, or two of one X for a gated layer; each part of a split sum leaves a partial result in HBM.

    A tile at the edge of Y may load whole tiles of X and W, in which the first rows or columns come again.
    """

    def operand(tensor: Tensor, edge: Axis) -> Load:
        return Load(tensor, padded=(edge,), wraps=True) if wrapped_edges else Load(tensor)

    assert splits in (part.length, ONE)
    many = Min(1, s - 1)
    weights, results = ((W_gate, W_up), (G, Y)) if gated else ((W,), (Y,))
    share = part_of_blocks if scaled else part
    partial = [Tensor(f"{result.name}_acc", (share, *result.axes), "fp32", per="call") for result in results]
    held: list[Statement] = [Hold(result, "fp32") for result in results]
    epilogue: list[Statement] = [*([Load(bias_row)] if bias else []), *([Exp(row, column)] if gated else []), Store(Y)]
    products = [step for weight in weights for step in (operand(weight, column), MatMul(row, column, term))]
    slices: Statement = Loop(term, B_k, [operand(X, row), *products])
    if scaled:
        scales = (Tensor(f"{weight.name}_scale", (group, block, column), per="call") for weight in weights)
        slices = Loop(block, ONE, [*map(Load, scales), slices])
    yield Kernel("Y = act(X W_gate) * (X W_up)" if gated else "Y = X W", per="call", body=[
        Loop(group, ONE, [
            Loop(row, B_m, [
                Loop(column, B_n, [
                    Loop(share, ONE, [
                        *held,
                        slices,
                        When(many, [Store(part, held=result) for part, result in zip(partial, results, strict=True)]),
                        When(many, unless=True, body=epilogue),
                    ]),
                ]),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("add up", per="call", body=[
        When(many, [
            Loop(group, ONE, [
                Loop(row, B_m, [
                    Loop(column, B_n, [
                        *held,
                        Loop(share, ONE, [Load(part) for part in partial]),
                        *epilogue,
                    ]),
                ]),
            ]),
        ]),
    ])  # fmt: skip


_whole_scales = 1 - Min(1, Max(0, C_in - n_s))
"""1 where one scale holds for all terms of a column."""

ALGORITHM = Algorithm(
    name="gemm",
    title="Tiled GEMM",
    cite="Goto and van de Geijn, Anatomy of high-performance matrix multiplication, ACM Transactions on Mathematical "
    "Software 34:12 (2008), sections 4 and 5; split-K as in CUTLASS (NVIDIA, efficient_gemm.md)",
    answers="linear",
    declare=declare,
    options={"splits": 1},
    preference=1,
    replaces=("product elementwise",),
    features=("gated", "scaled", "bias"),
    as_written=("wrapped_edges",),
    requires=(
        Requirement(
            "block_k",
            (B_k * floor(n_s / B_k) - n_s) * (1 - _whole_scales),
            "a divisor of scale_block = {scale_block}",
            given=(("scaled", True),),
        ),
        Requirement.at_most(
            s, "splits", ceiling(C_in / B_k), "up to {most}, the slices of {block_k} terms", scaled=False
        ),
        Requirement.at_most(
            s, "splits", ceiling(C_in / n_s), "up to {most}, the blocks of {scale_block} terms", scaled=True
        ),
    ),
    classes=frozenset({"product"}),
    implementations=(
        Implementation(
            "vendor-blas",
            "GEMM of a vendor's library (cuBLAS, hipBLASLt), common tiles",
            "CUTLASS 3.5, media/docs/efficient_gemm.md: tiles, slices of 128 B, stages, split-K",
            searched={"splits": SPLITS},
        ),
    ),
)
