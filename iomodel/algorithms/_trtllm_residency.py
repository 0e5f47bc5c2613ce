"""Residency of TensorRT-LLM's own prefills before tensor memory (FMHA v2).

On Ampere, Ada and consumer Blackwell a block has four warps of 16 or 32 rows. A warp keeps its rows of Q and a whole
tile of keys and values in registers, or, at head dimension 256 and on sm_80, passes slices of 64 columns through shared
memory. The registers are those that nvcc 13.0 states for the source, which leave two blocks on an SM. On Hopper a block
has two warp groups of 64 rows each and one that loads; a group waits for each of its products.
"""

from collections.abc import Iterator
from dataclasses import replace

from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_c, B_r, d, stages
from iomodel.nests.tensors import K, O, Q, S, V

_CITE = "github.com/NVIDIA/TensorRT-LLM, cpp/kernels/fmha_v2"
_WARPS = 4
_OUT = (Shared(O, dtype="io"),)
_WHOLE = Residency(
    title="FMHA v2: Q, K, V in shared memory; Q, S, O and, in each warp, the tiles of K and V in registers",
    cite=f"{_CITE}: setup.py (enumerate_hmma_flash_kernels), fused_multihead_flash_attention_kernel_noloop.h",
    shared=(Reused((Shared(Q), Shared(K), Shared(V)), _OUT),),
    phases=((Fragment(S), Fragment(O), Fragment(Q, "io")),),
    overhead=0,
    warps=(_WARPS,),
    architectures=("sm_86", "sm_87", "sm_89", "sm_120", "sm_121"),
)
_WHOLE_FP8 = replace(
    _WHOLE,
    title=f"{_WHOLE.title}, fp8",
    cite=f"{_CITE}: setup.py (enumerate_qmma_flash_kernels), fused_multihead_flash_attention_kernel_noloop.h",
    shared=(Reused((Shared(Q), Shared(K), Shared(V)), (Shared(O, 64 / B_r, "fp32"),)),),
    dtypes=("fp8",),
    architectures=("sm_89", "sm_120", "sm_121"),
)
_SLICES = replace(
    _WHOLE,
    title="FMHA v2, tiled: two slices each of Q, K and V in shared memory; S and O in registers",
    cite=f"{_CITE}: setup.py, fused_multihead_flash_attention_kernel_noloop_tiled.h, src/fmha/traits.h",
    shared=(Reused((Shared(Q), Shared(K, 128 / d), Shared(V, 128 / B_c)), _OUT),),
    phases=((Fragment(S), Fragment(O)),),
)
_SLICES_256 = replace(
    _SLICES,
    architectures=("sm_80", *_WHOLE.architectures),
    shared=(Reused((Shared(Q, 128 / d), Shared(K, 128 / d), Shared(V, 64 / B_c)), _OUT),),
)


def _compiled(layout: Residency, *kernels: tuple[int, int, int, int]) -> Iterator[Residency]:
    """Iterate over the kernels of a layout: width, rows of a tile of queries and of keys, registers of a thread."""
    for width, rows, keys, registers in kernels:
        kept = rows * width // (4 if "fp8" in layout.dtypes else 2) * (len(layout.phases[0]) - 2)
        yield replace(
            layout,
            title=f"{layout.title}; head dimension {width}",
            overhead=registers - (rows * (keys + width) + kept) // (32 * _WARPS),
            head_dims=(width,),
            sizes=((rows,), (keys,)),
        )


WHOLE = (
    *_compiled(_WHOLE, (64, 64, 32, 194), (128, 64, 32, 255)),
    *_compiled(_WHOLE_FP8, (64, 128, 128, 255), (128, 64, 32, 215), (256, 64, 32, 255)),
)
SLICES = (
    *_compiled(replace(_SLICES, architectures=("sm_80",)), (64, 128, 128, 255), (128, 64, 128, 245)),
    *_compiled(_SLICES_256, (256, 64, 128, 255)),
)
WAITING = Residency(
    title="FMHA v2 on Hopper: Q, stages of K and V in shared memory; S and O in registers, no products beside the "
    "softmax of a warp group",
    cite=f"{_CITE}: setup.py (enumerate_hgmma_flash_warpspec_kernels), src/fmha/warpspec: compute.h, kernel_traits.h",
    shared=(Shared(Q), Shared(K, stages), Shared(V, stages)),
    phases=((Fragment(S), Fragment(O)),),
    overhead=24,
    warps=(8,),
    stages=(2, 4),
    producers=4,
    producer_registers=40,
    mma="warpgroup",
    head_dims=(64, 128, 192, 256),
    capability=("9.0", "9.0"),
)
WAITING_FP8 = replace(
    WAITING,
    title=f"{WAITING.title}; fp8, V transposed to a further stage",
    cite=f"{_CITE}: setup.py (enumerate_qgmma_flash_warpspec_kernels), src/fmha/warpspec: dma.h",
    shared=(Shared(Q), Shared(K, stages), Shared(V, stages + 1)),
    dtypes=("fp8",),
)
IN_TURN = replace(
    PIPELINED,
    cite=f"{_WHOLE.cite}: a warp loads the next keys from shared memory before its second product and the next values "
    "behind it, each with a barrier around",
    phases=(("matrix",), ("shared memory",), ("exp", "softmax")),
)
"""Operands in registers come from shared memory between products: the order of the instructions that nvcc 13.0 emits
for sm_89 and sm_120. The blocks of an SM hide each other's loads."""
WHOLE_TILES = Implementation(
    "trtllm-fmha-whole",
    "prefills of TensorRT-LLM (FMHA v2, CUDA)",
    _CITE,
    residency={"forward": WHOLE},
    execution={"forward": IN_TURN},
    tiles=shipped_tiles("trtllm-fmha-whole", "flash2"),
    aliases=("trtllm-fmha",),
    front_end=front_end("trtllm-fmha-whole"),
    symbols=("fmha_v2_flash_attention_",),
)
TILED = replace(
    WHOLE_TILES,
    name="trtllm-fmha-tiled",
    title="prefills of TensorRT-LLM (FMHA v2, CUDA), tiled: on sm_80, and at head dimension 256",
    residency={"forward": SLICES},
    execution={"forward": PIPELINED},
    tiles=shipped_tiles("trtllm-fmha-tiled", "flash2"),
    aliases=(),
)
"""Loads from shared memory alternate with products."""
HOPPER = replace(
    WHOLE_TILES,
    name="trtllm-fmha-hopper",
    title="prefills of TensorRT-LLM (FMHA v2, CUDA, Hopper)",
    residency={"forward": (WAITING, WAITING_FP8)},
    execution={"forward": PIPELINED},
    tiles=shipped_tiles("trtllm-fmha-hopper", "flash3"),
)
"""Blocks stay on their SMs and take the next tile of the grid from a counter."""
