"""Residency of the Triton kernel that decodes attention on latents on AMD: heads and keys in tiles of 16.

A program loads the part of a latent that is also V and the rotary part one after the other; Q on its way to registers
and each of these parts follow one another in one place of LDS. Four wavefronts divide the columns of O.
"""

from sympy import Integer

from iomodel.algorithms._tiles import SPLITS
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import d, d_v
from iomodel.nests.tensors import K, O, Q

_PART = d_v / d
_EACH = Integer(4)
DECODE = (
    Residency(
        title="Triton decoding on latents on CDNA: Q or a part of the latent in LDS; Q, the latent and O in registers",
        cite="github.com/vllm-project/vllm at 0f49065, vllm/attention/ops/triton_decode_attention.py: "
        "_decode_grouped_att_m_fwd; a kernel of these tiles compiled by Triton 3.9.0 for gfx90a, gfx942 and gfx950",
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
    ),
)
"""Every wavefront has all of Q and of a key tile. The constant is set on the compiled kernel for gfx942."""

TRITON_MLA = Implementation(
    "triton-mla",
    "Triton decoding on latents on AMD, as in vLLM and SGLang",
    DECODE[0].cite,
    residency={"forward": DECODE},
    searched={"splits": SPLITS, "packed": (False, True)},
)
