"""Residencies of kernels that decode attention on latents (MLA): FlashMLA, CUTLASS on Blackwell, Triton, AITER.

FlashMLA takes 64 query heads at a time. Two warp groups work on two tiles of 64 latents at once. Each computes S of its
own tile, and half of the columns of O from both tiles: one P goes through shared memory, the other stays in registers.

In CUTLASS's kernel a pair of blocks has 128 query heads, each half the latents. A latent passes through a ring of
slots, each with 64 of its columns for half of 128 keys, once for S and once for O. S, of which there are two, and O are
in tensor memory; P returns through shared memory.

Triton's kernel has tiles of 16 heads and of 16 or 32 keys. A program loads the part of a latent that is also V twice,
for either product, and the rotary part by itself. On AMD, Q on its way to registers and each of these parts follow one
another in one place of LDS; on NVIDIA every stage but one has a place for each. Four warps divide the columns of O.

AITER's kernels for latents in fp8 have 128 or 64 rows, 16 for each wavefront, and two tiles of latents in LDS; on
CDNA 3 V is transposed there. Its assembly for fewer heads is closed: its table states the rows, and the rest is taken
to be as in the open kernels.
"""

from dataclasses import replace

from sympy import Integer, Rational

from iomodel.algorithms._ck_residency import READS_APART
from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._tiles import SPLITS, shipped_tiles
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import d, d_v, stages
from iomodel.nests.tensors import K, O, Q, S, m, split

HOPPER = (
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
    HOPPER[0].cite,
    residency={"forward": HOPPER},
    searched={"splits": SPLITS, "packed": (False, True)},
    front_end=front_end("flashmla"),
)
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
BLACKWELL = (HALF, QUARTER)

CUTLASS_MLA = Implementation(
    "cutlass-mla",
    "CUTLASS's decoding on latents (Blackwell)",
    HALF.cite,
    residency={"forward": BLACKWELL},
    searched={"splits": SPLITS, "packed": (False, True)},
    front_end=front_end("cutlass-mla"),
)
_PART = d_v / d
_EACH = Integer(4)
_SOURCE = "github.com/vllm-project/vllm at 0f49065, vllm/attention/ops/triton_decode_attention.py"
ON_AMD = Residency(
    title="Triton decoding on latents on CDNA: Q or a part of the latent in LDS; Q, the latent and O in registers",
    cite=f"{_SOURCE}: _decode_grouped_att_m_fwd; a kernel of these tiles compiled by Triton 3.9.0 for gfx90a, gfx942 "
    "and gfx950",
    shared=(Reused((Shared(Q, _PART),), (Shared(K, _PART),)),),
    phases=((Fragment(Q, "io", share=_EACH), Fragment(K, "io", share=_EACH * _PART), Fragment(O)),),
    overhead=7,
    warps=(4,),
    split="values",
    step=(16, 16),
    sizes=((16,), (16,)),
    padded=True,
    head_dims=(576,),
    value_dims=(512,),
    architectures=("gfx90a", "gfx942", "gfx950"),
    features=("latent",),
)
"""Every wavefront has all of Q and of a key tile. The constant is set on the compiled kernel for gfx942."""
ON_NVIDIA = replace(
    ON_AMD,
    title="Triton decoding on latents by mma.sync: Q, num_stages - 1 copies of latents and V, P in shared memory; "
    "O in registers",
    cite=f"{_SOURCE}: _decode_grouped_att_m_fwd; a kernel of these tiles compiled by Triton 3.9.0 for sm_80 to sm_120",
    shared=(Shared(Q), Shared(K, (stages - 1) * (1 + _PART)), Shared(S, dtype="io")),
    phases=((Fragment(O), Fragment(S), Fragment(K, "io", share=Rational(2, 3))),),
    overhead=82,
    stages=(2, 3),
    sizes=((16,), (16, 32)),
    architectures=("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"),
)
"""The share of a key tile in registers and the constant are set on the compiled kernels for sm_80."""
BY_TRITON = (ON_NVIDIA, ON_AMD)

TRITON_MLA = Implementation(
    "triton-mla",
    "Triton decoding on latents, as in vLLM and SGLang",
    ON_NVIDIA.cite,
    residency={"forward": BY_TRITON},
    searched={"splits": SPLITS, "packed": (False, True)},
    front_end=front_end("triton-mla"),
)

_PADDING = Rational(33, 32)
_PASS = Rational(1, 9) * Rational(17, 16)
"""A ninth of the columns of Q goes through LDS at a time; rows are padded against conflicts of banks."""
_HK = "github.com/ROCm/aiter at e4048607, csrc/kernels/mla/hk"
ROWS_128_CDNA4 = Residency(
    title="AITER's HipKittens decoding on fp8 latents, 128 rows: a part of Q and two tiles of latents in LDS; Q, S and "
    "O in registers",
    cite=f"{_HK}: mi35x_v32_fwd_decode_m16x8_fp8_fp8.cuh, hk_mla_buffer_managers.cuh",
    shared=(Shared(Q, _PASS), Shared(K, stages * _PADDING)),
    phases=((Fragment(Q, "io"), Fragment(S), Fragment(O)),),
    overhead=76,
    warps=(8,),
    stages=(2,),
    step=(16, 16),
    sizes=((128,), (64,)),
    padded=True,
    head_dims=(576,),
    value_dims=(512,),
    dtypes=("fp8",),
    architectures=("gfx950",),
    features=("latent",),
)
"""8 registers for operands in flight beside the 68 that the compiler allocates."""
ROWS_64_CDNA4 = replace(
    ROWS_128_CDNA4,
    title="AITER's HipKittens decoding on fp8 latents, 64 rows: two tiles of latents in LDS; Q, S and O in registers",
    cite=f"{_HK}: mi35x_v32_fwd_decode_m16x4_fp8_fp8.cuh, hk_mla_buffer_managers.cuh",
    shared=(Reused((Shared(Q, _PASS),), (Shared(K, stages * _PADDING),)),),
    warps=(4,),
    sizes=((64,), (64,)),
)
ROWS_128_CDNA3 = replace(
    ROWS_128_CDNA4,
    title="AITER's HipKittens decoding on fp8 latents, 128 rows: a part of Q, two tiles of latents and V transposed in "
    "LDS; Q, S and O in registers",
    cite=f"{_HK}: mi3xx_v32_fwd_decode_m16x8_fp8_fp8.cuh, hk_mla_buffer_managers.cuh",
    shared=(Shared(Q, _PASS), Shared(K, (stages + _PART) * _PADDING)),
    overhead=80,
    sizes=((128,), (32,)),
    architectures=("gfx942",),
)
FEW_ROWS = replace(
    ROWS_64_CDNA4,
    title="AITER's assembly decoding on fp8 latents, few rows: two tiles of latents in LDS; Q, S and O in registers",
    cite="github.com/ROCm/aiter at e4048607, hsa/gfx942/mla/mla_asm.csv and hsa/gfx950/mla/mla_asm.csv: 16 to 64 heads",
    split="values",
    sizes=((16, 32, 64), (32,)),
    architectures=("gfx942", "gfx950"),
)

AITER_MLA = Implementation(
    "aiter-mla",
    "AITER's decoding on latents in fp8: HipKittens, and assembly for few heads",
    _HK,
    residency={"forward": (ROWS_128_CDNA4, ROWS_64_CDNA4, ROWS_128_CDNA3, FEW_ROWS)},
    execution={"forward": replace(READS_APART, spread=(split,))},
    searched={"splits": SPLITS, "packed": (False, True)},
    tiles=shipped_tiles("aiter-mla", "split_kv"),
    front_end=front_end("aiter-mla"),
    symbols=("mla_v32_fwd_decode", "mla_a8w8"),
)
"""All wavefronts of a block wait for each other in every trip, so that reads from LDS are apart from products, as in
Composable Kernel: working rows of an MI355X in tests/measured/published_8.csv with 8,192 keys and more are then within
8 % in the median; with reads that hide behind products they would be 28 % too fast."""
