"""Residency of FlashAttention-4's backward pass on Blackwell: S, dP, dK, dV and dQ in tensor memory.

A block has 128 queries and 128 keys, eight warps for the softmax and its gradient, and four that add dQ to HBM slice by
slice; other warps load tiles and issue products. From head dimension 128 on, a pair of blocks shares the tile of
queries: each holds its keys and half of Q and dO, and for dQ the keys of both at half the width. The counts are those
of a single block: the sums of dQ of a pair, which are added once, count twice. Head dimension 256, whose gradients two
separate kernels compute, has no layout.
"""

from dataclasses import replace

from sympy import Integer, Rational

from iomodel.nests.execution import Execution
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import d, stages
from iomodel.nests.tensors import LSE, D, K, Q, S, V, dK, dO, dP, dQ, dV

_CITE = "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_bwd_sm100.py"
_TWO, _HALF = Integer(2), Rational(1, 2)
_DS = Shared(dP, dtype="io")
_SUMS = Shared(dV, dtype="fp32"), Shared(dK, dtype="fp32")
ALONE = Residency(
    title="FlashAttention-4 backward: K, V, Q, dO, dS, slices of dQ in shared memory; S, dP, dQ, dK, dV in "
    "tensor memory",
    cite=_CITE,
    shared=(Shared(K), Shared(V), Shared(Q, stages), Shared(dO), _DS, Shared(LSE, stages), Shared(D),
            Shared(dQ, 64 / d, "fp32")),
    phases=((Fragment(S), Fragment(dP, share=_HALF), Fragment(dP, "io", _HALF)),),
    overhead=24,
    warps=(8,),
    stages=(2,),
    producers=8,
    producer_registers=120,
    mma="warpgroup",
    transposed=True,
    step=(128, 16),
    sizes=((128,), (128,)),
    exposed=0.0,
    head_dims=(64, 96),
    architectures=("sm_100", "sm_103"),
    tensor=(Shared(S, dtype="fp32"), Reused((Shared(dP, dtype="fp32"),), (Shared(dQ, dtype="fp32"),)), *_SUMS),
    instruction_rows=128,
)  # fmt: skip
"""The threads of the softmax have 136 registers (144 under a mask), the others 120 in the mean. Products of a tile run
beside the softmax of the next and the gradient of the softmax of the last."""
PAIR = replace(
    ALONE,
    title="FlashAttention-4 backward, a pair of blocks: halves of Q and dO in either orientation, K twice",
    shared=(Shared(K, _TWO), Shared(V), Shared(Q, stages), Shared(dO), Shared(dP, Rational(3, 2), "io"),
            Shared(LSE, stages), Shared(D), Shared(dQ, 32 / d, "fp32")),
    stages=(1,),
    head_dims=(128,),
    tensor=(Reused((Shared(S, dtype="fp32"),), (Shared(dQ, _HALF, "fp32"),)), Shared(dP, dtype="fp32"), *_SUMS),
)  # fmt: skip
"""dQ lies in the place of half of S; half of dS goes to the other block."""
PAIR_192 = replace(
    PAIR,
    title="FlashAttention-4 backward, head dimensions 192 and 128, a pair of blocks: halves of Q and dO, K twice",
    shared=(Shared(K, _TWO), Shared(V), Shared(Q, _HALF), Shared(dO, _HALF), _DS, Shared(LSE), Shared(D),
            Shared(dQ, 48 / d, "fp32")),
    head_dims=(192,),
    value_dims=(128,),
    tensor=(Shared(S, dtype="fp32"), Shared(dP, _HALF, "fp32"), *_SUMS),
)  # fmt: skip
"""Half of dP, from which dS takes 16 bits, lies in the place of half of S."""
CAUSAL_192 = replace(
    PAIR_192,
    title=f"{PAIR_192.title}; a slice of dQ at a time, as under a causal mask",
    shared=(*PAIR_192.shared[:-1], Shared(dQ, 32 / d, "fp32")),
)
BACKWARD = (ALONE, PAIR, PAIR_192, CAUSAL_192)

BESIDE = Execution(
    cite=f"{_CITE}: one warp issues the products, others compute P and dS, others add dQ to HBM",
    phases=(("matrix", "shared memory", "gradient"), ("exp", "softmax"), ("random",)),
)
"""Loads, additions and the gradient of the softmax overlap with products."""
