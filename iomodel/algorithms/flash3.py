"""FlashAttention-3 (Shah et al. 2024, arXiv:2407.08608, Algorithms 1 and 2, Appendix B.1): FlashAttention-2 for Hopper.

Forward: the traffic is that of FlashAttention-2. The on-chip data differ: the scores of the next key tile are computed
before those of the current tile are multiplied by V, so two tiles of scores are live. Backward: the loops of
FlashAttention-2; the log-sum-exp is first converted to base 2, and query heads that share keys add their gradients.
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import ceiling

from iomodel.algorithms._flash3_residency import (
    ADDED_BESIDE,
    ADDED_IN_SECTIONS,
    BACKWARD,
    CUDNN_BACKWARD,
    CUDNN_FORWARD,
    FORWARD,
    FORWARD_2024,
    IN_SECTIONS,
    PAGED,
)
from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._gradients import adds, stores, summed, zeroed_sums
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.algorithms._trtllm_residency import HOPPER
from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import PACKED, Implementation
from iomodel.nests.language import (
    Accumulate,
    Drop,
    Exp,
    Fill,
    Hold,
    Kernel,
    Live,
    Load,
    Loop,
    MatMul,
    Scores,
    Sink,
    Store,
    Tensor,
)
from iomodel.nests.symbols import ONE, B_c, B_r, N_k, N_q, d, d_v
from iomodel.nests.tensors import (
    LSE,
    D,
    K,
    LSE_log2,
    O,
    Q,
    S,
    V,
    depth,
    dK,
    dO,
    dP,
    dQ,
    dQ_acc,
    dV,
    key,
    l,
    m,
    query,
    value,
)

S_next = Tensor("S_next", (query, key))


def declare(lse: bool) -> Iterator[Kernel]:
    """Declare Algorithm 2 with the loads of Algorithm 1; V has a buffer even as part of K, which is a tile ahead."""
    yield Kernel("flash3", [
        Loop(query, B_r, [
            Hold(O, "fp32"), Hold(l), Hold(m),
            Live(key, [
                Load(Q),
                Loop(key, B_c, masked=True, body=[
                    Load(K), Load(V), Hold(V),
                    Hold(S, "fp32"), Hold(S_next, "fp32"), MatMul(query, key, depth), Scores(query, key),
                    Exp(query, key), Exp(query), Drop(query, key),
                    MatMul(query, value, key),
                ]),
            ]),
            Sink(query),
            Store(O),
            *([Store(LSE, held=m)] if lse else []),
        ]),
    ])  # fmt: skip


def backward(deterministic: bool) -> Iterator[Kernel]:
    """Declare Appendix B.1 as in the public kernels: statistics of O; dK, dV and the sums of dQ; conversion of dQ.

    In the deterministic mode of the public kernels, semaphores order the same additions to dQ.
    The paper streams the log-sum-exp; the kernels convert it to base 2 once, because their exponentials have base 2.
    """
    yield from zeroed_sums(True)
    yield Kernel("D, LSE_log2, dQ_acc = 0", [
        Loop(query, ONE, [Load(O), Load(dO), Load(LSE), Hold(D), Store(D), Store(LSE_log2, held=LSE), Fill(dQ_acc)]),
    ])  # fmt: skip
    yield Kernel("flash3 backward", [
        Loop(key, B_c, [
            Hold(dK, "fp32"), Hold(dV, "fp32"),
            Live(query, [
                Load(K), Load(V),
                Loop(query, B_r, masked=True, body=[
                    Load(Q), Load(LSE_log2),
                    Hold(S, "fp32"), MatMul(query, key, depth), Scores(query, key),
                    Load(dO), Load(D),
                    Hold(dP, "fp32"), MatMul(query, key, value),
                    Exp(query, key), Drop(query, key), MatMul(key, value, query),
                    Hold(dQ, "fp32"), MatMul(query, depth, key),
                    MatMul(key, depth, query),
                    Accumulate(dQ_acc, held=dQ, atomic=not deterministic),
                ]),
                *adds(True),
            ]),
            *stores(dK, dV, accumulate=True),
        ]),
    ])  # fmt: skip
    yield Kernel("dQ in its own dtype", [Loop(query, ONE, [Load(dQ_acc), Store(dQ, held=dQ_acc)])])
    yield from summed(True)


FLASH_ATTENTION_3 = Implementation(
    "flash-attention-3",
    "FlashAttention-3 (CUDA, Hopper)",
    "github.com/Dao-AILab/flash-attention, hopper",
    residency={"forward": FORWARD, "backward": BACKWARD},
    execution={"forward": replace(IN_SECTIONS, paged_clocks=PAGED), "backward": ADDED_IN_SECTIONS},
    searched=PACKED,
    tiles=shipped_tiles("flash-attention-3", "flash3"),
    aliases=("fa3", "flash-attn-3", "flashattention-3"),
    front_end=front_end("flash-attention-3"),
    symbols=("FlashAttnFwdSm90", "FlashAttnBwdSm90"),
)
FLASH_ATTENTION_3_2024 = replace(
    FLASH_ATTENTION_3,
    name="flash-attention-3-2024",
    title="FlashAttention-3 of the paper (CUDA, Hopper): blocks start in the order of the grid",
    cite="arXiv:2407.08608, section 4",
    residency={"forward": FORWARD_2024, "backward": BACKWARD},
    tiles=shipped_tiles("flash-attention-3-2024", "flash3"),
    aliases=(),
    superseded=True,
    execution={"forward": PIPELINED, "backward": ADDED_BESIDE},
)
CUDNN = Implementation(
    "cudnn-hopper",
    "cuDNN's attention (closed, Hopper)",
    CUDNN_FORWARD.cite,
    residency={"forward": (CUDNN_FORWARD,), "backward": CUDNN_BACKWARD},
    tiles=shipped_tiles("cudnn-hopper", "flash3"),
    aliases=("cudnn",),
    front_end=front_end("cudnn-hopper"),
    symbols=("sdpa_sm90_flash",),
)

_T_c = ceiling(N_k / B_c)

ALGORITHM = Algorithm(
    name="flash3",
    title="FlashAttention-3",
    cite="Shah, Bikshandi, Zhang, Thakkar, Ramani and Dao, FlashAttention-3: Fast and Accurate Attention with "
    "Asynchrony and Low-precision, arXiv:2407.08608 (2024), Algorithms 1 and 2, Appendix B.1",
    declare=declare,
    backward=backward,
    options={"lse": True, "deterministic": False},
    preference=1,
    saved={"lse": True},
    classes=frozenset({"exact", "exact-backward", "row-atomic", "row-atomic-backward", "fixed-split"}),
    execution={"forward": IN_SECTIONS, "backward": ADDED_IN_SECTIONS},
    implementations=(FLASH_ATTENTION_3, FLASH_ATTENTION_3_2024, CUDNN, HOPPER),
    published=(
        Published(
            N_q * d + N_k * (d + d_v) * ceiling(N_q / B_r) + N_q * d_v + N_q,
            "arXiv:2407.08608, Algorithm 1: Q, O and L once, K and V once a query tile",
        ),
        Published(
            2 * N_q * d_v + 2 * N_k * (d + d_v) + 3 * N_q * d + 3 * N_q + N_q * (3 * d + d_v + 2) * _T_c,
            "by hand, arXiv:2407.08608, Appendix B.1, with the statistics of the public kernels: O, dO, L, D, L in "
            "base 2, K, V, dK, dV once; Q, dO, L in base 2, D and a read and a write of dQ once a key tile; the "
            "accumulator zeroed, read and cast",
            direction="backward",
        ),
    ),
)
