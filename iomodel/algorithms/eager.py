"""Standard attention (Dao et al. 2022, arXiv:2205.14135, Algorithms 0 and 3) as eager PyTorch launches it.

Each operation is a kernel, whose result goes to HBM. The forward pass copies Q, K and V from the packed projection into
one matrix per head, forms S = Q K^T with the scale as a factor of the product, adds the mask, takes the softmax, and
multiplies by V. The mask is a tensor that the heads of a sequence share, added only if it hides something. K and V are
expanded if query heads share them, unless the rows of a group are packed.

The backward pass starts from the saved P and copies, under the names of Q, K and V. The gradient of the softmax takes
two kernels: the product P o dP, then dS. dQ and dK are scaled in kernels of their own, and the gradients are stacked
into that of the packed projection, unless query heads share keys.

A warp computes a softmax of at most 1,024 keys, or its gradient, and moves single elements; longer rows are vectors.

`dropout_pass` applies dropout to P in a kernel, as in :mod:`iomodel.algorithms.standard`; it is set for a call with
dropout.
"""

from collections.abc import Iterator
from dataclasses import replace

from iomodel.algorithms._gradients import stores, summed
from iomodel.algorithms._products import BACKWARD, DROPPED_BACKWARD, DROPPED_OUTPUT, OUTPUT, SCORES, elementwise, gemm
from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import Execution
from iomodel.nests.language import (
    Axis,
    Drop,
    Exp,
    Hold,
    Kernel,
    Load,
    Loop,
    Random,
    Scores,
    Sink,
    Statement,
    Store,
    Tensor,
    When,
)
from iomodel.nests.symbols import ONE, N_k, N_q, d, d_v
from iomodel.nests.tensors import (
    K,
    K_copy,
    K_expanded,
    P,
    P_drop,
    PdP,
    Q,
    Q_copy,
    S,
    S_masked,
    V,
    V_copy,
    V_expanded,
    dK,
    dK_expanded,
    dP,
    dP_drop,
    dQ,
    dropout_mask,
    dS,
    dV,
    grouped,
    key,
    mask,
    query,
)

NO_CACHE = frozenset({"paged", "latent", "kv_dtype", "head_scales", "token_scales"})
"""A framework converts and gathers K and V in other kernels before."""

WARP_ROWS = 1024
"""Longest row of a softmax that PyTorch gives to a single warp, whose threads load and store single elements; longer
rows move in vectors (host_softmax in aten/src/ATen/native/cuda/SoftMax.cu, PersistentSoftmax.cuh)."""
LAUNCHED = Execution(
    cite="github.com/pytorch/pytorch, aten/src/ATen/native/cuda: softmax_backward_cuda_out multiplies gradient and "
    "output in a kernel before that of the softmax; the elementwise kernel of tensors with different shapes computes "
    "the address of each element. Both costs were read off calibration rows: see docs/accuracy.md",
    phases=(("hbm", "l2", "addresses"), ("matrix",), ("exp", "softmax"), ("gradient",), ("random",)),
    address_clocks=0.25,
    host_launch=3.86e-5,
)


def _either(expanded: Statement, copy: Statement) -> list[Statement]:
    """Take the expanded copy of K or V if query heads share keys, the plain copy otherwise."""
    return [When(grouped, [expanded]), When(grouped, [copy], unless=True)]


def _copied(tensor: Tensor, axis: Axis, stores: list[Statement]) -> Kernel:
    return Kernel(f"copy of {tensor.name}", [Loop(axis, ONE, [Load(tensor), *stores])], strided=True)


def declare(masked: bool, dropout_pass: bool) -> Iterator[Kernel]:
    """Declare the operations of the forward pass."""
    yield _copied(Q, query, [Store(Q_copy, held=Q)])
    yield _copied(K, key, _either(Store(K_expanded, held=K), Store(K_copy, held=K)))
    yield _copied(V, key, _either(Store(V_expanded, held=V), Store(V_copy, held=V)))
    loads = [Load(Q_copy), *_either(Load(K_expanded), Load(K_copy))]
    yield gemm(SCORES, False, [Scores(query, key), Store(S)], loads=loads)
    scores = S
    if masked:
        added = elementwise("S_masked = S + mask", [Load(S), Load(mask), Store(S_masked, held=S)])
        yield replace(added, strided=True)
        scores = S_masked
    softmax: list[Statement] = [Hold(scores, "fp32"), Load(scores), Exp(query, key), Sink(query)]
    yield replace(elementwise("P = softmax(S)", [*softmax, Store(P, held=scores)]), single_keys=WARP_ROWS)
    saved = (Q_copy, K_copy, V_copy, K_expanded, V_expanded, P)
    values = _either(Load(V_expanded), Load(V_copy))
    if dropout_pass:
        drawn: list[Statement] = [Load(P), Hold(dropout_mask), Random(query, key)]
        stored: list[Statement] = [Store(dropout_mask), Store(P_drop, held=P)]
        yield elementwise("P_drop = dropout(P)", [*drawn, *stored])
        output = gemm(DROPPED_OUTPUT, False, loads=[Load(P_drop), *values])
    else:
        output = gemm(OUTPUT, False, each=[Drop(query, key)], loads=[Load(P), *values])
    yield replace(output, keeps=saved)


def backward(dropout_pass: bool) -> Iterator[Kernel]:
    """Declare the operations of the backward pass; the gradient of the mask is none."""
    dv, dp, dq, dk = DROPPED_BACKWARD if dropout_pass else BACKWARD
    drop = [] if dropout_pass else [Drop(query, key)]
    yield gemm(dv, False, list(stores(dV)), drop)
    yield gemm(dp, False, [*drop, Store(dp.result)])
    if dropout_pass:
        kept: list[Statement] = [Load(dP_drop), Load(dropout_mask), Store(dP, held=dP_drop)]
        yield elementwise("dP = dropout mask o dP_drop", kept)
    yield elementwise("PdP = P o dP", [Load(P), Load(dP), Store(PdP, held=dP)])
    gradient = elementwise("dS = PdP - P rowsum(PdP)", [Load(P), Hold(PdP, "fp32"), Load(PdP), Store(dS, held=PdP)])
    yield replace(gradient, single_keys=WARP_ROWS, keeps=(dP,))  # an argument of the call that launches both kernels
    yield gemm(dq, False)
    yield elementwise("dQ scaled", [Load(dQ), Store(dQ)])
    yield gemm(dk, False, list(stores(dK)))
    again: list[Statement] = [
        When(grouped, [Load(dK_expanded), Store(dK_expanded)]),
        When(grouped, [Load(dK), Store(dK)], unless=True),
    ]
    yield Kernel("dK scaled", [Loop(key, ONE, again)])
    each = [Loop(axis, ONE, [Load(part), Store(part)]) for axis, part in ((query, dQ), (key, dK), (key, dV))]
    yield Kernel("dQ, dK and dV stacked", [When(grouped, each, unless=True)], strided=True)
    yield from summed()


ALGORITHM = Algorithm(
    name="eager",
    title="Eager attention",
    cite="Dao, Fu, Ermon, Rudra and Re, arXiv:2205.14135 (2022), Algorithms 0 and 3, by the operations that PyTorch 2 "
    "(github.com/pytorch/pytorch) launches for attention_pytorch in github.com/Dao-AILab/flash-attention, "
    "benchmarks/benchmark_flash_attention.py",
    declare=declare,
    backward=backward,
    options={"dropout_pass": False},
    implied={"dropout": "dropout_pass"},
    replaces=("scaled_dot_product_attention",),
    untiled=True,
    classes=frozenset({"exact"}),
    without={"forward": NO_CACHE, "backward": NO_CACHE | {"softcap"}},
    execution={"forward": LAUNCHED, "backward": LAUNCHED},
    published=(
        Published(
            3 * (N_q + N_k) * d + 3 * N_k * d_v + N_q * d_v + 4 * N_q * N_k,
            "by hand: Q, K and V once more than in standard attention, and their copies",
        ),
        Published(
            6 * (N_q + N_k) * d + (2 * N_q + 4 * N_k) * d_v + 10 * N_q * N_k,
            "by hand: the products of standard attention, six passes for dS, four for the scales, six for the stack",
            direction="backward",
        ),
    ),
)
