"""Residency of SageAttention 2: int8 Q and K, V in fp16 or fp8, all in shared memory; S and O in registers.

The kernels take quantised tensors, which kernels of their own write; O has 16 bits and takes the place of Q, K and V.
"""

from dataclasses import replace

from sympy import Integer

from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.tensors import K, O, Q, S, V

_TWO = Integer(2)
_CITE = "github.com/thu-ml/SageAttention, csrc/qattn"
_OUT = (Shared(O, _TWO),)
FP16_VALUES = Residency(
    title="SageAttention 2 with V in fp16: Q, K, V in shared memory; S and O in registers",
    cite=f"{_CITE}: qk_int_sv_f16_cuda_sm80.cu",
    shared=(Reused((Shared(Q), Shared(K), Shared(V, _TWO)), _OUT),),
    phases=((Fragment(S), Fragment(O)),),
    overhead=48,
    warps=(4,),
    step=(32, 16),
    sizes=((128,), (64,)),
    head_dims=(64, 128),
    dtypes=("int8",),
)
FP8_VALUES = replace(
    FP16_VALUES,
    title="SageAttention 2 with V in fp8: Q, K, V in shared memory; S and O in registers",
    cite=f"{_CITE}: sm89_qk_int8_sv_f8_accum_f32_attn.cu",
    shared=(Reused((Shared(Q), Shared(K), Shared(V)), _OUT),),
    capability=("8.9",),
)
HOPPER = replace(
    FP8_VALUES,
    title="SageAttention 2 on Hopper with V in fp8: Q, K, V in shared memory; S, P and two O in registers",
    cite=f"{_CITE}: qk_int_sv_f8_cuda_sm90.cu",
    phases=((Fragment(S), Fragment(O)), (Fragment(S, "io"), Fragment(O, share=_TWO))),
    mma="warpgroup",
    step=None,
    sizes=((64,), (128,)),
    capability=("9.0", "9.0"),
)
FORWARD = (FP16_VALUES, FP8_VALUES, HOPPER)

SAGEATTENTION = Implementation(
    "sageattention",
    "SageAttention 2 (CUDA), int8 Q and K",
    _CITE,
    residency={"forward": FORWARD},
    tiles=shipped_tiles("sageattention", "flash2"),
    front_end=front_end("sageattention"),
)
