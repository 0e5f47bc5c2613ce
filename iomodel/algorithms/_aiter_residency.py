"""Residency of AITER's kernels of attention on CDNA 3 and 4: assembly, as far as tables and launches tell, and Gluon.

The assembly kernels are binaries: their tables state the tiles, their launches the threads and the grid, and nothing
else is known here. Forward, K and V are taken to pass through LDS, a tile of each, Q, S, P and O to be in registers,
and a wavefront to have 32 rows, as in Composable Kernel; backward, K and V to stay in registers, and Q, dO and dS to
pass through LDS. The instructions of the softmax are taken to be scheduled between those of the products. Under a
causal mask a block takes a tile from either end of the sequence.

The kernel that decodes with pages is open. Its four wavefronts divide a partition of 256 keys among them for S and the
columns of O among them for O; K and V go to registers as the products take them, and P changes its owners through LDS.
"""

from dataclasses import replace

from iomodel.algorithms._ck_residency import OF_128
from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._tiles import SPLITS, shipped_tiles
from iomodel.nests.execution import PIPELINED
from iomodel.nests.front_end import FrontEnd
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.tensors import LSE, D, K, O, Q, S, V, dO, dP, split

_AT = "github.com/ROCm/aiter at e4048607"
OF_192 = Residency(
    title="AITER's assembly forward, head dimensions 192 and 128: K and V in LDS; Q, S, P and O in registers",
    cite=f"{_AT}, hsa/gfx950/fmha_v3_fwd/fmha_fwd.csv: tiles of 128 rows and 128 keys",
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
OF_128_CDNA4 = replace(
    OF_192,
    title="AITER's assembly forward, head dimension 128: K and V in LDS; Q, S, P and O in registers",
    cite=f"{_AT}, hsa/gfx950/fmha_v3_fwd/fmha_fwd.csv: tiles of 256 rows and 64 keys; csrc/cpp_itfs/mha_fwd.cu",
    warps=(8,),
    sizes=((256,), (64,)),
    head_dims=(128,),
    value_dims=(),
    narrowest=128,
)
OF_128_CDNA3 = replace(
    OF_128_CDNA4,
    cite=f"{_AT}, hsa/gfx942/fmha_v3_fwd/fmha_fwd.csv: tiles of 256 rows and 32 keys; csrc/cpp_itfs/mha_fwd.cu",
    sizes=((256,), (32,)),
    architectures=("gfx942",),
)
BACKWARD_CDNA4 = replace(
    OF_128,
    title="AITER's assembly backward, head dimension 128: K and V in registers; Q, dO and dS in LDS",
    cite=f"{_AT}, hsa/gfx950/fmha_v3_bwd/fmha_bwd_dqdkdv.csv: 256 keys, 16 rows; csrc/cpp_itfs/mha_bwd.cu",
    sizes=((16,), (256,)),
    shared=(Reused((Shared(K),), (Shared(Q), Shared(dO), Shared(LSE), Shared(D), Shared(dP, dtype="io"))),),
    phases=((Fragment(K, "io"), Fragment(V, "io"), *OF_128.phases[0][2:]),),
    narrowest=128,
    dtypes=("bf16",),
    architectures=("gfx950",),
)
BACKWARD_CDNA3 = replace(
    BACKWARD_CDNA4,
    cite=f"{_AT}, hsa/gfx942/fmha_v3_bwd/fmha_bwd_dqdkdv.csv: 192 keys, 16 rows; csrc/cpp_itfs/mha_bwd.cu",
    sizes=((16,), (192,)),
    architectures=("gfx942",),
)
_PAIRED = f"{_AT}, csrc/cpp_itfs: mha_fwd.cu, get_grid_dim, and mha_bwd.cu, halve the tiles of a causal grid"
AITER_ASSEMBLY = Implementation(
    "aiter-assembly",
    "AITER's assembly kernels (closed: tiles from their tables)",
    OF_192.cite,
    execution={
        "forward": replace(PIPELINED, cite=_PAIRED, order="paired"),
        "backward": replace(PIPELINED, cite=_PAIRED, order="paired"),
    },
    residency={
        "forward": (OF_128_CDNA4, OF_128_CDNA3, OF_192),
        "backward": (BACKWARD_CDNA4, BACKWARD_CDNA3),
    },
    front_end=FrontEnd(
        # can_impl_fmha_v3_fwd and can_impl_fmha_v3_bwd_gfx950: no bias, dropout or window, no order of sums.
        cite=f"{_AT}, aiter/ops/mha.py",
        features=(),
        backward=(),
        deterministic=0,
        masks=("full", "causal"),
        packs="never",
    ),
)
PAGED = Residency(
    title="AITER's Gluon decoding: Q and P in LDS; K, V, S and O in registers",
    cite=f"{_AT}, aiter/ops/triton/gluon/pa_decode_gluon.py: paged_attention_decode_v2_gluon_dot_kernel",
    shared=(Shared(Q), Shared(S, dtype="io")),
    phases=((Fragment(K, "io"), Fragment(S)), (Fragment(V, "io"), Fragment(S, "io"), Fragment(O))),
    overhead=64,
    warps=(4,),
    split="columns",
    step=(16, 16),
    sizes=((16, 32, 64), (256,)),
    padded=True,
    head_dims=(64, 128, 256),
    dtypes=("fp16", "bf16", "fp8"),
    architectures=("gfx942", "gfx950"),
)
AITER_GLUON = Implementation(
    "aiter-gluon",
    "AITER's decoding with pages in Gluon",
    PAGED.cite,
    residency={"forward": (PAGED,)},
    execution={"forward": replace(PIPELINED, spread=(split,), waiting=1, awaited_clocks=2000)},
    searched={"splits": SPLITS, "packed": (False, True)},
    tiles=shipped_tiles("aiter-gluon", "split_kv"),
    front_end=front_end("aiter-gluon"),
    symbols=("paged_attention_decode",),
)
"""A block waits for its K, then for its V, neither of which it requests ahead: working rows of an MI350X in
tests/measured/published_7.csv, 8,192 keys of one sequence."""
