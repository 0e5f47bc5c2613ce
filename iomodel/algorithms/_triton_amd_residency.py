"""Residency of plain Triton attention kernels on AMD: Q in registers, K and V in LDS.

Without pipelining, Q on its way to registers, K and V follow one another in one place. With `stages` of 2 or more, K
and V have one copy less than that on CDNA 3, and as many on CDNA 4.
"""

from dataclasses import replace

from sympy import Expr, Max, Min, floor

from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_r, stages, warps
from iomodel.nests.tensors import K, O, Q, S, V

_THROUGH_LDS = Min(1, stages - 1) * Min(1, floor(B_r / 64)) * Min(1, Max(0, 32 * warps - B_r))
"""1 if P goes through LDS: with pipelining, where a wavefront has less than the 32 rows of an instruction."""


def _in_lds(copies: Expr) -> Reused:
    """Place Q on its way to registers, K or V, or copies of both with P, in one place."""
    both = Shared(K, copies), Shared(V, copies), Shared(S, _THROUGH_LDS, "io")
    return Reused(both, (Shared(Q),), (Shared(K),), (Shared(V),))


POWERS = (16, 32, 64, 128, 256)
CDNA_3 = Residency(
    title="Triton attention on CDNA 3: num_stages - 1 copies of K and V in LDS; Q, S and O in registers",
    cite="Triton 3.9.0 for gfx942, read off compiled kernels; tiles: github.com/ROCm/aiter, aiter/ops/triton",
    shared=(_in_lds(stages - 1),),
    phases=((*(Fragment(tile, "io") for tile in (Q, K, V, S)), Fragment(S, share=2), Fragment(O)),),
    overhead=72,
    warps=(1, 2, 4, 8),
    stages=(1, 2, 3),
    step=(16, 16),
    sizes=(POWERS, POWERS),
    padded=True,
    head_dims=(16, 32, 64, 128, 192, 256),
    dtypes=("fp16", "bf16", "fp8", "fp32"),
    architectures=("gfx90a", "gfx942"),
)
"""K and V wait in registers on their way to LDS, and P beside S. The constant is set on the compiled kernels."""
_COPIES = stages * Min(1, stages - 1)
CDNA_4 = replace(
    CDNA_3,
    title="Triton attention on CDNA 4: num_stages copies of K and V in LDS; Q, S and O in registers",
    cite="Triton 3.9.0 for gfx950, read off compiled kernels; tiles: github.com/ROCm/aiter, aiter/ops/triton",
    shared=(_in_lds(_COPIES),),
    stages=(1, 2, 3, 4, 5),
    architectures=("gfx950",),
)
"""Loads go to LDS directly, into one more copy; its padding, 4 % or less, is not counted."""
FORWARD = (CDNA_3, CDNA_4)

HEADS_OF_A_SLICE = replace(
    PIPELINED,
    cite=f"{PIPELINED.cite}; github.com/ROCm/aiter, aiter/ops/triton: the kernel of its forward pass counts heads "
    "first and gives each die consecutive ones, with remap_xcd",
    fastest="heads of a slice",
)
TRITON_AMD = Implementation(
    "triton-amd",
    "Plain Triton attention on AMD, with the tiles of AITER",
    CDNA_3.cite,
    execution={"forward": HEADS_OF_A_SLICE},
    residency={"forward": FORWARD},
    tiles=shipped_tiles("triton-amd", "flash2"),
)
