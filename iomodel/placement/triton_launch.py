"""Resources of a thread block whose layout a compiler decides: those that its rules give for a tile."""

from __future__ import annotations

from math import ceil

from iomodel.nests.residency import Residency
from iomodel.placement.fit import BlockFit
from iomodel.placement.limits import DeviceLimits
from iomodel.placement.triton_check import TritonCheck

REGISTER = 4
"""Size of a register of a thread [B]."""
ROWS = 16
"""Rows of a tile of `mma.sync` [rows]."""


def compiled_fit(
    device: DeviceLimits, residency: Residency, outcome: TritonCheck, warps: int, rows: int, off: int = 0
) -> BlockFit:
    """Describe a launch that a compiler has laid out.

    `rows` are those of the result that stays through the loop; `off` counts rows off the sizes of the kernel. A tile
    that the compiler gives another instruction, or another side of its product, has not this layout.
    """
    most = device.registers_limit(warps)
    registers = min(outcome.registers, most)
    used = {"shared memory": outcome.shared, "registers": registers, "threads": device.warp * warps}
    limits = {"shared memory": device.shared_per_block, "registers": most, "threads": device.threads_per_block}
    if outcome.tmem:
        used["tensor memory"] = outcome.tmem
        limits["tensor memory"] = device.tensor_columns
    used["MMA shape"] = off + (not outcome.compiles or not laid_out(residency, outcome))
    limits["MMA shape"] = 0
    room = device.blocks(outcome.shared, registers, warps, outcome.tmem)
    blocks = max(1, min(room.values()))
    stored = REGISTER * outcome.spilled * device.warp * warps
    left = max(0, device.shared_per_sm - blocks * (outcome.shared + device.shared_reserved))
    near = min(stored, left / blocks)
    return BlockFit(
        used, limits, room, spilled=(near, stored - near), repeated=repeats(outcome, warps, rows),
        spilled_registers=ceil(outcome.spilled),
    )  # fmt: skip


def laid_out(residency: Residency, outcome: TritonCheck) -> bool:
    """Check that a layout is the one that the compiler takes."""
    if residency.mma == "warpgroup":
        return outcome.instruction != "mma.sync"
    return outcome.instruction == "mma.sync" and outcome.along == residency.split


def repeats(outcome: TritonCheck, warps: int, rows: int) -> int:
    """Count the warps that compute the same rows: those beyond the rows of a tile [-].

    Those of tcgen05 share out the columns, as tensor memory is read by parts.
    """
    return max(1, ROWS * warps // rows) if outcome.instruction != "tcgen05" and outcome.along == "rows" else 1
