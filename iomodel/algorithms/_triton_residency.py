"""Residency of plain Triton attention kernels on NVIDIA devices: Q, K, V in shared memory; S, O in registers or TMEM.

The compiler takes the instruction: wgmma on sm_90 and tcgen05 on sm_100 for query tiles of 64 rows or more and four
warps, or eight, together; mma.sync otherwise. An instruction that runs on its own reads tiles while the next ones are
loaded, so that it needs one copy more than mma.sync. Without pipelining K and V follow one another in one place. Tiles
are powers of two; rows short of what the warps multiply are padded.
"""

from dataclasses import replace

from sympy import Expr, Integer, Max, Min, Rational, floor

from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_r, d_v, stages, warps
from iomodel.nests.tensors import K, O, Q, S, V, m

SHORT, TALL = (16, 32), (64, 128, 256)
_PIPELINED = Min(1, stages - 1)
_SHORTER_THAN_O = Min(1, Max(0, d_v - B_r))
"""1 if the warps lie along the columns of O, so that P goes through shared memory."""
_BARRIERS = 8 + 24 * _PIPELINED + 512 * Min(1, floor(warps / 8)) * Min(1, Max(0, 129 - B_r))
"""Barriers of tcgen05, and a maximum of each row where two warp groups share out its keys [B]."""


def _streamed(copies: Expr) -> Reused:
    """Place copies of K and V; without copies, one after the other in one place."""
    return Reused((Shared(K, copies), Shared(V, copies)), (Shared(K),), (Shared(V),))


def _registers(accumulators: Rational, scores: Rational, accesses: Rational) -> tuple[tuple[Fragment, ...], ...]:
    """Count the registers of a thread: accumulators, scores, and addresses of its loads."""
    loads = (Fragment(tile, "io", accesses / 4) for tile in (K, V))
    return ((Fragment(O, share=accumulators), Fragment(S, share=scores), *loads),)


MMA = Residency(
    title="Triton attention by mma.sync: Q, num_stages - 1 copies of K and V in shared memory; S and O in registers",
    cite="Triton 3.9.0, read off compiled kernels; triton-lang/triton, python/tutorials/06-fused-attention.py",
    shared=(Shared(Q), _streamed(stages - 1), Shared(S, _SHORTER_THAN_O, "io")),
    phases=_registers(Rational(3, 2), Rational(27, 20), Rational(4, 5)),
    overhead=45,
    warps=(1, 2, 4, 8, 16),
    stages=(1, 2, 3, 4, 5),
    split="tile",
    sizes=((*SHORT, *TALL), (*SHORT, *TALL)),
    padded=True,
    head_dims=(16, 32, 64, 128, 256),
    dtypes=("fp16", "bf16", "fp8"),
    architectures=("sm_80", "sm_86", "sm_89", "sm_120"),
)
"""The weights of the registers are set on compiled kernels, and not exact."""
MMA_SHORT = replace(
    MMA,
    title="Triton attention by mma.sync, up to 32 query rows: Q, num_stages - 1 copies of K and V in shared memory; "
    "S and O in registers",
    sizes=(SHORT, MMA.sizes[1]),
    architectures=("sm_90", "sm_100", "sm_103"),
)
WGMMA = replace(
    MMA,
    title="Triton attention by wgmma: Q, num_stages copies of K and V in shared memory; S and O in registers",
    shared=(Shared(Q), _streamed(stages * _PIPELINED)),
    phases=_registers(Rational(7, 5), Rational(13, 10), Rational(11, 5)),
    overhead=5,
    warps=(4, 8, 16),
    split="rows",
    mma="warpgroup",
    sizes=(TALL, MMA.sizes[1]),
    architectures=("sm_90",),
    repeated=True,
)
TCGEN05 = replace(
    WGMMA,
    title="Triton attention by tcgen05: Q, num_stages copies of K and V in shared memory; S, P and O in tensor memory",
    shared=(*WGMMA.shared, Shared(m, _BARRIERS / (4 * B_r))),
    phases=_registers(Integer(1), Rational(7, 5), Rational(1, 2)),
    overhead=44,
    warps=(4, 8),
    step=(64, 16),
    sizes=((128, 256), MMA.sizes[1]),
    architectures=("sm_100", "sm_103"),
    tensor=(Shared(S, dtype="fp32"), Shared(O, dtype="fp32"), Shared(S, _PIPELINED, "io")),
    repeated=False,
)
TCGEN05_SHORT = replace(
    TCGEN05,
    title="Triton attention by tcgen05, 64 query rows: Q, num_stages copies of K and V in shared memory; "
    "S, P and O in tensor memory",
    sizes=((64,), MMA.sizes[1]),
    tensor=(Reused((Shared(O, 4, "fp32"),), (Shared(S, 2, "fp32"),)),),
)
"""Half of the lanes of a column are empty, and the columns are those of two O or of one S."""
FORWARD = (MMA, MMA_SHORT, WGMMA, TCGEN05, TCGEN05_SHORT)
EXECUTION = replace(
    PIPELINED,
    cite=f"{PIPELINED.cite}; triton-lang/triton, lib/Dialect/TritonGPU/Transforms/Pipeliner: with two stages a tile is "
    "requested one trip before its use, and a product ends before the next request",
    waiting=2,
    awaited_clocks=500,
)
"""A trip with two stages takes 500 clocks more than with three, with one stage 500 more and the way of its bytes:
working rows of `flash2` in tests/measured/gpu/h200-sxm.jsonl.gz with one block on an SM."""
_TUNED = ((64, 128), (32, 64, 128))
TRITON = Implementation(
    "triton",
    "The plain attention kernel of Triton's tutorial, at the configurations that it tunes over",
    MMA.cite,
    residency={
        "forward": (
            replace(MMA, warps=(4, 8), stages=(2, 3, 4), sizes=_TUNED),
            replace(WGMMA, warps=(4, 8), stages=(2, 3, 4), sizes=_TUNED),
            replace(TCGEN05, warps=(4, 8), stages=(2, 3, 4), sizes=((128,), _TUNED[1])),
            replace(TCGEN05_SHORT, warps=(4, 8), stages=(2, 3, 4), sizes=((64,), _TUNED[1])),
        )
    },
    execution={"forward": EXECUTION},
)
