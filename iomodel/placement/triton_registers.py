"""Registers of a Triton kernel per thread, by a rule fitted to its compiler, and a three-valued answer about spills.

The tiles that a thread holds are exact; the registers that the assembler adds for addresses, statistics and masks are
not, so that the estimate has an error, and the answer is "unsure" within a margin around the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from iomodel.placement.triton_kernel import Tile, TritonKernel
from iomodel.placement.triton_memory import Schedule

REGISTERS_PER_THREAD, REGISTERS_PER_BLOCK = 255, 65_536


@dataclass(frozen=True)
class Rule:
    """Registers of an instruction: a constant, and shares of what a thread holds.

    `carried` and `scores` multiply the fp32 accumulators that stay and that pass, `accesses` the loads of 16 B that a
    thread makes in an iteration, `waiting` the registers of tiles loaded without a pipeline. A kernel whose estimate is
    further below the limit than `safe` does not spill, further above than `sure` it does.
    """

    constant: float
    carried: float
    scores: float
    accesses: float
    waiting: float
    safe: float
    sure: float


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "mma.sync": Rule(45.0, 1.5, 1.35, 0.8, 0.4, 10, 10),
        "wgmma": Rule(5.0, 1.4, 1.3, 2.2, 0.0, 10, 10),
        "tcgen05": Rule(31.0, 0.5, 0.5, 2.0, 1.5, 10, 10),
    }
)
"""Fitted to the open compiles of tests/measured/triton; those held out judge them."""


def accumulators(schedule: Schedule) -> tuple[float, float]:
    """Compute the fp32 accumulators of a thread: those that stay through the loop, and the others [-]."""
    warps, threads = schedule.warps, 32 * schedule.warps
    products = schedule.kernel.products
    carried = scores = 0.0
    for product in products:
        if product.into:
            continue
        if schedule.unit == "mma.sync" and len(products) == 1:
            held = product.rows * product.columns
        elif schedule.unit == "mma.sync" and not schedule.along_rows:
            held = product.rows * max(product.columns, 8 * warps)
        else:
            held = max(product.rows, 16 * warps) * product.columns
        if product.carried:
            carried += held / threads
        else:
            scores += held / threads
    return carried, scores


def registers(kernel: TritonKernel, arch: int, warps: int, stages: int) -> float:
    """Estimate the registers that a thread would take without a limit [-]."""
    schedule = Schedule(kernel, arch, warps, stages)
    rule, threads = RULES[schedule.unit], 32 * warps
    carried, scores = accumulators(schedule)
    tiles = [tile for tile in kernel.loads if tile.columns > 1]
    accesses = sum(tile.size for tile in tiles) / (16 * threads)
    waiting = sum(_waiting(schedule, tile) for tile in tiles) / (4 * threads)
    return (
        rule.constant
        + rule.carried * carried
        + rule.scores * scores
        + rule.accesses * accesses
        + rule.waiting * waiting
    )


def registers_limit(warps: int) -> int:
    """Compute the registers that a thread may have [-]."""
    return min(REGISTERS_PER_THREAD, REGISTERS_PER_BLOCK // (32 * warps))


def spills(kernel: TritonKernel, arch: int, warps: int, stages: int) -> bool | None:
    """Predict spills to local memory; None within the margin of the rule."""
    schedule = Schedule(kernel, arch, warps, stages)
    rule = RULES[schedule.unit]
    over = registers(kernel, arch, warps, stages) - registers_limit(warps)
    if over > rule.sure:
        return True
    return False if over < -rule.safe else None


def _waiting(schedule: Schedule, tile: Tile) -> int:
    return 0 if schedule.copies(tile) else tile.size
