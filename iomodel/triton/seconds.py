"""Time of a Triton config by the clock of `estimate`: the work of its tiles, launched as its compiler lays it out.

The compiler decides the instruction, the layout of the warps and the memory of a block, so that a launch is described
from its check and not from a residency; everything else is the clock's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from iomodel.algorithms import discovered
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.nests.algorithm import Algorithm
from iomodel.placement.limits import device_of
from iomodel.placement.triton_check import KERNELS, TritonCheck
from iomodel.placement.triton_layouts import WARP
from iomodel.placement.triton_registers import registers_limit
from iomodel.solving.question import Question
from iomodel.timing.clock import SCHEDULERS, Clock
from iomodel.timing.kernel_time import Launched
from iomodel.timing.kernel_work import SCORES, KernelWork
from iomodel.timing.shared_memory import WarpLayout
from iomodel.workloads.attention import Attention

REGISTER = 4
"""Size of a register of a thread [B]."""
SPILLED: Mapping[str, float] = MappingProxyType({"mma.sync": 0.51, "wgmma": 0.61, "tcgen05": 0.28})
"""The share of registers beyond the limit that is on the stack of kernels which carry positions, by instruction [-].

Lower quartiles over the open compiles that spill: the assembler computes positions again where it can, and a tile is
not dropped for what it may not store. Of other kernels the medians are 1.05 with mma.sync and 1.37 with wgmma.
"""
UNPIPELINED = 1
"""The most stages with which a block waits for each tile [-]."""


def described_by(kernel: str) -> Algorithm:
    """Return the algorithm whose counts describe a kind of kernel."""
    return next(algorithm for algorithm in discovered().values() if kernel in algorithm.triton_kernels)


def seconds(
    kernel: str,
    workload: Attention,
    hardware: Hardware,
    tile: tuple[int, ...],
    warps: int,
    stages: int,
    outcome: TritonCheck,
) -> float:
    """Estimate the time of a config [s]; without a pipeline a block waits for what it loads."""
    clock, titles = _clock(kernel, workload, hardware), described_by(kernel).triton_kernels[kernel]
    by_keys = kernel in ("backward", "backward_dkdv")
    rows = tile[1] if by_keys else tile[0]  # of the result that stays through the loop
    grouped = outcome.instruction != "mma.sync"
    along_rows = grouped or workload.value_dim <= rows or warps == 1
    layout = WarpLayout(
        (warps, 1) if along_rows != by_keys else (1, warps), grouped,
        frozenset({SCORES}) if along_rows else frozenset(), 0 if along_rows else 1, workload.element_size,
    )  # fmt: skip
    launched = Launched(layout, blocks(hardware, outcome, warps), stages=stages, warps=max(1, warps // SCHEDULERS))
    again = max(1, 16 * warps // rows) if along_rows and not grouped else 1  # warps without rows of their own
    work = clock.demand((workload.head_dim, workload.value_dim), tiles(kernel, tile))
    timed = [demand for demand in work if not titles or demand.title in titles]
    time: float = clock.seconds_over([*_replicated(timed, again)], launched)
    share = SPILLED[outcome.instruction] if carries_positions(kernel) else 1.0
    return time + share * _spilling(timed, clock, launched, warps, outcome)


@lru_cache
def carries_positions(kernel: str) -> bool:
    """Ask the declaration of a kernel whether positions are carried through its loop; its tile does not matter."""
    return KERNELS[kernel](64, 64, 64).positions


def tiles(kernel: str, tile: tuple[int, ...]) -> dict[str, int]:
    """Name the tiles of a config as its algorithm does; a pass for dQ has tiles of its own."""
    rows, keys, *second = tile
    sizes = {"block_q": rows, "block_kv": keys}
    if not kernel.startswith("backward"):
        return sizes
    by_rows = (second or (keys, rows)) if kernel == "backward" else tile
    return {**sizes, "dq_block_q": by_rows[0], "dq_block_kv": by_rows[1]}


def blocks(hardware: Hardware, outcome: TritonCheck, warps: int) -> int:
    """Count the blocks that an SM holds, at least one."""
    device = device_of(hardware)
    registers = min(outcome.registers, device.registers_per_thread)
    most: int = min(device.blocks(outcome.shared, registers, warps, outcome.tmem).values())
    return max(1, most)


def _spilling(work: Iterable[KernelWork], clock: Clock, launched: Launched, warps: int, outcome: TritonCheck) -> float:
    """Time the registers beyond the limit, each stored and loaded once in an iteration [s].

    They lie in the L1, the part of an SM's shared memory that the blocks do not use, and beyond it in the L2. The
    time is not hidden behind products. Where spills are unsure, the estimate of the registers decides.
    """
    near_rate, far_rate = clock.rates.shared, clock.rates.l2 or clock.rates.hbm
    beyond = max(int(outcome.spills is True), outcome.registers - registers_limit(warps))
    if outcome.spills is False or beyond <= 0 or near_rate is None or far_rate is None:
        return 0.0
    of_block = REGISTER * beyond * WARP * warps
    device = device_of(clock.hardware)
    left = device.shared_per_sm - launched.blocks_per_sm * (outcome.shared + device.shared_reserved)
    near = min(1.0, max(0, left) / (launched.blocks_per_sm * of_block))
    trips = sum(demand.trips for demand in work)
    time: float = 2 * of_block * trips * (near / near_rate + (1 - near) / far_rate)
    return time


def _replicated(work: Iterable[KernelWork], times: int) -> Iterator[KernelWork]:
    """Iterate over kernels whose warps compute the same rows several times."""
    for demand in work:
        products = tuple(replace(product, runs=product.runs * times) for product in demand.products)
        yield replace(demand, products=products, exps=demand.exps * times, scores=demand.scores * times)


@lru_cache(maxsize=64)
def _clock(kernel: str, workload: Attention, hardware: Hardware) -> Clock:
    algorithm = described_by(kernel)
    options = {"packed": True, "splits": _splits(workload, hardware)} if "splits" in algorithm.options else {}
    clock = Question.ask(algorithm, workload, hardware, options=options).timer(tiled=False)[1]
    return replace(clock, execution=replace(clock.execution, waiting=UNPIPELINED))


def _splits(workload: Attention, hardware: Hardware) -> int:
    """Choose the fewest splits that give each SM a block."""
    units = rates(hardware, workload.dtype).units or 1
    return max(1, min(-(-units // (workload.batch * workload.kv_heads)), -(-workload.kv_len // 128)))
