"""Residency of Composable Kernel's fused attention on AMD, forward and backward.

Forward, Q is in registers and a wavefront has 32 rows or more. LDS holds slices of K, 32 columns wide, and of V, 32
keys high, with padding against bank conflicts: three of them if loads go to LDS directly, else one. Backward, K with
its transpose and V pass through LDS to registers, where they stay, and Q and dO with theirs take their place.
"""

from dataclasses import replace

from sympy import Integer, Rational

from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_c, d
from iomodel.nests.tensors import LSE, D, K, O, Q, S, V, dK, dO, dP, dQ, dV

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
    replace(ASYNC, head_dims=(192,), value_dims=(128,)),
    replace(ASYNC, head_dims=(192,), value_dims=(192,)),
    ONE_SLICE,
    replace(FP8, head_dims=(64,), warps=(2,), sizes=_NARROW),
    replace(FP8, head_dims=(128,)),
    replace(FP8, head_dims=(192,), value_dims=(128,)),
    replace(FP8, head_dims=(256,)),
)
_AND_TRANSPOSED = Integer(2)
_KEYS, _QUERIES = Shared(K, _AND_TRANSPOSED), (Shared(Q, _AND_TRANSPOSED), Shared(dO, _AND_TRANSPOSED))
OF_128 = Residency(
    title="Composable Kernel backward: K, K^T, V in registers; Q, dO, their transposes and dS in LDS",
    cite="github.com/ROCm/composable_kernel: example/ck_tile/01_fmha/codegen/ops/fmha_bwd.py, "
    "include/ck_tile/ops/fmha/pipeline: block_fmha_bwd_dq_dk_dv_pipeline_kr_ktr_vr_iglp.hpp, "
    "block_fmha_bwd_pipeline_default_policy.hpp",
    shared=(Reused((_KEYS,), (Shared(V),), (*_QUERIES, Shared(LSE), Shared(D), Shared(dP, dtype="io"))),),
    phases=(
        (
            *(Fragment(K, "io", _AND_TRANSPOSED), Fragment(V, "io"), Fragment(S), Fragment(dP)),
            *(Fragment(dK), Fragment(dV), Fragment(dQ)),
        ),
    ),
    overhead=64,
    warps=(4,),
    split="columns",
    step=(16, 16),
    sizes=((16,), (128,)),
    head_dims=(128,),
    architectures=ASYNC.architectures,
)
BACKWARD = (
    replace(OF_128, head_dims=(32,), sizes=((32,), (128,))),
    replace(OF_128, head_dims=(64,), sizes=((32,), (128,))),
    OF_128,
    replace(OF_128, head_dims=(256,), sizes=((16,), (64,))),
)

READS_APART = replace(
    PIPELINED,
    phases=(("matrix",), ("shared memory",), *PIPELINED.phases[1:]),
)
"""The one wavefront of a block on a SIMD reads operands from LDS, multiplies and computes its softmax in turn. Working
rows of an MI355X in tests/measured/published_4.csv are then within 6 % in the median; with reads that hide behind
products they would be 30 % (forward) and 40 % (backward) too fast."""
HEADS_IN_TURN = replace(
    READS_APART,
    cite=f"{PIPELINED.cite}; github.com/ROCm/composable_kernel: include/ck_tile/ops/fmha/kernel/fmha_fwd_kernel.hpp, "
    "GridSize, has the heads as its first dimension; GetTileIndex starts the last query tiles of a mask first",
    order="descending",
    fastest="heads",
)
CK = Implementation(
    "ck",
    "Composable Kernel's fused attention (HIP)",
    ASYNC.cite,
    execution={"forward": HEADS_IN_TURN, "backward": READS_APART},
    residency={"forward": FORWARD, "backward": BACKWARD},
    tiles=shipped_tiles("ck", "flash2"),
    front_end=front_end("ck"),
    symbols=("FmhaFwd", "FmhaBwd"),
)
