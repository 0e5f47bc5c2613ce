"""Registers of a Triton kernel per thread, by a rule fitted to its compiler, and a three-valued answer about spills.

The tiles that a thread holds are exact; the registers that the assembler adds for addresses, statistics and masks are
not. Two fits of one form replace it: an estimate of the registers, and a score whose sign predicts spills. The
answer is "unsure" where the score is small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iomodel.common.frozen_dict import FrozenDict
from iomodel.placement.triton_kernel import TritonKernel
from iomodel.placement.triton_layouts import ACCESS, WARP
from iomodel.placement.triton_schedule import LoopSchedule

REGISTERS_PER_THREAD = 255
REGISTERS_PER_BLOCK = 65_536


@dataclass(frozen=True)
class Held:
    """Registers that the tiles of a kernel take in a thread [-].

    Attributes
    ----------
    carried, scores : float
        fp32 accumulators that stay through the loop, and those of one iteration.
    accesses : float
        Loads of 16 B in an iteration, each with an address.
    waiting : float
        Tiles that are loaded without a pipeline and wait in registers.
    further : int
        Loops beyond the first, whose addresses are made ahead [-].
    masked : float
        Scores masked by positions that are carried through the loop, before a row is reduced.
    positions : float
        Loads of 16 B whose positions are carried through the loop.
    """

    carried: float
    scores: float
    accesses: float
    waiting: float
    further: int
    masked: float = 0.0
    positions: float = 0.0


@dataclass(frozen=True)
class RegisterWeights:
    """Registers as a sum: a constant, and a weight for each part of :class:`Held`."""

    constant: float
    carried: float
    scores: float
    accesses: float
    waiting: float
    further: float
    masked: float
    positions: float

    def registers(self, held: Held) -> float:
        """Compute the weighted sum [-]."""
        return (
            self.constant
            + self.carried * held.carried
            + self.scores * held.scores
            + self.accesses * held.accesses
            + self.waiting * held.waiting
            + self.further * held.further
            + self.masked * held.masked
            + self.positions * held.positions
        )


TAKEN: Mapping[str, RegisterWeights] = FrozenDict(
    {
        "mma.sync": RegisterWeights(42.8, 1.52, 1.3, 0.88, 0.3, 14.4, 0.46, 0.69),
        "wgmma": RegisterWeights(17.1, 1.28, 1.31, 1.37, 0.17, 28.3, 0.58, 1.13),
        "tcgen05": RegisterWeights(17.2, 1.0, 1.03, 1.62, 0.0, 23.0, 1.79, 3.57),
    }
)
"""Registers that a kernel takes, by instruction: least squares over the open compiles that do not spill."""
WANTED: Mapping[str, RegisterWeights] = FrozenDict(
    {
        "mma.sync": RegisterWeights(62.0, 1.15, 1.34, 1.47, 0.17, 12.5, 0.39, 0.45),
        "wgmma": RegisterWeights(-2.7, 1.33, 1.27, 1.02, 0.46, 25.4, 0.51, 1.03),
        "tcgen05": RegisterWeights(45.9, 0.96, 1.44, 0.53, 0.0, 22.1, 1.74, 3.38),
    }
)
"""Registers that a kernel would want, by instruction: those beyond the limit spill; a logistic fit.

The constants give as many answers "spills" as there are spills.
"""
MARGIN = 2
"""Distance to the limit within which the answer is unsure [-]."""
MARGIN_OF_BYTES = 80
"""The same below the limit for 8-bit operands of mma.sync, some of which are permuted by way of the stack [-]."""
SPILLED: Mapping[str, float] = FrozenDict({"mma.sync": 0.51, "wgmma": 0.61, "tcgen05": 0.28})
"""The share of registers beyond the limit that is on the stack of kernels which carry positions, by instruction [-].

Lower quartiles over the open compiles that spill: the assembler computes positions again where it can, and a tile is
not dropped for what it may not store. Of other kernels the medians are 1.05 with mma.sync and 1.37 with wgmma.
"""


def held(schedule: LoopSchedule) -> Held:
    """Compute the registers that the tiles of a kernel take in a thread."""
    warps, threads = schedule.warps, WARP * schedule.warps
    products = schedule.kernel.products
    carried = scores = masked = 0.0
    for product in products:
        if schedule.unit == "mma.sync" and len(products) == 1:
            elements = product.rows * product.columns
        elif schedule.unit == "mma.sync" and not schedule.along_rows:
            elements = product.rows * max(product.columns, 8 * warps)
        else:
            elements = max(product.rows, 16 * warps) * product.columns
        if product.carried:
            carried += elements / threads
        elif not product.into:
            scores += elements / threads
            masked += elements / threads * (product.reduced and schedule.kernel.positions)
    if schedule.unit == "tcgen05" and not any(product.reduced for product in products):
        carried = max(0.0, carried - scores)  # stays in tensor memory until the loop has ended
    tiles = [tile for tile in schedule.kernel.loads if tile.columns > 1]
    accesses = sum(tile.size for tile in tiles) / (ACCESS * threads)
    waiting = sum(tile.size for tile in tiles if not schedule.copies(tile)) / (4 * threads)
    positions = accesses * schedule.kernel.positions
    return Held(carried, scores, accesses, waiting, schedule.kernel.loops - 1, masked, positions)


def registers(kernel: TritonKernel, arch: int, warps: int, stages: int) -> int:
    """Estimate the registers of a thread; beyond the limit they spill [-]."""
    schedules = (LoopSchedule(program, arch, warps, stages) for program in kernel.programs)
    return max(round(TAKEN[schedule.unit].registers(held(schedule))) for schedule in schedules)


def registers_limit(warps: int) -> int:
    """Compute the registers that a thread may have [-]."""
    return min(REGISTERS_PER_THREAD, REGISTERS_PER_BLOCK // (WARP * warps))


def spills(kernel: TritonKernel, arch: int, warps: int, stages: int) -> bool | None:
    """Predict spills to local memory; None within the margin of the limit."""
    answers = [_spills(LoopSchedule(program, arch, warps, stages)) for program in kernel.programs]
    return True if any(answers) else None if any(answer is None for answer in answers) else False


def _spills(schedule: LoopSchedule) -> bool | None:
    over = WANTED[schedule.unit].registers(held(schedule)) - registers_limit(schedule.warps)
    bytewise = schedule.unit == "mma.sync" and any(tile.element == 1 for tile in schedule.kernel.loads)
    if -(MARGIN_OF_BYTES if bytewise else MARGIN) < over < MARGIN:
        return None
    return over > 0


def spilled(kernel: TritonKernel, unit: str, taken: int, warps: int, spilling: bool | None) -> float:
    """Estimate the registers of a thread on its stack: those `taken` beyond the limit, at least one if any spill [-].

    Where the answer about spills is unsure, the estimate decides.
    """
    if spilling is False:
        return 0.0
    beyond = max(int(spilling is True), taken - registers_limit(warps), 0)
    return beyond * (SPILLED[unit] if kernel.positions else 1.0)
