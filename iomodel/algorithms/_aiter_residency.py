"""Residency of AITER's assembly kernels of attention on CDNA 4, as far as their tables tell.

The kernels are binaries: their tables state the tiles, and nothing else is known here. K and V are taken to pass
through LDS, a tile of each, Q, S, P and O to be in registers, and a wavefront to have 32 rows, as in Composable Kernel.
The instructions of the softmax are taken to be scheduled between those of the products.
"""

from dataclasses import replace

from iomodel.algorithms._ck_residency import CK
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Shared
from iomodel.nests.tensors import K, O, Q, S, V

OF_192 = Residency(
    title="AITER's assembly forward, head dimensions 192 and 128: K and V in LDS; Q, S, P and O in registers",
    cite="github.com/ROCm/aiter at e4048607, hsa/gfx950/fmha_v3_fwd/fmha_fwd.csv: tiles of 128 rows and 128 keys",
    shared=(Shared(K), Shared(V)),
    phases=((Fragment(Q, "io"), Fragment(S), Fragment(S, "io"), Fragment(O)),),
    overhead=64,
    warps=(4,),
    step=(32, 32),
    sizes=((128,), (128,)),
    exposed=0.0,
    head_dims=(192,),
    value_dims=(128,),
    narrowest=192,
    dtypes=("bf16",),
    architectures=("gfx950",),
)
AITER_ASSEMBLY = Implementation(
    "aiter-assembly",
    "AITER's assembly kernels (closed: tiles from their tables)",
    OF_192.cite,
    execution={"forward": replace(CK.execution["forward"], cite=f"{OF_192.cite}; blocks as in Composable Kernel")},
    residency={"forward": (OF_192,)},
)
