"""A two-layer MLP in two kernels: the hidden rows pass through HBM, the activation does not.

The first kernel multiplies one tile of X with both W_gate and W_up and applies SwiGLU (Shazeer 2020, arXiv:2002.05202,
equation 6) before it stores; the second is a product. Grouped kernels run the MLPs of several experts, each on its own
rows (Gale et al. 2022, MegaBlocks, arXiv:2211.15841, section 4).
"""

from collections.abc import Iterator

from iomodel.algorithms._mlps import ONE, G, H, W_down, W_gate, W_up, X, Y, column, group, hidden, row, term
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Exp, Hold, Kernel, Load, Loop, MatMul, Statement, Store
from iomodel.nests.symbols import B_k, B_m, B_n


def declare(gated: bool) -> Iterator[Kernel]:
    """Declare the product with the activation, then the product back to the width of X."""
    sums: list[Statement] = [Hold(H, "fp32"), *([Hold(G)] if gated else [])]
    products: list[Statement] = [Load(W_up), MatMul(row, hidden, term)]
    if gated:
        products = [Load(W_gate), MatMul(row, hidden, term), *products]
    yield Kernel("H = act(X W_gate) * (X W_up)" if gated else "H = act(X W_up)", per="call", body=[
        Loop(group, ONE, [
            Loop(row, B_m, [
                Loop(hidden, B_n, [
                    *sums,
                    Loop(term, B_k, [Load(X), *products]),
                    Exp(row, hidden),
                    Store(H),
                ]),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("Y = H W_down", per="call", body=[
        Loop(group, ONE, [
            Loop(row, B_m, [
                Loop(column, B_n, [
                    Hold(Y, "fp32"),
                    Loop(hidden, B_k, [Load(H), Load(W_down), MatMul(row, column, hidden)]),
                    Store(Y),
                ]),
            ]),
        ]),
    ])  # fmt: skip


ALGORITHM = Algorithm(
    name="split_mlp",
    title="MLP in two kernels",
    cite="Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202 (2020), equation 6; grouped as in Gale, "
    "Narayanan, Young and Zaharia, MegaBlocks, arXiv:2211.15841 (2022), section 4",
    answers="mlp",
    declare=declare,
    features=("gated",),
)
