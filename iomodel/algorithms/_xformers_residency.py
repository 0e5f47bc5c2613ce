"""Residency of CUTLASS's fused attention, as in xFormers and PyTorch: warps of 32 x 32 scores, P in shared memory.

Each warp computes 32 rows and 32 keys of S, and 32 rows and 32 columns of O, from slices of 32 terms of the operands in
shared memory: 4 warps for 64 keys, 8 for 128. Rows wider than the key tile keep O in HBM, as FlashAttention-1 does,
and have no layout here.
"""

from dataclasses import replace

from sympy import Expr, Integer, Min

from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.execution import BARRIERS
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_c, d
from iomodel.nests.tensors import K, O, Q, S, V, m

_SLICE = Integer(32)


def _stages(slices: int, terms: Expr) -> Expr:
    """Compute the share of an operand in the slices that are present at once."""
    return Min(1, slices * _SLICE / terms)


def _layout(slices: int, value_slices: int) -> tuple[Shared | Reused, ...]:
    first = Shared(Q, _stages(slices, d)), Shared(K, _stages(slices, d))
    second = Shared(S, dtype="io"), Shared(V, _stages(value_slices, B_c))
    return Reused(first, second, (Shared(O, dtype="fp32"),)), Shared(m, 4 + B_c / _SLICE)


NARROW = Residency(
    title="CUTLASS fused attention: slices of Q and K, then P and slices of V in shared memory; S and O in registers",
    cite="github.com/facebookresearch/xformers, xformers/csrc/attention/cuda/fmha: kernel_forward.h, "
    "generate_kernels.py",
    shared=_layout(3, 4),
    phases=((Fragment(S), Fragment(O)),),
    overhead=64,
    split="tile",
    warps=(4,),
    step=(32, 32),
    sizes=((64,), (64,)),
    head_dims=(64,),
)
WIDE = replace(NARROW, title=f"{NARROW.title}, rows of 128", warps=(8,), sizes=((64,), (128,)), head_dims=(128,))
FP32 = tuple(
    replace(
        half,
        title=f"{half.title}, in fp32",
        shared=_layout(3, 3),
        phases=((Fragment(S), Fragment(O)),),
        dtypes=("fp32",),
    )
    for half in (NARROW, WIDE)
)
FORWARD = (NARROW, WIDE, *FP32)
STAGED = replace(
    BARRIERS,
    cite=f"{NARROW.cite}: all warps wait for each other between a product, the softmax and the next product, each of "
    "which begins with the loads of its own first slices",
)

XFORMERS = Implementation(
    "xformers",
    "CUTLASS's fused attention, as in xFormers and PyTorch (CUDA)",
    NARROW.cite,
    residency={"forward": FORWARD},
    execution={"forward": STAGED},
    tiles=shipped_tiles("xformers", "flash2"),
    front_end=front_end("xformers"),
)
