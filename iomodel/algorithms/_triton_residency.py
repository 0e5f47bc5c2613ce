"""Residency of plain Triton attention kernels on NVIDIA devices: Q, K, V in shared memory; S, O in registers or TMEM.

The compiler takes the instruction, the side of the product along which the warps lie, the bytes and the registers;
:mod:`iomodel.placement.triton_check` has its rules. Tiles are powers of two; warps without rows of their own repeat
those of others.
"""

from dataclasses import replace

from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Shared
from iomodel.nests.tensors import K, O, Q, S, V

POWERS = (16, 32, 64, 128, 256)
ALONG_ROWS = Residency(
    title="Triton attention by mma.sync: Q, K and V in shared memory; S and O in registers",
    cite="Triton 3.9.0, read off compiled kernels; triton-lang/triton, python/tutorials/06-fused-attention.py",
    shared=(Shared(Q), Shared(K), Shared(V)),
    phases=((Fragment(O), Fragment(S)),),
    overhead=0,
    warps=(1, 2, 4, 8, 16),
    stages=(1, 2, 3, 4, 5),
    sizes=(POWERS, POWERS),
    padded=True,
    head_dims=(16, 32, 64, 128, 192, 256),
    dtypes=("fp16", "bf16", "fp8"),
    architectures=("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"),
    compiled="forward",
)
ALONG_COLUMNS = replace(
    ALONG_ROWS,
    title="Triton attention by mma.sync, fewer rows than columns of O: Q, K, V and P in shared memory; S and O in "
    "registers",
    shared=(*ALONG_ROWS.shared, Shared(S, dtype="io")),
    split="columns",
)
WGMMA = replace(
    ALONG_ROWS,
    title="Triton attention by wgmma: Q, K and V in shared memory; S and O in registers",
    mma="warpgroup",
    warps=(4, 8, 16),
    sizes=((64, 128, 256), POWERS),
    architectures=("sm_90",),
)
TCGEN05 = replace(
    WGMMA,
    title="Triton attention by tcgen05: Q, K and V in shared memory; S, P and O in tensor memory",
    warps=(4, 8),
    step=(64, 16),
    architectures=("sm_100", "sm_103"),
)
FORWARD = (ALONG_ROWS, ALONG_COLUMNS, WGMMA, TCGEN05)
EXECUTION = replace(
    PIPELINED,
    cite=f"{PIPELINED.cite}; triton-lang/triton, lib/Dialect/TritonGPU/Transforms/Pipeliner: with two stages a tile is "
    "requested one trip before its use, and a product ends before the next request",
    waiting=2,
    awaited_clocks=500,
)
"""A trip with two stages takes 500 clocks more than with three, with one stage 500 more and the way of its bytes:
working rows of `flash2` in tests/measured/gpu/h200-sxm.jsonl.gz with one block on an SM."""
TRITON = Implementation(
    "triton",
    "The plain attention kernel of Triton's tutorial, at any tile, warps and stages that its compiler takes",
    ALONG_ROWS.cite,
    residency={"forward": FORWARD},
    execution={"forward": EXECUTION},
)
