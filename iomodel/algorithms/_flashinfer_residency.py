"""Residency of FlashInfer's prefill template of FlashAttention-2: four warps along the queries, or along the keys.

A tile of 64 or 128 query rows divides the rows among warps. A tile of 16 rows, for decode and short queries, divides
the keys: each warp has an O of its own, and the four are added in shared memory after the last key. At head dimension
512 the warps divide the columns of O, with P in shared memory and one buffer for K and V.
"""

from dataclasses import replace

from sympy import Integer

from iomodel.algorithms._tiles import SPLITS, shipped_tiles
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.tensors import K, O, Q, S, V, m, split

_WARPS = 4
_OUT = (Shared(O, dtype="io"),)
_CITE = "github.com/flashinfer-ai/flashinfer, include/flashinfer/attention/prefill.cuh: KernelTraits, SharedStorageQKVO"
ROWS = Residency(
    title="FlashInfer prefill, rows shared out: Q, K, V in shared memory; S and O in registers",
    cite=_CITE,
    shared=(Reused((Shared(Q), Shared(K), Shared(V)), _OUT),),
    phases=((Fragment(S), Fragment(O)),),
    overhead=48,
    warps=(_WARPS,),
    step=(16, 16),
    sizes=((64, 128), ()),
    head_dims=(64, 128, 192, 256),
)
KEYS = replace(
    ROWS,
    title="FlashInfer prefill, keys shared out: Q, K, V in shared memory; S and an O of each warp in registers",
    shared=(
        Reused((Shared(Q), Shared(K), Shared(V)), (Shared(O, _WARPS, "fp32"), Shared(m, Integer(2 * _WARPS))), _OUT),
    ),
    phases=((Fragment(S), Fragment(O, share=_WARPS)),),
    split="columns",
    sizes=((16,), ()),
)
WIDE_KEYS = replace(
    KEYS,
    title="FlashInfer prefill, head dimension 512: keys, then columns of O divided; P shared, V in place of K",
    shared=(
        Reused((Shared(Q), Shared(K)), (Shared(Q), Shared(V)), _OUT),
        Shared(S, dtype="io"),
        Shared(m, Integer(2 * _WARPS)),
    ),
    phases=((Fragment(S), Fragment(O)),),
    head_dims=(512,),
)
WIDE_BOTH = replace(
    WIDE_KEYS,
    title="FlashInfer prefill, head dimension 512: rows and keys, then columns of O divided among two warps each",
    shared=(*WIDE_KEYS.shared[:-1], Shared(m, Integer(_WARPS))),
    split="tile",
    sizes=((32,), ()),
)
PREFILL = (ROWS, KEYS, WIDE_KEYS, WIDE_BOTH)

FLASHINFER = Implementation(
    "flashinfer",
    "FlashInfer's prefill template (CUDA)",
    _CITE,
    residency={"forward": PREFILL},
    searched={"packed": (False, True)},
    tiles=shipped_tiles("flashinfer", "flash2"),
)
FLASHINFER_SPLIT = replace(
    FLASHINFER,
    execution={"forward": replace(PIPELINED, spread=(split,), dependent=True)},
    searched={"splits": SPLITS, "packed": (False, True)},
)
"""The parts are merged by a dependent launch (include/flashinfer/attention/cascade.cuh, enable_pdl)."""
