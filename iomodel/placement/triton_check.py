"""Check of a Triton config without a compiler: shared memory, tensor memory, spills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.results import Record
from iomodel.common.validation import as_integer, as_mapping
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.placement.triton_description import KernelDescription
from iomodel.placement.triton_kernel import (
    TritonKernel,
    backward_dkdv_kernel,
    backward_dq_kernel,
    backward_kernel,
    block_sparse_kernel,
    decode_kernel,
    dense_decode_kernel,
    forward_kernel,
    gated_matmul_kernel,
    latent_decode_kernel,
    matmul_kernel,
)
from iomodel.placement.triton_memory import SCALAR, compiled_bytes
from iomodel.placement.triton_registers import registers, registers_limit, spilled, spills
from iomodel.placement.triton_schedule import LoopSchedule, instruction
from iomodel.placement.triton_target import SHARED_LIMITS, TMEM_LIMIT, as_architecture, as_version
from iomodel.placement.triton_tmem import tmem_columns

ELEMENTS = {"fp16": 2, "bf16": 2, "fp8": 1}
"""Types of the operands, with the size of an element [B]."""
LEAST_SUM = 32
"""The fewest bytes that a matrix instruction sums over [B]."""
KERNELS: Mapping[str, Callable[..., TritonKernel]] = FrozenDict(
    {
        "forward": forward_kernel,
        "block_sparse": block_sparse_kernel,
        "decode": dense_decode_kernel,
        "decode_paged": decode_kernel,
        "latent_decode": latent_decode_kernel,
        "backward_dkdv": backward_dkdv_kernel,
        "backward_dq": backward_dq_kernel,
        "backward": backward_kernel,
        "matmul": matmul_kernel,
        "matmul_gated": gated_matmul_kernel,
    }
)
"""Declarations by name, each for a tile of M query rows, N keys and rows of d (and d_v) elements."""

DOUBT = 4
"""Factor by which memory may be wrong where products take a tile that arithmetic makes in two orders; read off compiles
of fla's wall attention [-]."""
UNITS = ("mma.sync", "wgmma", "tcgen05")
"""Matrix instructions, the narrowest first; a launch is named by the widest of its programs."""
PAGED = ("decode_paged", "latent_decode")
"""Kernels that find their keys by a table."""


@dataclass(frozen=True)
class TritonCheck(Record):
    """A Triton config checked for an architecture.

    Attributes
    ----------
    fits : bool
        True if the kernel compiles, and shared memory and tensor memory are within their limits.
    shared, shared_limit : int
        Shared memory of a block, and its limit [B].
    tmem, tmem_limit : int
        Columns of tensor memory, and their number [-]; none but on sm_100.
    instruction : {"mma.sync", "wgmma", "tcgen05", "mfma", "fma"}
        Matrix instruction; "mfma" on AMD, "fma" for products without one on sm_75.
    registers : int
        Estimate of the registers of a thread, beyond the limit where they spill [-].
    spills : bool or None
        True if registers spill to local memory, None if the rule is unsure.
    along : {"rows", "columns"}
        Side of the last product along which the warps lie.
    spilled : float
        Registers of a thread that are stored to local memory in an iteration, estimated [-].
    compiles : bool
        False if a product sums over fewer than 32 B.
    """

    fits: bool
    shared: int
    shared_limit: int
    tmem: int
    tmem_limit: int
    instruction: str
    registers: int
    spills: bool | None
    along: str = "rows"
    spilled: float = 0.0
    compiles: bool = True


@strict
def check_triton(
    M: int | Mapping[str, Any],
    N: int | None = None,
    d: int | None = None,
    d_v: int | None = None,
    *,
    dtype: str = "fp16",
    warps: int = 4,
    stages: int = 3,
    arch: int | str,
    kernel: str | KernelDescription = "forward",
    dq_tile: tuple[int, int] | None = None,
    index: int | None = None,
    version: str | None = None,
) -> TritonCheck:
    """Predict the memory and the spills of a Triton kernel, as its compiler would report them.

    Parameters
    ----------
    M, N : int
        Rows of a query tile and of a key tile, powers of two; of the result in a matrix product [rows]. Of a described
        kernel, M is a config, ``{"BLOCK_M": 64, "num_warps": 4, "num_stages": 3}``.
    d, d_v : int
        Width of a row of Q and K, and of V; the step of the sum in a matrix product [elements].
    dtype : {"fp16", "bf16", "fp8"}
        Type of the operands.
    warps, stages : int
        `num_warps` and `num_stages` [-].
    arch : int or str
        Architecture: 75, 80, 86, 89, 90, 100, 103, 120 or 121, also as ``"sm_90"`` or ``"9.0"``.
    kernel : str or KernelDescription
        A kernel that :func:`iomodel.triton.describe` has read, or a kind of kernel: "forward", "block_sparse"
        (FlexAttention's forward pass), "decode" (contiguous keys, as FlexAttention's), "decode_paged" (a table with an
        entry per key), "latent_decode" (the same over latent rows),
        "backward_dkdv", "backward_dq", "backward" (FlexAttention's: programs for N keys, and programs for rows),
        "matmul", "matmul_gated" (two products of one left operand).
    dq_tile : tuple of int, optional
        Rows and keys of the programs for dQ of "backward"; by default N and M [rows].
    index : {4, 8}, optional
        Size of an entry of the table of "decode_paged" and "latent_decode"; by default 4 [B].
    version : str, optional
        Version of Triton; the installed one, else the newest known.

    Raises
    ------
    InputError, UnknownNameError
        A size is no power of two; the architecture, the version, the dtype or the kernel is unknown.

    >>> c = check_triton(128, 64, 128, warps=8, stages=3, arch=90, version="3.9.0")
    >>> c.fits, c.shared, c.instruction, c.spills
    (True, 131072, 'wgmma', False)
    """
    if isinstance(kernel, KernelDescription):
        further = {"N": N, "d": d, "d_v": d_v, "dq_tile": dq_tile, "index": index}
        if given := next((name for name, value in further.items() if value is not None), ""):
            raise InputError(
                f"{given}: {shown(further[given])} given for a described kernel; allowed: its config alone"
            )
        return check_described(kernel, M, warps, stages, arch, version)
    if kernel not in KERNELS:
        raise UnknownNameError("kernel", kernel, KERNELS)
    M, N, d = (as_integer(name, value) for name, value in (("M", M), ("N", N), ("d", d)))
    if dtype not in ELEMENTS:
        raise UnknownNameError("dtype", dtype, ELEMENTS)
    if dq_tile is not None and kernel != "backward":
        raise InputError(f"dq_tile: {shown(dq_tile)} given for {kernel}; allowed: none but for backward")
    second = (N, M) if dq_tile is None else dq_tile
    if not isinstance(second, tuple) or len(second) != 2:
        raise InputError(f"dq_tile: {shown(dq_tile)} given; allowed: a tuple of rows and keys, (64, 64)")
    tiles = ("M", M), ("N", N), ("dq_tile", second[0]), ("dq_tile", second[1])
    for name, value in (*tiles, ("warps", warps), ("stages", stages)):
        if as_integer(name, value) & (value - 1) and name != "stages":
            raise InputError(f"{name}: {value} given; allowed: a power of two")
    if index is not None and (kernel not in PAGED or index not in (4, 8)):
        raise InputError(f"index: {shown(index)} given for {kernel}; allowed: 4 or 8 [B], for {' and '.join(PAGED)}")
    as_version(version)
    sizes = (M, N, d) if d_v is None or kernel.startswith("matmul") else (M, N, d, d_v)
    more = {"dq_tile": None if dq_tile is None else second, "index": index}
    own = tuple((name, value) for name, value in more.items() if value is not None)
    return checked_launch(kernel, sizes, ELEMENTS[dtype], as_architecture(arch), warps, stages, own)


def check_described(
    kernel: KernelDescription, config: Any, warps: int, stages: int, arch: int | str, version: str | None
) -> TritonCheck:
    """Check a config of a kernel that was read from its TTIR."""
    values = as_mapping("M", config, "a config of the described kernel: {'BLOCK_M': 64, 'num_warps': 4}")
    numbers = [
        as_integer(name, values.get(name, usual)) for name, usual in (("num_warps", warps), ("num_stages", stages))
    ]
    if numbers[0] & (numbers[0] - 1):
        raise InputError(f"num_warps: {numbers[0]} given; allowed: a power of two")
    as_version(version)
    architecture = as_architecture(arch)
    if architecture in SCALAR:
        raise InputError(
            f"arch: sm_{architecture} given for a described kernel; allowed: sm_80 and later, or the name of a kernel"
        )
    return checked_description(kernel, tuple(kernel.values(values).items()), architecture, *numbers)


@lru_cache(maxsize=16_384)
def checked_description(
    kernel: KernelDescription, values: tuple[tuple[str, int], ...], arch: int, warps: int, stages: int
) -> TritonCheck:
    """Check a described kernel at its tiles, without a check of the input."""
    declared = kernel.kernel(dict(values))
    checked = checked_kernel(declared, arch, warps, stages)
    if declared.arranged_twice and checked.shared_limit / DOUBT < checked.shared < checked.shared_limit * DOUBT:
        raise InputError(
            f"M: about {checked.shared:,} B of {checked.shared_limit:,}; allowed: far from the limit, as products take "
            "a tile that arithmetic makes in two orders, whose memory is not known"
        )
    return checked


@lru_cache(maxsize=16_384)
def checked_launch(
    kernel: str,
    sizes: tuple[int, ...],
    element: int,
    arch: int,
    warps: int,
    stages: int,
    own: tuple[tuple[str, Any], ...] = (),
) -> TritonCheck:
    """Check a kernel by its name, its tile and widths, as :func:`check_triton` does, without a check of the input."""
    return checked_kernel(KERNELS[kernel](*sizes, element=element, **dict(own)), arch, warps, stages)


def checked_kernel(declared: TritonKernel, arch: int, warps: int, stages: int) -> TritonCheck:
    """Check a kernel that the caller declares, as :func:`check_triton` does."""
    shared, limit = compiled_bytes(declared, arch, warps, stages), SHARED_LIMITS[arch]
    columns, compiles = tmem_columns(declared, arch, warps, stages), declared.least_sum >= LEAST_SUM
    if arch in SCALAR:
        # Operands of a whole sum are in registers: all compiles take what there is, or spill.
        taken, fits = registers_limit(warps), compiles and shared <= limit
        return TritonCheck(fits, shared, limit, 0, TMEM_LIMIT, "fma", taken, None)
    unit = UNITS[max(UNITS.index(instruction(each, arch, warps)) for each in declared.programs)]
    along_rows = unit != "mma.sync" or LoopSchedule(declared, arch, warps, stages).along_rows
    taken, spilling = registers(declared, arch, warps, stages), spills(declared, arch, warps, stages)
    return TritonCheck(
        compiles and shared <= limit and columns <= TMEM_LIMIT, shared, limit, columns, TMEM_LIMIT, unit, taken,
        spilling, "rows" if along_rows else "columns", spilled(declared, unit, taken, warps, spilling), compiles,
    )  # fmt: skip
