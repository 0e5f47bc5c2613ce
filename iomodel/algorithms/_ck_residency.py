"""Residency of Composable Kernel's fused attention on AMD: Q in registers, slices of K and V in LDS.

A wavefront has 32 rows or more. LDS holds slices of K, 32 columns wide, and of V, 32 keys high, with padding against
bank conflicts: three of them if loads go to LDS directly, else one.
"""

from dataclasses import replace

from sympy import Integer, Rational

from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_c, d
from iomodel.nests.tensors import K, O, Q, S, V

_SLICE_OF_K, _SLICE_OF_V = Rational(17, 16) * 32 / d, Rational(9, 8) * 32 / B_c
_THREE = Integer(3)
_REGISTERS = ((Fragment(Q, "io"), Fragment(S), Fragment(S, "io"), Fragment(O)),)
ASYNC = Residency(
    title="Composable Kernel forward: three slices of K or V in LDS; Q, S, P and O in registers",
    cite="github.com/ROCm/composable_kernel: example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py, "
    "include/ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs_async.hpp",
    shared=(Reused((Shared(K, _THREE * _SLICE_OF_K),), (Shared(V, _THREE * _SLICE_OF_V),)),),
    phases=_REGISTERS,
    overhead=64,
    warps=(4,),
    step=(32, 32),
    sizes=((128,), (128,)),
    head_dims=(128,),
    architectures=("gfx90a", "gfx942", "gfx950"),
)
ONE_SLICE = replace(
    ASYNC,
    title="Composable Kernel forward: a slice of K or V in LDS; Q, S, P and O in registers",
    cite="github.com/ROCm/composable_kernel: example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py, "
    "include/ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs.hpp",
    shared=(Reused((Shared(K, _SLICE_OF_K),), (Shared(V, _SLICE_OF_V),)),),
    head_dims=(256,),
)
FP8 = replace(
    ONE_SLICE,
    title="Composable Kernel forward in fp8: a slice of K or V in LDS; Q, S, P and O in registers",
    head_dims=(128, 256),
    dtypes=("fp8",),
)
_NARROW = ((128,), (64,))
FORWARD = (
    replace(ASYNC, head_dims=(32,), warps=(2,), sizes=_NARROW),
    replace(ASYNC, head_dims=(64,), sizes=_NARROW),
    ASYNC,
    ONE_SLICE,
    replace(FP8, head_dims=(64,), warps=(2,), sizes=_NARROW),
    FP8,
)

CK = Implementation(
    "ck",
    "Composable Kernel's fused attention (HIP)",
    ASYNC.cite,
    residency={"forward": FORWARD},
    tiles=shipped_tiles("ck", "flash2"),
)
