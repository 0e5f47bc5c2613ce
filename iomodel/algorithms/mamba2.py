"""Mamba-2 (Dao and Gu 2024, arXiv:2405.21060, section 6, Listing 1): a state space model as products of chunks, SSD.

h_t = exp(dt_t A) h_(t-1) + dt_t B_t x_t^T and y_t = C_t^T h_t, with scalar A and a state of d x d_v elements per head.
In the letters of attention C is Q, B is K and X is V (section 7.2); B and C are shared by the heads of a group.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.algorithms._streaming import chunks
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.language import Axis, Cut, Exp, Hold, Kernel, Load, Loop, MatMul, Store, Tensor
from iomodel.nests.symbols import ONE, B_r, N_k, N_q, d, d_v
from iomodel.nests.tensors import S, depth, key, query, value

chunk = Axis("chunk", ceiling(N_q / B_r))
"""The chunks of the sequence; a single chunk in a piece."""
A = Tensor("A", (), "fp32", per="heads")
DT = Tensor("DT", (key,), "fp32")
X = Tensor("X", (key, value))
B = Tensor("B", (key, depth), per="kv_head")
C = Tensor("C", (query, depth), per="kv_head")
Y = Tensor("Y", (query, value))
STATES = Tensor("STATES", (chunk, depth, value), "fp32")
DECAY = Tensor("DECAY", (chunk,), "fp32")
h = Tensor("h", (depth, value), "fp32")
H_STATE = Tensor("H_STATE", (depth, value), "fp32")


def declare(carry: bool) -> Iterator[Kernel]:
    """Declare steps 2, 3 and then 1 with 4 of the listing; each state replaces the one before its chunk."""
    yield Kernel("chunk states", [
        Cut(chunks(B_r), [
            Load(A), Load(DT), Load(B), Load(X),
            Exp(key),
            Hold(STATES), MatMul(depth, value, key),
            Hold(DECAY), Store(STATES), Store(DECAY),
        ]),
    ])  # fmt: skip
    running = H_STATE if carry else h
    yield Kernel("pass states", [
        Load(H_STATE) if carry else Hold(h),
        Loop(chunk, ONE, [Load(STATES), Load(DECAY), Exp(chunk), Store(STATES, held=running)]),
        *([Store(H_STATE)] if carry else []),
    ])  # fmt: skip
    yield Kernel("outputs", [
        Cut(chunks(B_r), [
            Load(A), Load(DT), Load(C), Load(B), Load(X), Load(STATES),
            Hold(S, "fp32"), MatMul(query, key, depth), Exp(query, key),
            Hold(Y, "fp32"), MatMul(query, value, key),
            Exp(query), MatMul(query, value, depth),
            Store(Y),
        ]),
    ])  # fmt: skip


_T = ceiling(N_q / B_r)

ALGORITHM = Algorithm(
    name="mamba2",
    title="Mamba-2",
    cite="Dao and Gu, Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State "
    "Space Duality, arXiv:2405.21060 (2024), section 6 and Listing 1",
    declare=declare,
    options={"carry": False},
    requires=(Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for the scan goes over both"),),
    approximates="a state space model in place of attention: products C B with a decay instead of exp(q k)",
    masks=("causal",),
    published=(
        Published(
            N_q * (3 * (d + d_v) + 2) + 4 * _T * (d * d_v + 1),
            "by hand: X, B and dt twice, C and Y once; the state of each chunk out and in twice",
        ),
    ),
)
