"""Recurrences of keys and values in chunks: products within chunks and with the state between them.

With the state S before a chunk and the logarithms g of its gates summed from its first position, O = (Q o e^g) S +
(Q K^T o decays) V and S' = e^(g of the last) S + (K o decays to the end)^T V (Yang et al. 2023, arXiv:2312.06635,
section 4; Dao and Gu 2024, arXiv:2405.21060, section 6). The delta rule (Yang et al. 2024, arXiv:2406.06484, equations
8 to 11; gated: arXiv:2412.06464, section 3.3) puts U - W S for V, with T = (I + tril(diag(beta) K K^T o decays,
-1))^-1 diag(beta), W = T (K o e^g) and U = T V.
"""

from collections.abc import Iterator

from iomodel.algorithms._recurrences import DECAYS, FEATURES, STATE, Gate, K, O, Q, V, beta, chunk, other, position
from iomodel.algorithms._streaming import chunks
from iomodel.nests.algorithm import Algorithm, Requirement
from iomodel.nests.language import Axis, Cut, Exp, Hold, Kernel, Load, Loop, MatMul, Statement, Store, Tensor
from iomodel.nests.symbols import ONE, B_dv, L, c
from iomodel.nests.tensors import depth, value

inner = Axis("inner", L)
A = Tensor("A", (position, other), "fp32")
T = Tensor("T", (position, other), "fp32")
S = Tensor("S", (position, other), "fp32")
W = Tensor("W", (position, depth))
U = Tensor("U", (position, value))
V_new = Tensor("V_new", (position, value))
T_stored = Tensor("T_stored", (position, Axis("column", c)))
"""The inverses in HBM, with a whole chunk of columns in each row."""
STATES = Tensor("STATES", (chunk, depth, value))
"""The state before each chunk."""
CHUNKS = chunks(c, along=(L,))


def declare(
    constant_decay: bool,
    head_decay: bool,
    channel_decay: bool,
    delta: bool,
    stateful: bool,
    materialize: bool,
    stored_gates: bool,
    stored_inverse: bool,
) -> Iterator[Kernel]:
    """Declare the products of the delta rule, then states and outputs, in one scan or apart.

    Kernels may leave the sums of the gates in HBM, and the inverses of the delta rule.
    """
    gate = Gate(constant_decay=constant_decay, head_decay=head_decay, channel_decay=channel_decay)
    if stored_gates and (head_decay or channel_decay):
        yield Kernel("sums of gates", [Cut(CHUNKS, gate.stored())])
    first: list[Statement] = [Load(STATE) if stateful else Hold(STATE)]
    last: list[Statement] = [Store(STATE)] if stateful else []
    # The rows of U are replaced by those of U - W S, with the columns of the state that the block keeps.
    values: list[Statement] = [Load(W), Load(U), MatMul(position, value, depth)] if delta else [Load(V)]
    kept: list[Statement] = [Store(V_new, held=U)] if delta else []
    scores: list[Statement] = [
        Hold(S), MatMul(position, other, depth),
        *gate.exps([Exp(position, other)], [Exp(position, depth), Exp(other, depth)]),
    ]  # fmt: skip
    of_queries = gate.exps([Exp(position)], [])  # per channel, those of the scores serve
    outputs: list[Statement] = [
        Hold(O, "fp32"),
        MatMul(position, value, depth),
        MatMul(position, value, other),
        Store(O),
    ]
    passed: list[Statement] = [
        *gate.last,
        *gate.exps([Exp(position), Exp(chunk)], [Exp(position, depth), Exp(chunk, depth)]),
        MatMul(depth, value, position),
    ]  # fmt: skip
    if delta:
        inverse: list[Statement] = [
            Load(K), Load(beta), *gate.loads,
            Hold(A), MatMul(position, other, depth),
            *gate.exps([Exp(position, other)], [Exp(position, depth), Exp(other, depth)]),
            Hold(T), MatMul(position, other, inner),        # forward substitution, a row of the inverse at a time
        ]  # fmt: skip
        of_keys = gate.exps([Exp(position)], [])
        transformed: list[Statement] = [
            Hold(W, "fp32"), MatMul(position, depth, other), Store(W),
            Loop(value, B_dv, [Load(V), Hold(U, "fp32"), MatMul(position, value, other), Store(U)]),
        ]  # fmt: skip
        if stored_inverse:
            again = gate.exps([Exp(position)], [Exp(position, depth)])
            loads = [Load(K), Load(beta), *gate.loads, Load(T_stored)]
            yield Kernel("T", [Cut(CHUNKS, [*inverse, Store(T_stored, held=T)])])
            yield Kernel("W = T K, U = T V", [Cut(CHUNKS, [*loads, *again, *transformed])])
        else:
            yield Kernel("W = T K, U = T V", [Cut(CHUNKS, [*inverse, *of_keys, *transformed])])
    if not materialize:
        yield Kernel("states and outputs", [
            Loop(value, B_dv, [
                *first,
                Cut(CHUNKS, [
                    Load(Q), Load(K), *gate.loads, *values,
                    *scores, *of_queries, *outputs,
                    *passed,
                ]),
                *last,
            ]),
        ])  # fmt: skip
        return
    yield Kernel("states", [
        Loop(value, B_dv, [
            *first,
            Cut(CHUNKS, [Store(STATES, held=STATE), Load(K), *gate.loads, *values, *kept, *passed]),
            *last,
        ]),
    ])  # fmt: skip
    yield Kernel("outputs", [
        Cut(CHUNKS, [
            Load(Q), Load(K), *gate.loads, *scores, *of_queries,
            Loop(value, B_dv, [Load(V_new if delta else V), Load(STATES), *outputs]),
        ]),
    ])  # fmt: skip


ALGORITHM = Algorithm(
    name="chunked_scan",
    title="Chunked scan",
    cite="Yang, Wang, Shen, Panda and Kim, Gated Linear Attention Transformers with Hardware-Efficient Training, "
    "arXiv:2312.06635 (2023), section 4 and Algorithm 1; with the delta rule Yang, Wang, Zhang, Shen and Kim, "
    "arXiv:2406.06484 (2024), equations 8 to 11, and Yang, Kautz and Hatamizadeh, Gated Delta Networks, "
    "arXiv:2412.06464 (2024), section 3.3",
    answers="recurrence",
    declare=declare,
    options={"materialize": True},
    features=FEATURES,
    exclusive=DECAYS,
    as_written=("stored_gates", "stored_inverse"),
    requires=(
        Requirement(
            "stored_gates",
            -ONE,
            "a gate per position",
            given=(("stored_gates", True), ("head_decay", False), ("channel_decay", False)),
        ),
        Requirement("stored_inverse", -ONE, "with the delta rule", given=(("stored_inverse", True), ("delta", False))),
    ),
)
