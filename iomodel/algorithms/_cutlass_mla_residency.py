"""Residency of CUTLASS's decoding on latents on Blackwell: a pair of blocks has 128 query heads, each half the latents.

A latent passes through a ring of slots, each with 64 of its columns for half of 128 keys, once for S and once for O.
S, of which there are two, and O are in tensor memory; P returns through shared memory.
"""

from dataclasses import replace

from sympy import Integer, Rational

from iomodel.algorithms._tiles import SPLITS
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.tensors import K, O, Q, S, m

_SLOTS = Rational(1, 2 * 9)
"""A slot: one of nine parts of the columns, for half of the keys."""
_TURN = Reused((Shared(S, 2, "io"),), (Shared(O, Rational(1, 2), "io"),))
HALF = Residency(
    title="CUTLASS decoding on latents, a pair of blocks: Q, a ring of 12 slots, P in shared memory; S, O in TMEM",
    cite="github.com/NVIDIA/cutlass at 0a664ab, examples/77_blackwell_fmha/kernel: "
    "sm100_fmha_mla_tma_warpspecialized.hpp",
    shared=(Shared(Q), Shared(K, 12 * _SLOTS), _TURN, Shared(m, Integer(2))),
    phases=((Fragment(S),),),
    overhead=24,
    warps=(4,),
    stages=(12,),
    producers=4,
    producer_registers=64,
    mma="warpgroup",
    step=(64, 16),
    sizes=((64,), (128,)),
    exposed=0.0,
    head_dims=(576,),
    value_dims=(512,),
    architectures=("sm_100", "sm_103"),
    features=("latent",),
    tensor=(Shared(S, 2, "fp32"), Shared(O, dtype="fp32")),
)
"""The softmax of one S runs beside the products of the other. Fewer than 128 heads are padded."""
QUARTER = replace(
    HALF,
    title="CUTLASS decoding on fp8 latents, a pair of blocks: Q, a ring of 24 slots, P in shared memory; S, O in TMEM",
    shared=(
        Shared(Q),
        Shared(K, 24 * _SLOTS),
        Reused((Shared(S, 2, "io"),), (Shared(O, 1, "io"),)),
        Shared(m, Integer(2)),
    ),
    stages=(24,),
    dtypes=("fp8",),
)
DECODE = (HALF, QUARTER)

CUTLASS_MLA = Implementation(
    "cutlass-mla",
    "CUTLASS's decoding on latents (Blackwell)",
    HALF.cite,
    residency={"forward": DECODE},
    searched={"splits": SPLITS, "packed": (False, True)},
)
