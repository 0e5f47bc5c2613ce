"""Mamba (Gu and Dao 2023, arXiv:2312.00752, Algorithm 2, section 3.3.2): the fused selective scan.

In each channel h_t = exp(dt_t A) h_(t-1) + dt_t x_t B_t, a state of n elements, and y_t = C_t h_t + SKIP x_t: that is
equation 2, with A discretised as in equation 4 and B by Euler's step. The model is as wide as the heads are together,
heads x value_dim, and has `expand` channels for each element of that width; keys and head_dim play no part.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.language import Axis, Exp, Hold, Kernel, Load, Loop, MatMul, Store, Tensor
from iomodel.nests.symbols import B_c, B_e, H, N_k, N_q, d_v, n_st, x_e
from iomodel.nests.tensors import query

channel = Axis("channel", x_e * H * d_v)
component = Axis("component", n_st)
X = Tensor("X", (query, channel), per="batch")
DT = Tensor("DT", (query, channel), per="batch")
B = Tensor("B", (query, component), per="batch")
C = Tensor("C", (query, component), per="batch")
Y = Tensor("Y", (query, channel), per="batch")
A = Tensor("A", (channel, component), "fp32", per="call")
SKIP = Tensor("SKIP", (channel,), "fp32", per="call")
h = Tensor("h", (channel, component), "fp32", per="batch")
H_STATE = Tensor("H_STATE", (channel, component), "fp32", per="batch")


def declare(carry: bool) -> Iterator[Kernel]:
    """Declare one kernel that keeps the state of a tile of channels on chip along the entire sequence."""
    yield Kernel("selective scan", [
        Loop(channel, B_e, [
            Load(A), Load(SKIP), Load(H_STATE) if carry else Hold(h),
            Loop(query, B_c, [
                Load(X), Load(DT), Load(B), Load(C), Hold(Y, "fp32"),
                Exp(query, channel),                            # softplus of dt
                Exp(query, channel, component),                 # the decay, per state and position
                MatMul(channel, component, query),              # (dt x) B, an outer product per position
                MatMul(channel, query, component),              # h C
                Store(Y),
            ]),
            *([Store(H_STATE)] if carry else []),
        ]),
    ], per="batch")  # fmt: skip


_E = x_e * d_v

ALGORITHM = Algorithm(
    name="mamba1",
    title="Mamba",
    cite="Gu and Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, arXiv:2312.00752 (2023), "
    "Algorithm 2 and section 3.3.2",
    declare=declare,
    options={"state": 16, "expand": 2, "carry": False},
    requires=(Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for the scan goes over both"),),
    approximates="a selective state space model in place of attention, n elements of state a channel",
    masks=("causal",),
    published=(
        Published(
            3 * N_q * _E + _E * (n_st + 1) + 2 * N_q * n_st * ceiling(_E / B_e),
            "by hand: X, dt, Y, A and the skip weights once, B and C once a tile of channels",
        ),
    ),
)
