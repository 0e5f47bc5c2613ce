"""Residency of CUTLASS's fused attention, as in xFormers and PyTorch: warps of 32 x 32 scores, P in shared memory.

Each warp computes 32 rows and 32 keys of S, and 32 rows and 32 columns of O, from slices of 32 terms of the operands in
shared memory: 4 warps for 64 keys, 8 for 128. Rows wider than the key tile keep O in HBM, as FlashAttention-1 does; the
time model leaves out its way there and back.

Backward, each product of a trip loads its operands from the L2 again, a block sums the rows of dO o O of all queries by
itself, and blocks lock the tiles of dQ that they add to. Rows wider than 128 keep dK and dV in HBM, where at most 200
blocks walk several key tiles each.
"""

from dataclasses import replace

from sympy import Expr, Integer, Min

from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.execution import BARRIERS
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import TF32_PRODUCTS, Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_c, B_r, d, d_v
from iomodel.nests.tensors import D, K, O, Q, S, V, dK, dO, dV, m

_SLICE = Integer(32)


def _stages(slices: int, terms: Expr) -> Expr:
    """Compute the share of an operand in the slices that are present at once."""
    return Min(1, slices * _SLICE / terms)


def _layout(slices: int, value_slices: int) -> tuple[Shared | Reused, ...]:
    first = Shared(Q, _stages(slices, d)), Shared(K, _stages(slices, d))
    second = Shared(S, dtype="io"), Shared(V, _stages(value_slices, B_c))
    return Reused(first, second, (Shared(O, dtype="fp32"),)), Shared(m, 4 + B_c / _SLICE)


def _layout_in_hbm(slices: int) -> tuple[Reused]:
    first = Shared(Q, _stages(slices, d)), Shared(K, _stages(slices, d))
    return (Reused(first, (Shared(S, dtype="io"), Shared(V, _stages(slices, B_c)))),)


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
IN_HBM = replace(
    NARROW,
    title="CUTLASS fused attention, wide rows: slices of Q and K, then P and slices of V in shared memory; O in HBM",
    shared=_layout_in_hbm(3),
    phases=((Fragment(S),),),
    sizes=((32,), (128,)),
    head_dims=(256,),
)
FP32 = tuple(
    replace(
        half,
        title=f"{half.title}, in fp32",
        shared=_layout(3, 3),
        phases=((Fragment(S), Fragment(O)),),
        dtypes=("fp32",),
        # OpMultiplyAddFastF32 in gemm_kernel_utils.h; by default the three larger products of the halves of its
        # operands (TensorFloat32Op::k3xTF32 in cutlass/gemm/warp/mma_tensor_op_fast_f32.h).
        tf32_products=TF32_PRODUCTS,
    )
    for half in (NARROW, WIDE)
)
TURING = tuple(
    replace(
        layout,
        title=f"{layout.title}; Turing, two slices at once",
        cite="github.com/pytorch/pytorch at 045a976c, aten/src/ATen/native/transformers/cuda/mem_eff_attention: "
        "kernel_forward.h (DefaultConfig::kStages), kernels/generate_kernels.py (sm_75)",
        shared=_layout_in_hbm(2) if layout is IN_HBM else _layout(2, 2),
        warps=(4,),
        sizes=NARROW.sizes if layout is NARROW else IN_HBM.sizes,
        dtypes=("fp16",),
        capability=("7.5", "7.5"),
    )
    for layout in (NARROW, WIDE, IN_HBM)
)
FORWARD = (NARROW, WIDE, IN_HBM, *FP32, *TURING)
_GRADIENTS = (Fragment(dK), Fragment(dV))
BACKWARD_NARROW = Residency(
    title="CUTLASS fused attention backward: slices of operands, P and dS in shared memory; dK and dV in registers",
    cite="github.com/pytorch/pytorch at 00afd8f2, aten/src/ATen/native/transformers/cuda: mem_eff_attention/"
    "kernel_backward.h, kernels/generate_kernels.py; attention_backward.cu",
    shared=(
        Shared(D),
        Shared(K, _stages(3, d)),
        Shared(S, dtype="io"),
        Shared(dO, _stages(3, B_r)),
        Shared(dO, _stages(3, d_v)),
        Shared(V, _stages(3, d_v)),
    ),
    phases=((Fragment(S), *_GRADIENTS),),
    overhead=64,
    split="tile",
    warps=(4,),
    step=(32, 32),
    sizes=((64,), (64,)),
    head_dims=(64,),
    restaged=True,
)
BACKWARD_MIDDLE = replace(
    BACKWARD_NARROW,
    title=f"{BACKWARD_NARROW.title}, rows of 128",
    overhead=32,
    warps=(16,),
    sizes=((128,), (128,)),
    head_dims=(128,),
)
BACKWARD_WIDE = replace(
    BACKWARD_NARROW,
    title="CUTLASS fused attention backward, wide rows: slices of operands, P, dS in shared memory; dK, dV in HBM",
    shared=(
        Shared(D),
        Shared(S, dtype="io"),
        Reused(
            (Shared(V, _stages(3, d_v)), Shared(dO, _stages(3, d_v))),
            (Shared(S, dtype="io"), Shared(K, _stages(3, B_c))),
        ),
    ),
    phases=((Fragment(S),),),
    overhead=160,
    warps=(8,),
    sizes=((128,), (64,)),
    head_dims=(256,),
    most_blocks=200,
    added_clocks=0.16,
)
BACKWARD_SMALL = replace(
    BACKWARD_WIDE,
    title=f"{BACKWARD_WIDE.title}; on sm_86 and sm_89, rows of 128",
    overhead=64,
    warps=(4,),
    sizes=((64,), (64,)),
    head_dims=(128,),
    capability=("8.6", "8.9"),
)
BACKWARD = (BACKWARD_NARROW, BACKWARD_MIDDLE, BACKWARD_SMALL, BACKWARD_WIDE)
STAGED = replace(
    BARRIERS,
    cite=f"{NARROW.cite}: all warps wait for each other between a product, the softmax and the next product, each of "
    "which begins with the loads of its own first slices",
)

SDPA = ("sdpa", "scaled-dot-product-attention")
"""Names of the function of PyTorch, which takes FlashAttention-2 where it runs, and these kernels elsewhere."""
XFORMERS = Implementation(
    "xformers",
    "CUTLASS's fused attention, as in xFormers and PyTorch (CUDA)",
    NARROW.cite,
    residency={"forward": FORWARD, "backward": BACKWARD},
    execution={"forward": STAGED, "backward": STAGED},
    tiles=shipped_tiles("xformers", "flash2"),
    aliases=SDPA,
    front_end=front_end("xformers"),
    symbols=("fmha_cutlassF", "fmha_cutlassB"),
)
