"""Residency and execution of FlashAttention-3: warp groups, TMA and producers on Hopper; warps alone on Ampere and Ada.

There is one backward kernel per row width. For widths up to 128 the matrix instructions compute S^T, 64 keys per warp
group, so that P^T and dS^T are operands in registers; wider kernels divide the keys as columns of S, with P and dS in
shared memory. dQ goes through shared memory to a separate warp, which adds it to HBM.
"""

from dataclasses import replace

from sympy import Integer, Rational

from iomodel.nests.execution import PIPELINED, Execution
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import stages
from iomodel.nests.tensors import D, K, LSE_log2, O, Q, S, V, dK, dO, dP, dQ, dV, m

PAGED = 0.04
"""Time of an SM for a byte of a key tile that is not of one page [clk/B], copied by 16 bytes with an address for each
row (pagedkv_tma in hopper/flash_api.cpp): the time of the record of vLLM 0.26 with head dimension 256, 16,384 causal
queries and pages of 16 keys, 1,516 us, which such copies bound (1,382 us without pages). The kernel of April 2025 was
slower (292 us for 16 x 32 heads on 2,000 keys with pages of 8, tests/measured/published_2.csv; 189 us by this time)."""
_SHARED = (Shared(Q), Shared(K, stages), Reused((Shared(V, stages),), (Shared(O, dtype="io"),)))
_OVERLAP = ((Fragment(S), Fragment(S, "io"), Fragment(O)),)
P_IN_REGISTERS = Residency(
    title="FlashAttention-3 forward: Q, two stages of K and V in shared memory; S, P and O in registers",
    cite="github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
    shared=_SHARED,
    phases=_OVERLAP,
    overhead=24,
    warps=(4, 8, 12),
    stages=(2,),
    producers=4,
    mma="warpgroup",
    exposed=0.85,
    head_dims=(64, 96, 128, 192, 256, 512),
    capability=("9.0", "9.0"),
)
P_IN_SHARED = replace(
    P_IN_REGISTERS,
    title="FlashAttention-3 forward: Q, P, two stages of K and V in shared memory; S and O in registers",
    shared=(*_SHARED, Shared(S, dtype="io")),
    phases=((Fragment(S), Fragment(O)),),
)
NO_OVERLAP = replace(
    P_IN_REGISTERS,
    title="FlashAttention-3 forward without overlap: P takes the place of S in registers",
    exposed=1.0,
    phases=((Fragment(S), Fragment(O)),),
)
FP8 = replace(
    P_IN_REGISTERS,
    title="FlashAttention-3 forward in fp8: V is transposed to another two stages of shared memory",
    shared=(Shared(Q), Shared(K, stages), Reused((Shared(V, 2 * stages),), (Shared(O, dtype="io"),))),
    dtypes=("fp8",),
)
_TWO = Integer(2)
VALUE_COLUMNS = Residency(
    title="FlashAttention-3 forward with wide values: one warp group computes S, two share out the columns of O",
    cite="github.com/Dao-AILab/flash-attention, hopper: mainloop_fwd_sm90_tma_gmma_ws.hpp, tile_size.h",
    shared=(*_SHARED, Shared(S, dtype="io"), Shared(m, _TWO)),
    phases=((Fragment(S, share=_TWO), Fragment(O)),),
    overhead=24,
    warps=(8,),
    stages=(2,),
    producers=4,
    split="values",
    mma="warpgroup",
    head_dims=(64,),
    value_dims=(512,),
    capability=("9.0", "9.0"),
)
"""The other warp group multiplies P by V from shared memory, rescaled by one number per row and stage."""
LATENT = replace(
    VALUE_COLUMNS,
    title="FlashAttention-3 forward on a latent: V is part of K; two warp groups share out the columns of O",
    shared=(Shared(Q), Shared(K, stages), Shared(S, dtype="io"), Shared(m, _TWO)),
    head_dims=(576,),
    value_dims=(512,),
    features=("latent",),
)
AMPERE = Residency(
    title="FlashAttention-3 forward on sm_8x: Q, K, V in shared memory, S and O in registers",
    cite="github.com/Dao-AILab/flash-attention, hopper: mainloop_fwd_sm80.hpp, flash_fwd_kernel_sm80.h, tile_size.h",
    shared=(Shared(Q), Reused((Shared(K, stages), Shared(V, stages)), (Shared(O, dtype="io"),))),
    phases=((Fragment(S), Fragment(O)),),
    overhead=24,
    stages=(1, 2),
    head_dims=(64, 96, 128, 192, 256),
    capability=("8.0", "8.9"),
)
AMPERE_Q_IN_REGISTERS = replace(
    AMPERE,
    title="FlashAttention-3 forward on sm_8x: K and V in shared memory, where V takes the place of Q; Q in registers",
    shared=(
        Reused(
            (Shared(K, stages), Shared(V, stages)),
            (Shared(K, stages), Shared(Q)),
            (Shared(O, dtype="io"),),
            (Shared(O, dtype="io"), Shared(Q), Shared(V, -stages)),
        ),
    ),
    phases=((Fragment(S), Fragment(O), Fragment(Q, "io")),),
    warps=(8,),
)
"""O starts where V does, so that the storage in front of V grows if O is larger than K and V."""
FP8_WAITING = replace(
    FP8,
    title="FlashAttention-3 forward in fp8 of 2024: a warp group waits for each product; V is transposed",
    cite="github.com/Dao-AILab/flash-attention at commit 5018ac6, hopper: mma_fp8 of "
    "mainloop_fwd_sm90_tma_gmma_ws.hpp, flash_fwd_launch_template.h",
    exposed=1.0,
    phases=((Fragment(S), Fragment(O)),),
    stages=(2, 4),
)
FORWARD = (P_IN_REGISTERS, P_IN_SHARED, NO_OVERLAP, FP8, VALUE_COLUMNS, LATENT, AMPERE, AMPERE_Q_IN_REGISTERS)
FORWARD_2024 = tuple(FP8_WAITING if layout is FP8 else layout for layout in FORWARD)

_STREAMED = (Shared(K), Shared(V), Shared(Q, _TWO), Shared(dO, stages), Shared(LSE_log2, _TWO), Shared(D, _TWO))
_P, _DS, _DQ = Shared(S, stages, "io"), Shared(dP, stages, "io"), Shared(dQ, dtype="fp32")
_GRADIENTS = (Fragment(dK), Fragment(dV))
_SCORES = (Fragment(S), Fragment(dP), *_GRADIENTS)
_OPERANDS = (Fragment(S, "io"), Fragment(dP, "io"), Fragment(dQ), *_GRADIENTS)
TO_128 = Residency(
    title="FlashAttention-3 backward, head dimension 128: K, V, Q, dO, dS, dQ shared; S, dP, dK, dV in registers",
    cite="github.com/Dao-AILab/flash-attention, hopper: flash_bwd_launch_template.h, flash_bwd_kernel_sm90.h, "
    "mainloop_bwd_sm90_tma_gmma_ws.hpp",
    shared=(*_STREAMED, _DS, _DQ),
    phases=(_SCORES, _OPERANDS),
    overhead=24,
    warps=(8, 12),
    stages=(1, 2),
    producers=4,
    split="columns",
    mma="warpgroup",
    transposed=True,
    head_dims=(128,),
    capability=("9.0", "9.0"),
)
"""The source issues the product dP before the exponentials of a tile, but the backward pass of arXiv:2407.08608, Figure
6, at head dimension 128 (calibration rows) takes as long as if nothing hid them."""
TO_96 = replace(
    TO_128,
    title="FlashAttention-3 backward, head dimension 96: as for 128, with V in registers too",
    phases=tuple((*phase, Fragment(V, "io")) for phase in TO_128.phases),
    head_dims=(96,),
)
TO_64 = replace(TO_128, title="FlashAttention-3 backward, head dimension 64: as for 128", head_dims=(64,))
TO_192 = replace(
    TO_128,
    title="FlashAttention-3 backward, head dimension 192: K, V, Q, dO, P, dS, dQ shared; S, dP, dK, dV in registers",
    shared=(*_STREAMED, _P, _DS, _DQ),
    phases=(_SCORES, (Fragment(dQ), *_GRADIENTS)),
    warps=(12,),
    producer_registers=32,
    transposed=False,
    head_dims=(192,),
)
TO_256 = replace(
    TO_192,
    title="FlashAttention-3 backward, head dimension 256: as for 192, but half of dQ at a time, in registers alone",
    shared=(*_STREAMED, _P, _DS),
    phases=(_SCORES, (Fragment(dQ, share=Rational(1, 2)), *_GRADIENTS)),
    warps=(8,),
    producer_registers=24,
    head_dims=(256,),
)
BACKWARD = (TO_64, TO_96, TO_128, TO_192, TO_256)
_CLOSED = (
    "closed: docs.nvidia.com/cudnn, Attention; layouts of FlashAttention-3, which take as long as its measured times "
    "(working rows of an H200)"
)
CUDNN_FORWARD = replace(
    P_IN_REGISTERS,
    title="cuDNN forward on Hopper, taken to be laid out as FlashAttention-3: Q, K, V in shared memory, O in registers",
    cite=_CLOSED,
    head_dims=(64, 96, 128, 192, 256),
)
CUDNN_BACKWARD = tuple(
    replace(layout, title=f"{layout.title}; cuDNN, taken to be laid out alike", cite=_CLOSED, sizes=sizes)
    for layout, sizes in (*((layout, ((), ())) for layout in BACKWARD[:-1]), (TO_256, ((64,), (48,))))
)
"""At head dimension 256 the tile of the working rows whose times come nearest to theirs, 64 x 48."""

IN_SECTIONS = replace(
    PIPELINED,
    cite="arXiv:2407.08608, sections 3.1 and 3.2; github.com/Dao-AILab/flash-attention, hopper: tile_scheduler.hpp, "
    "DynamicPersistentTileScheduler, which starts the last query tiles first, of as many heads in turn as have K and V "
    "in 32 MiB; the kernels of the paper start them in the order of the grid",
    order="descending",
    fastest="heads of a section",
    section_bytes=32 << 20,
)
ADDED_BESIDE = Execution(
    cite="arXiv:2407.08608, Appendix B.1; github.com/Dao-AILab/flash-attention, hopper: "
    "mainloop_bwd_sm90_tma_gmma_ws.hpp: one warp loads, another adds tiles of dQ to HBM while the next ones are made",
    phases=(("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",)),
)
"""Loads and additions overlap with products; the exposed part of the softmax and its entire gradient do not."""
ADDED_IN_SECTIONS = replace(
    ADDED_BESIDE,
    cite=f"{ADDED_BESIDE.cite}; tile_scheduler.hpp, SingleTileBwdLPTScheduler: key tiles of as many heads in turn as "
    "have Q, dO and dQ in 40 MiB",
    fastest="heads of a section",
    section_bytes=40 << 20,
)
