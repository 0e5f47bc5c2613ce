"""Shared memory of a Triton launch: its buffers in the order of the program, and the bytes that they take together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from iomodel.placement.triton_allocation import SharedBuffer, allocated
from iomodel.placement.triton_kernel import PassedTile, Tile, TileProduct, TritonKernel
from iomodel.placement.triton_schedule import LoopSchedule

SCALAR = (75,)
"""Architectures on which Triton 3.9.0 multiplies without matrix instructions."""
WIDENED = 4
"""Size of an element of their operands [B]."""
BARRIER = 8
"""Size of a barrier [B]."""
PLAIN = 16
"""Alignment of barriers and of tiles that threads read [B]."""
SCRATCH = 128
"""Alignment of memory for one operation [B]."""
SWIZZLED = 8
"""Alignment of a tile for matrix units or copy engines, per byte of the rows over which it is swizzled [-]."""


@dataclass
class Timeline:
    """Buffers in the order of a program; `now` counts the operations."""

    buffers: list[SharedBuffer]
    now: int = 0

    def open(self, size: int, alignment: int) -> int:
        """Begin the life of a buffer, and return its number."""
        self.now += 1
        self.buffers.append(SharedBuffer(size, alignment, self.now, inf))
        return len(self.buffers) - 1

    def close(self, number: int) -> None:
        """End the life of a buffer."""
        self.now += 1
        self.buffers[number] = replace(self.buffers[number], end=self.now)

    def once(self, size: int, alignment: int = SCRATCH) -> None:
        """Give one operation a buffer."""
        if size:
            self.close(self.open(size, alignment))


def compiled_bytes(kernel: TritonKernel, arch: int, warps: int, stages: int) -> int:
    """Compute the shared memory of a launch [B]."""
    if arch in SCALAR:
        return max(map(_widened, kernel.programs))
    line = Timeline([])
    for program in kernel.programs:
        schedule = LoopSchedule(program, arch, warps, stages)
        resident = [
            number for tile in program.resident
            if tile not in schedule.brought_back and not schedule.in_registers(tile)
            for _ in range(schedule.forms(tile))
            if (number := _resident(line, schedule, tile)) is not None
        ]  # fmt: skip
        for _ in range(program.loops):
            held = _ahead(line, schedule)
            _iteration(line, schedule)
            closing = line.now + 1
            for number in reversed(held):
                line.close(number)
        for number in resident:  # last used in the loop, before its copies are freed
            line.buffers[number] = replace(line.buffers[number], end=closing)
        for result in program.stored:
            line.once(schedule.storing(result))
    return allocated(line.buffers)


def _widened(kernel: TritonKernel) -> int:
    """Compute the shared memory of products without matrix instructions: one operand at a time, as numbers of fp32 [B].

    Operands from before the loop stay beside it.
    """
    sizes = {tile.name: tile.rows * tile.columns for tile in (*kernel.resident, *kernel.results, *kernel.loads)}
    sizes |= {product.name: product.rows * product.columns for product in kernel.products}
    taken = {name for product in kernel.products for name in (product.left, product.right)}
    stay = sum(sizes[tile.name] for tile in kernel.resident if tile.name in taken)
    return WIDENED * (stay + max(sizes[name] for name in taken - {tile.name for tile in kernel.resident}))


def _resident(line: Timeline, schedule: LoopSchedule, tile: Tile) -> int | None:
    """Load a tile that stays through the loop; None if it stays in registers."""
    size = tile.size // tile.element * schedule.element(tile.element)
    barrier = line.open(BARRIER, PLAIN) if _by_engine(schedule) else None
    number = None
    if schedule.kernel.descriptors and size != tile.size:  # widened in registers
        if barrier is not None:
            line.once(tile.size, _alignment(schedule, tile))
    else:
        number = line.open(size, _alignment(schedule, tile))
    if barrier is not None:
        line.close(barrier)
    return number


def _ahead(line: Timeline, schedule: LoopSchedule) -> list[int]:
    """Allocate the buffers of a pipelined loop: barriers of products, copies of tiles, barriers of copies."""
    held = []
    if schedule.unit == "tcgen05" and schedule.ahead:
        for product in schedule.kernel.products:
            held.append(line.open(BARRIER if product.into else 2 * BARRIER, PLAIN))
    held += [line.open(schedule.operand(product), SCRATCH) for product in schedule.read_later]
    copies = [(tile, count) for tile in schedule.kernel.loads if (count := schedule.copies(tile))]
    for tile, count in copies:
        held.append(line.open(count * tile.size, _alignment(schedule, tile)))
    if _by_engine(schedule):
        held += [line.open(count * BARRIER, PLAIN) for _, count in copies]
    return held


def _iteration(line: Timeline, schedule: LoopSchedule) -> None:
    """Go through the loads and products of one iteration."""
    waiting: dict[int, list[int]] = {}
    for position, step in enumerate(schedule.kernel.loop):
        line.now += 1
        if isinstance(step, TileProduct):
            size = 0 if step in schedule.read_later else schedule.operand(step)
            operand = line.open(size, SCRATCH) if size else None
            line.once(schedule.moved(step))
            for tile in schedule.brought_back:
                line.once(tile.size * (tile.name == step.right), _alignment(schedule, tile))
            if operand is not None:
                line.close(operand)
            barrier = line.open(BARRIER, PLAIN) if schedule.unit == "tcgen05" and not schedule.ahead else None
            for number in waiting.get(position, ()):
                line.close(number)
            if barrier is not None:
                line.close(barrier)
            line.once(schedule.reduction(step))
            continue
        if isinstance(step, PassedTile):
            line.once(schedule.passing(step))
            continue
        line.once(schedule.addresses(step))
        line.once(schedule.rearranged(step))
        if not schedule.copies(step):
            last = schedule.last_use(step)
            barrier = line.open(BARRIER, PLAIN) if _by_engine(schedule) else None
            if last >= position and schedule.kernel.conditional and schedule.unit == "mma.sync":
                line.once(step.size, _alignment(schedule, step))  # read as soon as it is there
            elif last >= position:
                size = step.size * (schedule.forms(step) if step.made and schedule.unit != "mma.sync" else 1)
                waiting.setdefault(last, []).append(line.open(size, _alignment(schedule, step)))
            elif barrier is not None:  # on its way to registers
                line.once(step.size, _alignment(schedule, step))
            if barrier is not None:
                line.close(barrier)
        line.once(schedule.turning(step))
        for number in waiting.get(position, ()):
            line.close(number)


def _by_engine(schedule: LoopSchedule) -> bool:
    """Check whether tiles are copied by an engine that reports to barriers."""
    return schedule.kernel.descriptors and schedule.arch >= 90


def _alignment(schedule: LoopSchedule, tile: Tile) -> int:
    """Compute the alignment of a tile: eight rows of a swizzled one, whose rows are divided into 128 B or less [B]."""
    if tile.columns == 1 or (schedule.unit == "mma.sync" and not _by_engine(schedule)):
        return PLAIN
    row = min(tile.columns * tile.element, 128)
    return SWIZZLED * row if row >= 32 else SCRATCH
