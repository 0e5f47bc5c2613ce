"""Residency of the Triton kernel that decodes attention on latents: heads in tiles of 16, keys in tiles of 16 or 32.

A program loads the part of a latent that is also V twice, for either product, and the rotary part by itself. On AMD, Q
on its way to registers and each of these parts follow one another in one place of LDS; on NVIDIA every stage but one
has a place for each. Four warps divide the columns of O.
"""

from dataclasses import replace

from sympy import Integer, Rational

from iomodel.algorithms._tiles import SPLITS
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import d, d_v, stages
from iomodel.nests.tensors import K, O, Q, S

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
    title="Triton decoding on latents by mma.sync: Q, latents and V in stages, P in shared memory; O in registers",
    cite=f"{_SOURCE}: _decode_grouped_att_m_fwd; a kernel of these tiles compiled by Triton 3.9.0 for sm_80 to sm_120",
    shared=(Shared(Q), Shared(K, (stages - 1) * (1 + _PART)), Shared(S, dtype="io")),
    phases=((Fragment(O), Fragment(S), Fragment(K, "io", share=Rational(2, 3))),),
    overhead=82,
    stages=(2, 3),
    sizes=((16,), (16, 32)),
    architectures=("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"),
)
"""The share of a key tile in registers and the constant are set on the compiled kernels for sm_80."""
DECODE = (ON_NVIDIA, ON_AMD)

TRITON_MLA = Implementation(
    "triton-mla",
    "Triton decoding on latents, as in vLLM and SGLang",
    ON_NVIDIA.cite,
    residency={"forward": DECODE},
    searched={"splits": SPLITS, "packed": (False, True)},
)
