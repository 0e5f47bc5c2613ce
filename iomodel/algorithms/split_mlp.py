"""A two-layer MLP in two kernels: the hidden rows pass through HBM, the activation does not.

The first kernel multiplies one tile of X with both W_gate and W_up and applies SwiGLU (Shazeer 2020, arXiv:2002.05202,
equation 6) before it stores; the second is a product. Grouped kernels run the MLPs of several experts, each on its own
rows (Gale et al. 2022, MegaBlocks, arXiv:2211.15841, section 4). With `separate_activation` the first kernel stores the
products with the joined matrix of gate and up, and a kernel between the two applies the activation. A backward pass
starts from those products: the hidden rows are made again with their gradients, by the derivative of the activation.
"""

from collections.abc import Iterator

from iomodel.algorithms._mlps import (
    GU,
    G,
    H,
    U,
    W_down,
    W_gate,
    W_gate_up,
    W_up,
    X,
    Y,
    column,
    dGU,
    dH,
    dU,
    dW_down,
    dW_gate_up,
    dW_up,
    dX,
    dY,
    group,
    hidden,
    joined,
    row,
    term,
)
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Axis, Exp, Hold, Kernel, Load, Loop, MatMul, Statement, Store, Tensor
from iomodel.nests.symbols import ONE, B_k, B_m, B_n


def declare(gated: bool, separate_activation: bool, wrapped_columns: bool) -> Iterator[Kernel]:
    """Declare the product with the activation, then the product back to the width of X.

    A tile at the last columns of a product may load whole tiles of the weights, in which the first columns come again.
    """

    def weight(tensor: Tensor, edge: Axis) -> Load:
        return Load(tensor, padded=(edge,), wraps=True) if wrapped_columns else Load(tensor)

    if separate_activation:
        made, weights, wide = (GU, W_gate_up, joined) if gated else (U, W_up, hidden)
        products: list[Statement] = [weight(weights, wide), MatMul(row, wide, term)]
        sums: list[Statement] = [Hold(made, "fp32")]
        last: list[Statement] = [Store(made)]
        title = f"{made.name} = X {weights.name}"
    else:
        wide = hidden
        products = [weight(W_up, hidden), MatMul(row, hidden, term)]
        sums = [Hold(H, "fp32"), *([Hold(G)] if gated else [])]
        if gated:
            products = [weight(W_gate, hidden), MatMul(row, hidden, term), *products]
        last = [Exp(row, hidden), Store(H)]
        title = "H = act(X W_gate) * (X W_up)" if gated else "H = act(X W_up)"
    yield Kernel(title, per="call", body=[
        Loop(group, ONE, [
            Loop(row, B_m, [
                Loop(wide, B_n, [
                    *sums,
                    Loop(term, B_k, [Load(X), *products]),
                    *last,
                ]),
            ]),
        ]),
    ])  # fmt: skip
    if separate_activation:
        yield Kernel("H = act(G) * U" if gated else "H = act(U)", per="call", body=[
            Loop(group, ONE, [Loop(row, ONE, [Load(made), Exp(row, hidden), Store(H, held=made)])]),
        ])  # fmt: skip
    yield Kernel("Y = H W_down", per="call", body=[
        Loop(group, ONE, [
            Loop(row, B_m, [
                Loop(column, B_n, [
                    Hold(Y, "fp32"),
                    Loop(hidden, B_k, [Load(H), weight(W_down, column), MatMul(row, column, hidden)]),
                    Store(Y),
                ]),
            ]),
        ]),
    ])  # fmt: skip


def backward(gated: bool) -> Iterator[Kernel]:
    """Declare the gradients of the hidden rows, of the products before the activation, of X and of the weights."""
    made, slopes, weights, of_weights, wide = (
        (GU, dGU, W_gate_up, dW_gate_up, joined) if gated else (U, dU, W_up, dW_up, hidden)
    )

    def product(result: Tensor, m: Axis, n: Axis, k: Axis, left: Tensor, right: Tensor) -> Kernel:
        inner = Loop(k, B_k, [Load(left), Load(right), MatMul(m, n, k)])
        tiles = Loop(m, B_m, [Loop(n, B_n, [Hold(result, "fp32"), inner, Store(result)])])
        return Kernel(result.name, [Loop(group, ONE, [tiles])], per="call")

    yield product(dH, row, hidden, column, dY, W_down)
    yield Kernel(f"{slopes.name}, H", per="call", body=[
        Loop(group, ONE, [
            Loop(row, ONE, [
                Load(dH), Load(made), Exp(row, hidden), Store(H, held=dH), Store(slopes, held=made),
            ]),
        ]),
    ])  # fmt: skip
    yield product(dW_down, hidden, column, row, H, dY)
    yield product(dX, row, term, wide, slopes, weights)
    yield product(of_weights, term, wide, row, X, slopes)


ALGORITHM = Algorithm(
    name="split_mlp",
    title="MLP in two kernels",
    cite="Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202 (2020), equation 6; grouped as in Gale, "
    "Narayanan, Young and Zaharia, MegaBlocks, arXiv:2211.15841 (2022), section 4",
    answers="mlp",
    declare=declare,
    backward=backward,
    saved={"separate_activation": True},
    options={"separate_activation": False},
    features=("gated",),
    as_written=("wrapped_columns",),
)
