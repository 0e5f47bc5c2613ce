"""Residency of FlashAttention-4 on Blackwell: S, P, O and the gradients in tensor memory.

Forward, a block has one or two query tiles of 128 rows, each with four warps for its softmax; other warps load, issue
the products, rescale O and store it. K and V pass through one ring of shared memory; a product of a pair of blocks
reads half a tile of K or V from each. P takes the place of half of S. There are as many stages as fit, a number for
each width.

Backward, a block has 128 queries and 128 keys, eight warps for the softmax and its gradient, and four that add dQ to
HBM slice by slice; other warps load tiles and issue products. From head dimension 128 on, a pair of blocks shares the
tile of queries: each holds its keys and half of Q and dO, and for dQ the keys of both at half the width. The counts are
those of a single block: the sums of dQ of a pair, which are added once, count twice. Head dimension 256, whose
gradients two separate kernels compute, has no layout.
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import Integer, Rational

from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.execution import PIPELINED, Execution
from iomodel.nests.implementation import PACKED, Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_r, d, stages
from iomodel.nests.tensors import LSE, D, K, O, Q, S, V, dK, dO, dP, dQ, dV, m

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
    turns=2,
    head_dims=(128,),
    architectures=("sm_100", "sm_103"),
    tensor=(_SCORES, Shared(O, dtype="fp32")),
    instruction_rows=128,
    parts=2,
)
"""A thread of the softmax holds a row of S; the registers are those that the kernel gives to its warps, 192 of them.
The products of a tile wait for the softmax of the keys before them, so two tiles take turns on the units."""
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


def _split(tiles: Residency, width: int, most: int) -> Residency:
    """Return a layout whose results are parts in fp32; from 128 value columns on they take the place of Q."""
    parts = Shared(O, dtype="fp32")
    return replace(
        tiles,
        title=f"{tiles.title}; the parts of O in fp32",
        shared=(*((Shared(Q), parts) if width < 128 else (Reused((Shared(Q),), (parts,)),)), _RING, _STATISTICS),
        head_dims=(width,),
        value_dims=(128,) if width > 128 else (),
        sizes=(tiles.sizes[0], (64,)) if width > 128 else tiles.sizes,
        stages=(most,),
    )


SPLIT_FORWARD = (
    *(_split(TWO_TILES, width, most) for width, most in ((64, 8), (96, 3), (128, 3), (192, 4))),
    *(_split(ONE_TILE, width, most) for width, most in ((64, 11), (96, 6), (128, 5), (192, 6))),
)
"""Without pairs of blocks; head dimensions 192 and 128 with tiles of 64 keys, and 256 not at all (use_2cta_instrs and
_get_fwd_config of interface.py)."""
_BACKWARD_CITE = f"{_CITE}: interface.py, flash_bwd_sm100.py"
_DS = Shared(dP, dtype="io")
_SUMS = Shared(dV, dtype="fp32"), Shared(dK, dtype="fp32")
BACKWARD_ALONE = Residency(
    title="FlashAttention-4 backward: K, V, Q, dO, dS, slices of dQ in shared memory; S, dP, dQ, dK, dV in "
    "tensor memory",
    cite=_BACKWARD_CITE,
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
BACKWARD_PAIR = replace(
    BACKWARD_ALONE,
    title="FlashAttention-4 backward, a pair of blocks: halves of Q and dO in either orientation, K twice",
    shared=(Shared(K, 2), Shared(V), Shared(Q, stages), Shared(dO), Shared(dP, Rational(3, 2), "io"),
            Shared(LSE, stages), Shared(D), Shared(dQ, 32 / d, "fp32")),
    stages=(1,),
    head_dims=(128,),
    tensor=(Reused((Shared(S, dtype="fp32"),), (Shared(dQ, _HALF, "fp32"),)), Shared(dP, dtype="fp32"), *_SUMS),
)  # fmt: skip
"""dQ lies in the place of half of S; half of dS goes to the other block."""
BACKWARD_192 = replace(
    BACKWARD_PAIR,
    title="FlashAttention-4 backward, head dimensions 192 and 128, a pair of blocks: halves of Q and dO, K twice",
    shared=(Shared(K, 2), Shared(V), Shared(Q, _HALF), Shared(dO, _HALF), _DS, Shared(LSE), Shared(D),
            Shared(dQ, 48 / d, "fp32")),
    head_dims=(192,),
    value_dims=(128,),
    exposed=1.0,
    tensor=(Shared(S, dtype="fp32"), Shared(dP, _HALF, "fp32"), *_SUMS),
)  # fmt: skip
"""Half of dP, from which dS takes 16 bits, lies in the place of half of S. Tensor memory is full, so that no product of
the next tile runs beside the softmax."""
BACKWARD_192_CAUSAL = replace(
    BACKWARD_192,
    title=f"{BACKWARD_192.title}; a slice of dQ at a time, as under a causal mask",
    shared=(*BACKWARD_192.shared[:-1], Shared(dQ, 32 / d, "fp32")),
)
BACKWARD = (BACKWARD_ALONE, BACKWARD_PAIR, BACKWARD_192, BACKWARD_192_CAUSAL)

BESIDE = Execution(
    cite=f"{_BACKWARD_CITE}: one warp issues the products, others compute P and dS, others add dQ to HBM",
    phases=(("matrix", "shared memory", "gradient"), ("exp", "softmax"), ("random",)),
    start_clocks=2000,
)
"""Loads, additions and the gradient of the softmax overlap with products. The cost of a block is read off windows of
128 keys on a GB200 (working rows of tests/measured/published_2.csv)."""

IN_SECTIONS = replace(
    PIPELINED,
    cite=f"{PIPELINED.cite}; github.com/Dao-AILab/flash-attention, flash_attn/cute/tile_scheduler.py, "
    "SingleTileLPTScheduler: the last query tiles first, of as many heads in turn as have K and V in 50 MiB",
    order="descending",
    fastest="heads of a section",
    section_bytes=50 << 20,
    start_clocks=3500,
)
"""A block that starts for one tile allocates tensor memory and waits for its first operands with no other block on its
SM. The cost is read off causal calls and windows of 1k to 16k tokens on a GB200, B200 and B300 (working rows of
tests/measured/published_2.csv to published_4.csv)."""
FLASH_ATTENTION_4 = Implementation(
    "flash-attention-4",
    "FlashAttention-4 (CuTe, Blackwell)",
    _CITE,
    residency={"forward": FORWARD, "backward": BACKWARD},
    execution={"forward": IN_SECTIONS, "backward": BESIDE},
    searched=PACKED,
    aliases=("flash4", "fa4", "flash-attn-4", "flashattention-4"),
    front_end=front_end("flash-attention-4"),
    symbols=("FlashAttentionForwardSm100", "FlashAttentionBackwardSm100"),
    tiles=shipped_tiles("flash-attention-4", "flash2"),
)

_CLOSED = (
    "closed: docs.nvidia.com/deeplearning/cudnn/frontend, Attention; layouts of FlashAttention-4, which take as long "
    "as its measured times in 16 bits (working rows of a GB200)"
)


def _closed(layouts: tuple[Residency, ...], name: str, cite: str, exposed: float | None = None) -> Iterator[Residency]:
    """Iterate over layouts in 16 bits and in fp8, where the exposed share may be another, of a closed kernel."""
    for layout in layouts:
        title = f"{layout.title.replace('FlashAttention-4', name)}, taken to be laid out as FlashAttention-4"
        yield (alike := replace(layout, title=title, cite=cite))
        share = alike.exposed if exposed is None else exposed
        yield replace(alike, title=f"{title}, fp8", dtypes=("fp8",), exposed=share)


CUDNN_BLACKWELL = Implementation(
    "cudnn-blackwell",
    "cuDNN's attention (closed, Blackwell)",
    _CLOSED,
    residency={
        "forward": tuple(_closed(FORWARD, "cuDNN", _CLOSED)),
        "backward": tuple(_closed(BACKWARD, "cuDNN", _CLOSED, exposed=0.2)),
    },
    execution={"forward": IN_SECTIONS, "backward": BESIDE},
    tiles=shipped_tiles("cudnn-blackwell", "flash2"),
    aliases=("cudnn",),
    front_end=front_end("cudnn-blackwell"),
    symbols=("sdpa_sm100_flash",),
)
"""In fp8 the backward pass hides four fifths of the softmax behind its products, by the working rows of a GB200 at head
dimensions 128 and 192. With a scale for each block of 32 elements (mxfp8) those rows take 1.08 times as long forward
and 1.2 times backward."""

_GENERATED = (
    "closed: github.com/NVIDIA/TensorRT-LLM, cpp/tensorrt_llm/kernels/trtllmGenKernels/fmha, whose kernels come "
    "compiled; layouts of FlashAttention-4 without pairs of blocks"
)
_GENERATED_FORWARD = tuple(layout for layout in FORWARD if layout not in (PAIR, PAIR_192))
TRTLLM_GEN = Implementation(
    "trtllm-gen",
    "attention of TensorRT-LLM and FlashInfer (trtllm-gen, closed, Blackwell)",
    _GENERATED,
    residency={"forward": tuple(_closed(_GENERATED_FORWARD, "trtllm-gen", _GENERATED))},
    execution={
        "forward": replace(
            IN_SECTIONS,
            cite=f"{PIPELINED.cite}; github.com/NVIDIA/TensorRT-LLM at 06875c2e, cpp/tensorrt_llm/kernels/"
            "fmhaDispatcher.cpp, and github.com/flashinfer-ai/flashinfer, csrc/trtllm_fmha_kernel_launcher.cu: "
            "prefills always take the persistent scheduler",
            order="persistent",
            fastest="tiles",
            section_bytes=None,
        )
    },
    tiles=shipped_tiles("trtllm-gen", "flash2"),
    aliases=("trtllm_mha", "flashinfer-trtllm"),
    front_end=front_end("trtllm-gen"),
    symbols=("fmhaSm100",),
)
"""The prefill kernel that vLLM, SGLang and TensorRT-LLM run on Blackwell. The tiles of a persistent block are dealt out
in the order of the grid, so that under a causal mask some SMs have more work than others."""
_GENERATED_DECODE = replace(
    TWO_TILES,
    title="trtllm-gen decoding, keys as rows: Q, a ring of K and V in shared memory; S, O in tensor memory",
    cite=_GENERATED,
    shared=(Shared(Q), _RING, _STATISTICS),
    warps=(4,),
    transposed=True,
    step=(128, 8),
    sizes=((8, 16, 32, 64), (128,)),
    turns=0,
    tensor=(Shared(S, dtype="fp32"), Shared(O, dtype="fp32")),
    dtypes=("fp16", "bf16", "fp8"),
)
"""Its product of 128 keys pads to 8 queries, where that of 128 queries would pad to 128."""
GENERATED_DECODE = tuple(
    replace(_GENERATED_DECODE, head_dims=(width,), stages=(most,)) for width, most in ((64, 10), (128, 5), (256, 3))
)
