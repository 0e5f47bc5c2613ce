"""A two-layer MLP in one kernel: the hidden rows of a tile stay on chip, a slab of their columns at a time.

SwiGLU (Shazeer 2020, arXiv:2002.05202, equation 6) without the hidden rows in HBM. A block makes a tile of hidden rows
and adds its products with W_down to sums in HBM, atomically; with `resident` a block keeps whole rows of X and of the
sums on chip and streams all weights past them.
"""

from collections.abc import Iterator

from iomodel.algorithms._mlps import G, H, W_down, W_gate, W_up, X, Y, Y_acc, column, group, hidden, row, term
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Accumulate, Exp, Fill, Hold, Kernel, Load, Loop, MatMul, Statement, Store
from iomodel.nests.symbols import ONE, B_k, B_m, B_n


def declare(gated: bool, resident: bool) -> Iterator[Kernel]:
    """Declare a kernel that makes, activates and multiplies slabs of hidden columns, and those for sums in HBM."""
    title = "Y = (act(X W_gate) * (X W_up)) W_down" if gated else "Y = act(X W_up) W_down"
    sums: list[Statement] = [Hold(H, "fp32"), *([Hold(G)] if gated else [])]
    products: list[Statement] = [Load(W_up), MatMul(row, hidden, term)]
    if gated:
        products = [Load(W_gate), MatMul(row, hidden, term), *products]
    if resident:
        yield Kernel(title, per="call", body=[
            Loop(group, ONE, [
                Loop(row, B_m, [
                    Load(X), Hold(Y, "fp32"),
                    Loop(hidden, B_n, [
                        *sums,
                        Loop(term, B_k, products),
                        Exp(row, hidden),
                        Loop(column, B_k, [Load(W_down), MatMul(row, column, hidden)]),
                    ]),
                    Store(Y),
                ]),
            ]),
        ])  # fmt: skip
        return
    yield Kernel("sums = 0", [Loop(group, ONE, [Loop(row, ONE, [Fill(Y_acc)])])], per="call")
    yield Kernel(title, per="call", body=[
        Loop(group, ONE, [
            Loop(row, B_m, [
                Loop(hidden, B_n, [
                    *sums,
                    Loop(term, B_k, [Load(X), *products]),
                    Exp(row, hidden),
                    Loop(column, B_k, [
                        Load(W_down), Hold(Y, "fp32"), MatMul(row, column, hidden), Accumulate(Y_acc, held=Y),
                    ]),
                ]),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("convert", [Loop(group, ONE, [Loop(row, ONE, [Load(Y_acc), Store(Y, held=Y_acc)])])], per="call")


ALGORITHM = Algorithm(
    name="fused_mlp",
    title="MLP in one kernel",
    cite="Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202 (2020), equation 6, in one kernel",
    answers="mlp",
    declare=declare,
    options={"resident": False},
    features=("gated",),
)
