"""Residency of plain Triton attention kernels on AMD: Q in registers, K and V in LDS.

Without pipelining, Q on its way to registers, K and V follow one another in one place. With `stages` of 2 or more, K
and V have one copy less than that on CDNA 3, and as many on CDNA 4.
"""

from dataclasses import replace

from sympy import Min

from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import stages
from iomodel.nests.tensors import K, O, Q, S, V

CDNA_3 = Residency(
    title="Triton attention on CDNA 3: K and V in LDS; Q, S and O in registers",
    cite="Triton 3.9.0 for gfx942, read off compiled kernels; tiles: github.com/ROCm/aiter, aiter/ops/triton",
    shared=(Reused((Shared(K, stages - 1), Shared(V, stages - 1)), (Shared(Q),), (Shared(K),), (Shared(V),)),),
    phases=((*(Fragment(tile, "io") for tile in (Q, K, V, S)), Fragment(S, share=2), Fragment(O)),),
    overhead=72,
    warps=(1, 2, 4, 8),
    stages=(1, 2, 3),
    step=(16, 16),
    padded=True,
    head_dims=(16, 32, 64, 128, 192, 256),
    dtypes=("fp16", "bf16", "fp8", "fp32"),
    architectures=("gfx90a", "gfx942"),
)
"""K and V wait in registers on their way to LDS, and P beside S. The constant is set on the compiled kernels."""
_COPIES = stages * Min(1, stages - 1)
CDNA_4 = replace(
    CDNA_3,
    title="Triton attention on CDNA 4: K and V in LDS; Q, S and O in registers",
    cite="Triton 3.9.0 for gfx950, read off compiled kernels; tiles: github.com/ROCm/aiter, aiter/ops/triton",
    shared=(Reused((Shared(K, _COPIES), Shared(V, _COPIES)), (Shared(Q),), (Shared(K),), (Shared(V),)),),
    stages=(1, 2, 3, 4, 5),
    architectures=("gfx950",),
)
"""Loads go to LDS directly, into one more copy; its padding, 4 % or less, is not counted."""
FORWARD = (CDNA_3, CDNA_4)

TRITON_AMD = Implementation(
    "triton-amd",
    "Plain Triton attention on AMD, with the tiles of AITER",
    CDNA_3.cite,
    residency={"forward": FORWARD},
    tiles=shipped_tiles("triton-amd", "flash2"),
)
