"""Residency of FlashAttention-4 on Blackwell: S, P and O in tensor memory, K and V in one ring of shared memory.

A block has one or two query tiles of 128 rows, each with four warps for its softmax; other warps load, issue the
products, rescale O and store it. A product of a pair of blocks reads half a tile of K or V from each. P takes the place
of half of S. There are as many stages as fit, a number for each width.
"""

from dataclasses import replace

from sympy import Integer, Rational

from iomodel.algorithms._flash4_backward import BACKWARD, BESIDE
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_r, stages
from iomodel.nests.tensors import K, O, Q, S, V, m

_CITE = "github.com/Dao-AILab/flash-attention, flash_attn/cute"
_HALF = Rational(1, 2)
_STATISTICS = Shared(m, Integer(2))
_SCORES = Shared(S, dtype="fp32", copies=256 / B_r)
"""Two tiles of 128 rows, even if there is one query tile."""
_RING = Reused((Shared(K, stages),), (Shared(V, stages),))
_HALVES = Reused((Shared(K, stages * _HALF),), (Shared(V, stages * _HALF),))
_APART, _SAME_PLACE = (Shared(Q), Shared(O, dtype="io")), (Reused((Shared(Q),), (Shared(O, dtype="io"),)),)
TWO_TILES = Residency(
    title="FlashAttention-4 forward, two query tiles: Q, O, a ring of K and V in shared memory; S, O in tensor memory",
    cite=f"{_CITE}: interface.py, flash_fwd_sm100.py",
    shared=(*_APART, _RING, _STATISTICS),
    phases=((Fragment(S),),),
    overhead=24,
    warps=(8,),
    stages=(3,),
    producers=8,
    producer_registers=64,
    mma="warpgroup",
    step=(128, 16),
    sizes=((256,), (64, 128)),
    exposed=0.0,
    head_dims=(128,),
    architectures=("sm_100", "sm_103"),
    tensor=(_SCORES, Shared(O, dtype="fp32")),
)
"""A thread of the softmax holds a row of S; the registers are those that the kernel gives to its warps, 192 of them.
The softmax of a tile runs beside the products of the other, which no warp waits for. Shared memory is timed as if an
instruction multiplied 64 rows, not 128: with 128 the products hide everything, and published times are exceeded."""
ONE_TILE = replace(
    TWO_TILES,
    title="FlashAttention-4 forward, one query tile: Q, O, a ring of K and V in shared memory; S, O in tensor memory",
    warps=(4,),
    producers=12,
    producer_registers=104,
    stages=(5,),
    sizes=((128,), (64, 128)),
)
PAIR = replace(
    TWO_TILES,
    title="FlashAttention-4 forward, a pair of blocks with two query tiles each: half of K and V in each block",
    shared=(*_APART, _HALVES, _STATISTICS),
    stages=(6,),
)
_UNEVEN = Shared(K, 2), Shared(V)
TWO_192, ONE_192 = (
    replace(
        tiles,
        title=f"{tiles.title}; head dimensions 192 and 128, O in the place of Q, three uneven stages",
        shared=(*_SAME_PLACE, *_UNEVEN, _STATISTICS),
        head_dims=(192,),
        value_dims=(128,),
        stages=(3,),
    )
    for tiles in (TWO_TILES, ONE_TILE)
)
PAIR_192 = replace(
    PAIR,
    title=f"{PAIR.title}; head dimensions 192 and 128, O in the place of Q",
    shared=(*_SAME_PLACE, _HALVES, _STATISTICS),
    head_dims=(192,),
    value_dims=(128,),
    stages=(5,),
)
PAIR_256 = replace(
    ONE_TILE,
    title="FlashAttention-4 forward, head dimension 256, block pairs: Q, half of K and V each; S, O in tensor memory",
    cite=f"{_CITE}: sm100_hd256_2cta_fmha_forward.py",
    shared=(Shared(Q), Shared(K), Shared(V)),
    producers=8,
    producer_registers=128,
    sizes=((128,), (128,)),
    head_dims=(256,),
    stages=(1,),
)
"""Two tiles of K and two of V, of which each block has half."""
FORWARD = (
    *(replace(TWO_TILES, head_dims=(width,), stages=(most,)) for width, most in ((64, 10), (96, 5), (128, 3))),
    *(replace(ONE_TILE, head_dims=(width,), stages=(most,)) for width, most in ((64, 12), (96, 7), (128, 5))),
    PAIR,
    TWO_192,
    ONE_192,
    PAIR_192,
    PAIR_256,
)

IN_SECTIONS = replace(
    PIPELINED,
    cite=f"{PIPELINED.cite}; github.com/Dao-AILab/flash-attention, flash_attn/cute/tile_scheduler.py, "
    "SingleTileLPTScheduler: the last query tiles first, of as many heads in turn as have K and V in 50 MiB",
    order="descending",
    fastest="heads of a section",
    section_bytes=50 << 20,
)
FLASH_ATTENTION_4 = Implementation(
    "flash-attention-4",
    "FlashAttention-4 (CuTe, Blackwell)",
    _CITE,
    residency={"forward": FORWARD, "backward": BACKWARD},
    execution={"forward": IN_SECTIONS, "backward": BESIDE},
    tiles=shipped_tiles("flash-attention-4", "flash2"),
)
