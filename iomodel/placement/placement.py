"""Placement of a residency on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from iomodel.common.arithmetic import anywhere, pick, smaller
from iomodel.common.cache import per_device
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.kinds import FormulaKind, kind_of
from iomodel.counting.store import obtain, record
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError, SpecError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Residency
from iomodel.placement.fit import BlockFit, joined
from iomodel.placement.limits import COLUMN, DeviceLimits, device_of
from iomodel.placement.supported import supported
from iomodel.workloads.attention import Attention


class Launch(NamedTuple):
    """Launch configuration of a block: residency, warps, their layout over the score tile, stages."""

    residency: Residency
    warps: int
    along: tuple[int, int]
    stages: int


@record
@dataclass(frozen=True)
class PlacementFormulas:
    """The bytes that tiles of a residency take, compiled over (workload, tiles, stages, warps).

    `shared` has two outputs: shared memory and tensor memory.
    """

    shared: Formulas
    registers: Formulas
    tiles: tuple[str, str]


class Placement(NamedTuple):
    """A residency of an algorithm on a device, for one workload."""

    device: DeviceLimits
    residency: Residency
    padded: Attention
    shared: Formulas
    registers: Formulas
    tiles: tuple[str, str]

    @property
    def widths(self) -> tuple[int, int]:
        """Compiled widths of the rows of Q and K, and of V [elements]."""
        return self.padded.head_dim, self.padded.value_dim

    def at_points(self, calls: Any) -> Placement:
        """Return the placement for many calls, whose numbers are arrays."""
        return self._replace(padded=calls)

    def launches(self) -> list[Launch]:
        """List every launch configuration of the kernel."""
        configurations = []
        for warps in self.residency.warps:
            if self.threads(warps) > self.device.threads_per_block:
                continue
            for along in self.layouts(warps):
                configurations += [Launch(self.residency, warps, along, stages) for stages in self.residency.stages]
        return configurations

    def layouts(self, warps: int) -> list[tuple[int, int]]:
        """List the layouts of warps, or warp groups, over the score tile (rows, columns)."""
        residency = self.residency
        if residency.mma == "warpgroup" and warps % 4:
            return []
        parts = warps // 4 if residency.mma == "warpgroup" else warps
        if residency.split == "tile" and residency.padded:
            return list(dict.fromkeys([(parts, 1), (1, parts)]))
        if residency.split == "tile":
            return [(m, parts // m) for m in range(1, parts + 1) if parts % m == 0]
        return [{"rows": (parts, 1), "columns": (1, parts), "values": (1, 1)}[residency.split]]

    def steps(self, launch: Launch) -> tuple[int, int]:
        """Compute the steps of the tiles, (query, key) [rows], set by the matrix instructions of all warps.

        A compiler lays any of the sizes out that its kernel takes.
        """
        if self.residency.compiled:
            query, key = self.residency.sizes
            return min(query), min(key)
        return self._steps((1, 1) if self.residency.padded else launch.along)

    def _steps(self, along: tuple[int, int]) -> tuple[int, int]:
        (m, n), residency = along, self.residency
        rows = self.device.rows if residency.mma == "warp" else self.device.warpgroup_rows or self.device.rows
        depth = max(1, self.device.depth // self.padded.element_size)  # each tile is the summation axis of some product
        along_rows = 1 if residency.split in ("rows", "values") else depth
        rows, columns = residency.step or (rows, self.device.columns)
        if residency.transposed:
            rows, columns = columns, rows
        return lcm(rows * m, along_rows), lcm(columns * n, depth)

    def threads(self, warps: int) -> int:
        """Count the threads of a block, including producers [-]."""
        return self.device.warp * (warps + self.residency.producers)

    def registers_limit(self, warps: int) -> int:
        """Compute the registers available per thread [-].

        Each warp takes whole granules of the register file; producers release unused registers.
        """
        taken = self.residency.producers * self.device.warp * self.residency.producer_registers
        return self.device.registers_limit(warps, taken)

    def fit(self, query: Any, key: Any, launch: Launch, on_steps: bool = False) -> BlockFit:
        """Compute the resources that a block with these tiles takes; tiles may be arrays.

        Tiles `on_steps` are known to be multiples of the steps of the launch.
        """
        if self.residency.compiled:
            return self._compiled(query, key, launch)
        device, warps = self.device, launch.warps
        shared, columns = self.memory(query, key, launch.stages, warps)
        registers, most = self.registers_of(query, key, warps), self.registers_limit(warps)
        used = {"shared memory": shared, "registers": registers, "threads": self.threads(warps)}
        limits = {"shared memory": device.shared_per_block, "registers": most, "threads": device.threads_per_block}
        if anywhere(columns):
            used["tensor memory"] = columns
            limits["tensor memory"] = device.tensor_columns
        if not on_steps:
            used["MMA shape"] = sum(map(_excess, (query, key), self.steps(launch), self.residency.sizes))
            limits["MMA shape"] = 0
        return BlockFit(used, limits, self._blocks(shared, smaller(registers, most), warps, columns))

    def _compiled(self, query: Any, key: Any, launch: Launch) -> BlockFit:
        """Compute the resources of a block by the rules of its compiler."""
        sizes = (query, key, *self.widths)
        if any(isinstance(size, np.ndarray) for size in sizes):
            return _at_points(self, sizes, launch)
        return self.compiled_at(sizes, launch)

    def compiled_at(self, sizes: Sequence[int], launch: Launch) -> BlockFit:
        """Compute the resources of a block at a tile and widths by the rules of its compiler."""
        from iomodel.placement.triton_check import checked_launch  # most kernels need no rules of a compiler
        from iomodel.placement.triton_launch import compiled_fit

        query, key, *widths = sizes
        residency, element = self.residency, self.padded.element_size
        tile = [1 << (size - 1).bit_length() for size in (query, key)]  # a compiler takes powers of two
        outcome = checked_launch(
            residency.compiled, (*tile, *widths), element, self.device.arch, launch.warps, launch.stages
        )
        off = sum(map(_excess, (query, key), (1, 1), residency.sizes))
        return compiled_fit(self.device, residency, outcome, launch.warps, tile[0], off)

    def memory(self, query: Any, key: Any, stages: Any, warps: int) -> tuple[Any, Any]:
        """Compute the shared memory of a block [B], and its tensor memory [columns]; tiles may be arrays."""
        shared, tensor = self._at(self.shared, (query, key, stages, warps))
        return shared, -(-tensor // COLUMN)

    def _at(self, formulas: Formulas, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
        for size in sizes:
            if isinstance(size, np.ndarray):
                return formulas.over(self.padded, (), sizes)
        return formulas.scalars(self.padded, (), sizes)

    def registers_of(self, query: Any, key: Any, warps: int) -> Any:
        """Compute the registers per thread: its share of the tiles, and the overhead [-]; tiles may be arrays.

        If the warps pad tiles, the layout with the least padding is taken.
        """
        held = smaller(
            *(self._at(self.registers, (*size, 1, warps))[0] for size in self._padded_tiles(query, key, warps))
        )
        return -(-held // (4 * self.device.warp * warps)) + self.residency.overhead

    def held_rows(self, query: int, key: int, warps: int) -> tuple[int, int]:
        """Return the tile that registers hold: with the padding of the layout that pads least [rows]."""
        return min(
            self._padded_tiles(query, key, warps), key=lambda size: self._at(self.registers, (*size, 1, warps))[0]
        )

    def _padded_tiles(self, query: Any, key: Any, warps: int) -> list[tuple[Any, Any]]:
        """List the tile as each layout of the warps pads it; the tile alone where warps pad none."""
        if not self.residency.padded:
            return [(query, key)]
        steps = map(self._steps, self.layouts(warps))
        return [(-(-query // rows) * rows, -(-key // columns) * columns) for rows, columns in steps]

    def blocks(self, shared: Any, registers: Any, warps: int, columns: Any = 0) -> dict[str, Any]:
        """Compute the concurrent blocks per SM that each resource has room for; the use of a block may be arrays."""
        return self._blocks(shared, smaller(registers, self.registers_limit(warps)), warps, columns)

    def _blocks(self, shared: Any, registers: Any, warps: int, columns: Any) -> dict[str, Any]:
        residency = self.residency
        return self.device.blocks(shared, registers, warps, columns, residency.producers, residency.producer_registers)


def _at_points(placement: Placement, sizes: Sequence[Any], launch: Launch) -> BlockFit:
    """Compute the resources of blocks at arrays of sizes, those of equal sizes once."""
    points, places = np.unique(np.stack(np.broadcast_arrays(*sizes)), axis=1, return_inverse=True)
    fits = [placement.compiled_at([int(size) for size in point], launch) for point in points.T]
    return joined(fits, places.ravel())


def _excess(size: Any, step: int, sizes: tuple[int, ...]) -> Any:
    """Compute the rows beyond a multiple of the step, or off the nearest size of the kernel."""
    off = smaller(*(abs(size - known) for known in sizes)) if sizes else 0
    return pick(off == 0, size % step, off)


def placements(
    algorithm: Algorithm,
    workload: Attention,
    hardware: Hardware,
    implementation: Implementation,
    options: dict[str, Any],
    kind: FormulaKind,
) -> list[Placement]:
    """Place the layouts of an implementation on a device.

    Raises
    ------
    InputError : no kernel supports the workload.
    InfeasibleError : every launch has more threads than a block of the device.
    """
    layouts, device = layouts_for(algorithm, workload, hardware, implementation), device_of(hardware)
    placed = [_placed(algorithm, workload, device, residency, options, kind) for residency in layouts]
    if not any(placement.launches() for placement in placed):
        least = min(placement.threads(warps) for placement in placed for warps in placement.residency.warps)
        raise InfeasibleError(
            f"limits.threads_per_block: {device.threads_per_block:,} threads on {hardware.name}; allowed: {least:,} or "
            f"more, for {implementation.name}",
            least=least,
            unit="threads",
        )
    return placed


def layouts_for(
    algorithm: Algorithm, workload: Attention, hardware: Hardware, implementation: Implementation
) -> list[Residency]:
    """Select the layouts of an implementation that run a workload on a device; raise InputError if there are none."""
    layouts = _selected(hardware, algorithm, implementation, KernelKey.of(workload))
    if isinstance(layouts, Exception):
        raise layouts.with_traceback(None)
    return layouts


@dataclass(frozen=True)
class KernelKey:
    """Kind, dtype and widths of a call, on which the choice of a kernel depends."""

    kind: FormulaKind
    dtype: str
    widths: tuple[int, int]
    example: Attention = field(compare=False, repr=False)

    @classmethod
    def of(cls, workload: Attention) -> KernelKey:
        """Return the kind of a call."""
        return cls(kind_of(workload), workload.dtype, (workload.head_dim, workload.value_dim), workload)


@per_device
def _selected(
    hardware: Hardware, algorithm: Algorithm, implementation: Implementation, asked: KernelKey
) -> list[Residency] | InputError | SpecError:
    """Select the layouts of a kind of call, or return the reason for which there are none."""
    try:
        return _layouts(algorithm, asked.example, hardware, implementation)
    except (InputError, SpecError) as error:
        return error


def _layouts(
    algorithm: Algorithm, workload: Attention, hardware: Hardware, implementation: Implementation
) -> list[Residency]:
    declaring, label = implementation.residency, f"{implementation.name} of {algorithm}"
    layouts = list(declaring.get(workload.direction, ()))
    if not layouts:
        directions = ", ".join(declaring) or "none"
        if workload.direction == "both":
            raise InputError(
                f"direction: 'both' given; allowed: {' or '.join(map(repr, declaring)) or 'none'}, "
                f"one after the other, for the tiles of {implementation.name} of {algorithm}"
            )
        raise InputError(
            f"implementation: {implementation.name!r} given; it lays out no {workload.direction} pass of {algorithm}; "
            f"laid out: {directions}"
        )
    able, device = supported(label, layouts, workload, hardware), device_of(hardware)
    if all(layout.mma == "warpgroup" and not layout.step for layout in able) and device.warpgroup_rows is None:
        raise InputError(f"hardware: {device.label} given; allowed: a device with warp group matrix instructions")
    narrowest = _narrowest(able, workload)
    for layout in narrowest:
        for name in ("head_dim", "value_dim"):
            _padded(name, getattr(workload, name), layout)
    return narrowest


def _placed(
    algorithm: Algorithm,
    workload: Attention,
    device: DeviceLimits,
    residency: Residency,
    options: dict[str, Any],
    kind: FormulaKind,
) -> Placement:
    widths = {field: _padded(field, getattr(workload, field), residency) for field in ("head_dim", "value_dim")}
    compiled = residency_formulas(algorithm, replace(kind, features=()), tuple(sorted(options.items())), residency)
    own = workload.head_dim, workload.value_dim
    padded = workload if own == tuple(widths.values()) else workload.model_copy(update=widths)
    return Placement(device, residency, padded, compiled.shared, compiled.registers, compiled.tiles)


@lru_cache(maxsize=128, typed=True)  # a copy of a shipped residency equals it, and its formulas are not stored
def residency_formulas(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...], residency: Residency
) -> PlacementFormulas:
    """Return the bytes that tiles of a residency take, compiled."""

    def build() -> PlacementFormulas:
        from iomodel.placement.compile_placement import compiled_placement

        return compiled_placement(algorithm, kind, options, residency)

    module = algorithm.shipped if residency.shipped else None
    return obtain(module, "placement", (kind, options, residency.shipped), build)


def _narrowest(residencies: list[Residency], workload: Attention) -> list[Residency]:
    """Select the kernels whose compiled widths pad the rows least; the widest if none fits."""
    sums = [_sum_of_widths(residency, workload) for residency in residencies]
    least = min((total for total in sums if total is not None), default=None)
    if least is None:
        return [max(residencies, key=lambda residency: max(residency.head_dims))]
    return [residency for residency, total in zip(residencies, sums, strict=True) if total == least]


def _sum_of_widths(residency: Residency, workload: Attention) -> int | None:
    """Add the compiled widths of Q and V; None if a row is wider."""
    head_dim = residency.compiled_width("head_dim", workload.head_dim)
    value_dim = residency.compiled_width("value_dim", workload.value_dim)
    return None if head_dim is None or value_dim is None else head_dim + value_dim


def _padded(field: str, width: int, residency: Residency) -> int:
    compiled = residency.compiled_width(field, width)
    if compiled is None:
        known = residency.value_dims if field == "value_dim" and residency.value_dims else residency.head_dims
        raise InputError(f"{field}: {width} given; allowed: up to {max(known)}, for {residency.title}")
    return compiled
