"""Residency of FlashMLA's decoding kernel on Hopper: multi-head latent attention of 64 query heads at a time.

Two warp groups work on two tiles of 64 latents at once. Each computes S of its own tile, and half of the columns of O
from both tiles: one P goes through shared memory, the other stays in registers.
"""

from sympy import Integer

from iomodel.algorithms._tiles import SPLITS
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Shared
from iomodel.nests.symbols import stages
from iomodel.nests.tensors import K, O, Q, S, m

DECODE = (
    Residency(
        title="FlashMLA decoding: Q, two stages of the latent, P in shared memory; S and O by columns in registers",
        cite="github.com/deepseek-ai/FlashMLA, csrc/sm90/decode/dense: config.h, traits.h, splitkv_mla.cuh",
        shared=(Shared(Q), Shared(K, stages), Shared(S, dtype="io"), Shared(m, Integer(5))),
        phases=((Fragment(S, share=Integer(2)), Fragment(S, "io", share=Integer(2)), Fragment(O)),),
        overhead=24,
        warps=(8,),
        stages=(2,),
        split="values",
        mma="warpgroup",
        sizes=((64,), (64,)),
        exposed=0.0,
        head_dims=(576,),
        value_dims=(512,),
        capability=("9.0", "9.0"),
        features=("latent",),
    ),
)
"""Five statistics per row: the maximum, two sums and two scales. The exponentials of one tile overlap with the products
of the other."""

FLASHMLA = Implementation(
    "flashmla",
    "FlashMLA's dense decoding (CUDA, Hopper)",
    DECODE[0].cite,
    residency={"forward": DECODE},
    searched={"splits": SPLITS, "packed": (False, True)},
)
