"""Time of a Triton config by the clock of `estimate`, launched as its compiler lays it out."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from iomodel.algorithms import algorithm, discovered
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.implementation import TEXTBOOK, Implementation
from iomodel.nests.residency import Residency
from iomodel.placement.limits import device_of
from iomodel.placement.placement import Launch
from iomodel.placement.triton_check import TritonCheck
from iomodel.placement.triton_launch import compiled_fit, laid_out
from iomodel.solving.question import Question
from iomodel.timing.clock import Clock
from iomodel.workloads.attention import Attention

DIVIDED = (192, 288, 576)
"""Widths that are loaded as two tiles, such as 512 and 64 columns [elements]."""
GROUP = 4
"""Warps that multiply together by wgmma and tcgen05 [-]."""


def described_by(kernel: str) -> Algorithm:
    """Return the algorithm whose counts describe a kind of kernel."""
    return next(algorithm for algorithm in discovered().values() if kernel in algorithm.triton_kernels)


def plain_kernel() -> Implementation:
    """Return the implementation whose layouts and execution Triton's kernels share."""
    return next(known for known in algorithm("flash2").implementations if known.name == "triton")


def seconds(
    kernel: str,
    workload: Attention,
    hardware: Hardware,
    tile: tuple[int, ...],
    warps: int,
    stages: int,
    outcome: TritonCheck,
) -> float:
    """Estimate the time of a config [s]."""
    if outcome.instruction == "fma":
        raise InputError(
            f"hardware: {hardware.label} given, where Triton multiplies without matrix instructions, whose time is not "
            "known; allowed: compute capability 8.0 and later"
        )
    clock, titles = _clock(kernel, workload, hardware), described_by(kernel).triton_kernels[kernel]
    by_keys = kernel in ("backward", "backward_dkdv")
    layout = _layout(outcome)
    parts = warps // GROUP if layout.mma == "warpgroup" else warps
    along = (parts, 1) if (layout.split == "rows") != by_keys else (1, parts)
    fit = compiled_fit(device_of(hardware), layout, outcome, warps, tile[1] if by_keys else tile[0])
    work = clock.demand((padded(workload.head_dim), padded(workload.value_dim)), tiles(kernel, tile))
    timed = [demand for demand in work if not titles or demand.title in titles]
    time: float = clock.seconds_over(timed, clock.launched(Launch(layout, warps, along, stages), fit))
    return time


def _layout(outcome: TritonCheck) -> Residency:
    """Return the layout that the compiler has taken."""
    return next(layout for layout in plain_kernel().residency["forward"] if laid_out(layout, outcome))


def padded(width: int) -> int:
    """Compute the width of the tiles for rows of this width: a power of two, or the two that kernels divide it into."""
    return width if width in DIVIDED else 1 << (width - 1).bit_length()


def tiles(kernel: str, tile: tuple[int, ...]) -> dict[str, int]:
    """Name the tiles of a config as its algorithm does; a pass for dQ has tiles of its own."""
    rows, keys, *second = tile
    sizes = {"block_q": rows, "block_kv": keys}
    if not kernel.startswith("backward"):
        return sizes
    by_rows = (second or (keys, rows)) if kernel == "backward" else tile
    return {**sizes, "dq_block_q": by_rows[0], "dq_block_kv": by_rows[1]}


@lru_cache(maxsize=64)
def _clock(kernel: str, workload: Attention, hardware: Hardware) -> Clock:
    """Return the clock of the algorithm of a kernel, whose loads wait as in Triton's pipeline."""
    algorithm, pipeline = described_by(kernel), plain_kernel().execution["forward"]
    options = launch_options(kernel, workload, hardware)
    clock = Question.ask(algorithm, workload, hardware, TEXTBOOK.name, options).timer(tiled=False)[1]
    waits = replace(clock.execution, waiting=pipeline.waiting, awaited_clocks=pipeline.awaited_clocks)
    return replace(clock, execution=waits)


def launch_options(kernel: str, workload: Attention, hardware: Hardware) -> dict[str, Any]:
    """Return the options of a launch that are no part of a config: splits of the keys, packed heads of a group."""
    divides = "splits" in described_by(kernel).options
    return {"packed": True, "splits": _splits(workload, hardware)} if divides else {}


def _splits(workload: Attention, hardware: Hardware) -> int:
    """Choose the fewest splits that give each SM a block."""
    units = rates(hardware, workload.dtype).units or 1
    return max(1, min(-(-units // (workload.batch * workload.kv_heads)), -(-workload.kv_len // 128)))
