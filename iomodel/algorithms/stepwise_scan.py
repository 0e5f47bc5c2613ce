"""Recurrences of keys and values position by position, with the state on chip: the decode step, and a reference.

S_t = D_t S_(t-1) + k_t v_t^T, with v_t replaced by beta_t (v_t - (D_t S_(t-1))^T k_t) by the delta rule, and o_t =
S_t^T q_t (Yang et al. 2023, arXiv:2312.06635, section 2.1; Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464,
equation 10). A block keeps some columns of the state, which depend on no other columns.
"""

from collections.abc import Iterator

from iomodel.algorithms._recurrences import DECAYS, FEATURES, STATE, Gate, K, O, Q, V, beta, position
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Exp, Hold, Kernel, Load, Loop, MatMul, Statement, Store
from iomodel.nests.symbols import ONE, B_dv
from iomodel.nests.tensors import depth, value


def declare(
    constant_decay: bool, head_decay: bool, channel_decay: bool, delta: bool, stateful: bool
) -> Iterator[Kernel]:
    """Declare one kernel: load the state, update it at each position, store it."""
    correction: list[Statement] = [Load(beta), MatMul(position, value, depth)] if delta else []
    gate = Gate(constant_decay=constant_decay, head_decay=head_decay, channel_decay=channel_decay)
    yield Kernel("scan", [
        Loop(value, B_dv, [
            Load(STATE) if stateful else Hold(STATE),
            Loop(position, ONE, [
                Load(Q), Load(K), Load(V), *gate.loads, *gate.exps([Exp(position)], [Exp(position, depth)]),
                *correction,
                MatMul(depth, value, position),
                Hold(O, "fp32"), MatMul(position, value, depth), Store(O),
            ]),
            *([Store(STATE)] if stateful else []),
        ]),
    ])  # fmt: skip


ALGORITHM = Algorithm(
    name="stepwise_scan",
    title="Stepwise scan",
    cite="Yang, Wang, Shen, Panda and Kim, Gated Linear Attention Transformers with Hardware-Efficient Training, "
    "arXiv:2312.06635 (2023), section 2.1; Yang, Kautz and Hatamizadeh, Gated Delta Networks, arXiv:2412.06464 (2024), "
    "equation 10",
    answers="recurrence",
    declare=declare,
    features=FEATURES,
    exclusive=DECAYS,
)
