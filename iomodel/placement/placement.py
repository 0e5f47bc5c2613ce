"""Placement of a residency on a device: use and limits of each resource, and concurrent blocks per SM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm
from typing import Any

from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.store import obtain, record
from iomodel.devices.cache import per_device
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity
from iomodel.errors import InputError, SpecError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Residency
from iomodel.workloads.attention import Attention


@dataclass(frozen=True)
class DeviceLimits:
    """Figures of a device that determine feasibility."""

    label: str
    shared_per_block: int
    shared_per_sm: int
    shared_reserved: int
    shared_granularity: int
    registers_per_thread: int
    registers_per_sm: int
    register_granularity: int
    warp: int
    threads_per_block: int
    warps_per_sm: int
    blocks_per_sm: int
    rows: int
    warpgroup_rows: int | None
    columns: int
    depth: int

    @property
    def on_chip(self) -> int:
        """Most bytes held by one block in shared memory and registers [B]."""
        return self.shared_per_block + 4 * self.registers_per_sm


@per_device
def device_of(hardware: Hardware) -> DeviceLimits:
    """Collect the limits of a device, or raise SpecError naming the missing figure."""
    quantities = hardware.quantities

    def figure(path: str) -> int:
        quantity = quantities.get(path)
        if not isinstance(quantity, Quantity):
            raise SpecError(f"{path}: {hardware.id or hardware.name} lacks it; residency on a GPU needs it")
        return int(quantity.value)

    sram, limits, mma = "memory.sram", "limits", "compute.mma"
    return DeviceLimits(
        label=hardware.name,
        shared_per_block=figure(f"{sram}.per_block"),
        shared_per_sm=figure(f"{sram}.per_sm"),
        shared_reserved=figure(f"{sram}.reserved_per_block"),
        shared_granularity=figure(f"{sram}.allocation_granularity"),
        registers_per_thread=figure(f"{limits}.registers_per_thread"),
        registers_per_sm=figure(f"{limits}.registers_per_sm"),
        register_granularity=figure(f"{limits}.register_granularity_per_warp"),
        warp=figure(f"{limits}.warp_size"),
        threads_per_block=figure(f"{limits}.threads_per_block"),
        warps_per_sm=figure(f"{limits}.warps_per_sm"),
        blocks_per_sm=figure(f"{limits}.blocks_per_sm"),
        rows=figure(f"{mma}.rows"),
        warpgroup_rows=figure(f"{mma}.warpgroup_rows") if f"{mma}.warpgroup_rows" in quantities else None,
        columns=figure(f"{mma}.columns"),
        depth=figure(f"{mma}.depth"),
    )


@dataclass(frozen=True)
class Launch:
    """Launch configuration of a block: residency, warps, their layout over the score tile, stages."""

    residency: Residency
    warps: int
    along: tuple[int, int]
    stages: int


@dataclass(frozen=True)
class Occupancy:
    """Resource use of a block, with the limits."""

    shared: int
    shared_limit: int
    registers: int
    registers_limit: int
    threads: int
    threads_limit: int
    misfit: tuple[tuple[str, int, int], ...]
    blocks_per_sm: int
    limited_by: str

    @property
    def over(self) -> tuple[str, ...]:
        """Names of the exceeded resources."""
        pairs = (
            ("shared memory", self.shared > self.shared_limit),
            ("registers", self.registers > self.registers_limit),
            ("threads", self.threads > self.threads_limit),
            ("MMA shape", bool(self.misfit)),
        )
        return tuple(name for name, exceeded in pairs if exceeded)


@record
@dataclass(frozen=True)
class PlacementFormulas:
    """The bytes that tiles of a residency take, compiled over (workload, tiles, stages, warps)."""

    shared: Formulas
    registers: Formulas
    tiles: tuple[str, str]


@dataclass(frozen=True)
class Placement:
    """A residency of an algorithm on a device, for one workload."""

    device: DeviceLimits
    residency: Residency
    padded: Attention
    shared: Formulas
    registers: Formulas
    tiles: tuple[str, str]

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
        if self.residency.mma == "warpgroup":
            groups = warps // 4
            return [] if warps % 4 else [(1, groups) if self.residency.split == "columns" else (groups, 1)]
        if self.residency.split != "tile":
            return [(warps, 1) if self.residency.split == "rows" else (1, warps)]
        return [(m, warps // m) for m in range(1, warps + 1) if warps % m == 0]

    def steps(self, launch: Launch) -> tuple[int, int]:
        """Compute the steps of the tiles, (query, key) [rows], set by the matrix instructions of all warps."""
        m, n = launch.along
        rows = self.device.rows if self.residency.mma == "warp" else self.device.warpgroup_rows or self.device.rows
        depth = max(1, self.device.depth // self.padded.element_size)  # each tile is the summation axis of some product
        along_rows = 1 if self.residency.split == "rows" else depth
        columns = self.device.columns
        if self.residency.transposed:
            rows, columns = columns, rows
        return lcm(rows * m, along_rows), lcm(columns * n, depth)

    def threads(self, warps: int) -> int:
        """Count the threads of a block, including producers [-]."""
        return self.device.warp * (warps + self.residency.producers)

    def registers_limit(self, warps: int) -> int:
        """Compute the registers available per thread [-].

        Each warp takes whole granules of the register file; producers release unused registers.
        """
        device, producers = self.device, self.residency.producers
        left = device.registers_per_sm - producers * device.warp * self.residency.producer_registers
        granules = left // warps // device.register_granularity
        return min(device.registers_per_thread, granules * device.register_granularity // device.warp)

    def occupied(self, query: int, key: int, launch: Launch) -> Occupancy:
        """Compute the resource use of a block with these tiles."""
        device, threads = self.device, self.threads(launch.warps)
        shared = self.shared_bytes(query, key, launch.stages)
        registers = self.registers_of(query, key, launch.warps)
        off = zip(self.tiles, (query, key), self.steps(launch), strict=True)
        limit = self.registers_limit(launch.warps)
        blocks, by = self.blocks(shared, registers, launch.warps)
        return Occupancy(
            shared, device.shared_per_block, registers, limit, threads, device.threads_per_block,
            tuple((name, size, step) for name, size, step in off if size % step), blocks, by,
        )  # fmt: skip

    def shared_bytes(self, query: int, key: int, stages: int) -> int:
        """Compute the shared memory of a block [B]."""
        return self.shared.scalars(self.padded, (), (query, key, stages, 1))[0]

    def registers_of(self, query: int, key: int, warps: int) -> int:
        """Compute the registers per thread: its share of the tiles, and the overhead [-]."""
        size = self.registers.scalars(self.padded, (), (query, key, 1, warps))[0]
        return -(-size // (4 * self.device.warp * warps)) + self.residency.overhead

    def blocks(self, shared: int, registers: int, warps: int) -> tuple[int, str]:
        """Compute the concurrent blocks per SM, and the resource that limits them."""
        device, all_warps = self.device, warps + self.residency.producers
        step, granule = device.shared_granularity, device.register_granularity
        registers = min(registers, self.registers_limit(warps))
        taken = -(-(shared + device.shared_reserved) // step) * step
        of_warp = -(-registers * device.warp // granule) * granule
        file = warps * of_warp + self.residency.producers * device.warp * self.residency.producer_registers
        limits = {
            "shared memory": device.shared_per_sm // taken,
            "registers": device.registers_per_sm // file,
            "warps": device.warps_per_sm // all_warps,
            "blocks": device.blocks_per_sm,
        }
        by = min(limits, key=limits.__getitem__)
        return limits[by], by


def placements(
    algorithm: Algorithm,
    workload: Attention,
    hardware: Hardware,
    implementation: Implementation,
    options: dict[str, Any],
    kind: FormulaKind,
) -> list[Placement]:
    """Place the layouts of an implementation on a device; raise InputError if no kernel supports the workload."""
    layouts, device = layouts_for(algorithm, workload, hardware, implementation), device_of(hardware)
    return [_placed(algorithm, workload, device, residency, options, kind) for residency in layouts]


def layouts_for(
    algorithm: Algorithm, workload: Attention, hardware: Hardware, implementation: Implementation
) -> list[Residency]:
    """Select the layouts of an implementation that run a workload on a device; raise InputError if there are none."""
    declaring, label = implementation.residency, f"{implementation.name} of {algorithm}"
    layouts = list(declaring.get(workload.direction, ()))
    if not layouts:
        directions = ", ".join(declaring) or "none"
        raise InputError(
            f"implementation: {implementation.name!r} given; it lays out no {workload.direction} pass of {algorithm}; "
            f"laid out: {directions}"
        )
    device, have = device_of(hardware), hardware.compute_capability or "0.0"
    able = [layout for layout in layouts if _within(layout.capability, have)]
    if not able:
        spans = ", ".join(dict.fromkeys(_span(layout.capability) for layout in layouts))
        raise InputError(f"hardware: compute capability {have} given; allowed: {spans}, for {label}")
    if all(layout.mma == "warpgroup" for layout in able) and device.warpgroup_rows is None:
        raise InputError(f"hardware: {device.label} given; allowed: a device with warp group matrix instructions")
    known = list(dict.fromkeys(dtype for layout in able for dtype in layout.dtypes))
    if workload.dtype not in known:
        raise InputError(f"dtype: {workload.dtype!r} given; allowed: {', '.join(known)}, for {label}")
    narrowest = _narrowest([layout for layout in able if workload.dtype in layout.dtypes], workload)
    for layout in narrowest:
        for field in ("head_dim", "value_dim"):
            _padded(field, getattr(workload, field), layout)
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
    padded = workload.model_copy(update=widths)
    return Placement(device, residency, padded, compiled.shared, compiled.registers, compiled.tiles)


def _within(capability: tuple[str, ...], have: str) -> bool:
    least, *most = capability
    return _version(least) <= _version(have) <= _version(most[0] if most else have)


def _span(capability: tuple[str, ...]) -> str:
    least, *most = capability
    return f"{least} to {most[0]}" if most and most[0] != least else least if most else f"{least} and later"


@lru_cache(maxsize=128)
def residency_formulas(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...], residency: Residency
) -> PlacementFormulas:
    """Return the bytes that tiles of a residency take, compiled."""

    def build() -> PlacementFormulas:
        from iomodel.placement.compile import compiled_placement

        return compiled_placement(algorithm, kind, options, residency)

    module = algorithm.shipped if residency.shipped else None
    return obtain(module, "placement", (kind, options, residency.shipped), build)


def _narrowest(residencies: list[Residency], workload: Attention) -> list[Residency]:
    """Select the kernels whose compiled width pads the rows least; the widest if none fits."""
    wide = max(workload.head_dim, workload.value_dim)
    widths = [min((width for width in r.head_dims if width >= wide), default=None) for r in residencies]
    least = min((width for width in widths if width is not None), default=None)
    if least is None:
        return [max(residencies, key=lambda residency: max(residency.head_dims))]
    return [residency for residency, width in zip(residencies, widths, strict=True) if width == least]


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _padded(field: str, width: int, residency: Residency) -> int:
    fitting = [known for known in residency.head_dims if known >= width]
    if not fitting:
        raise InputError(f"{field}: {width} given; allowed: up to {max(residency.head_dims)}, for {residency.title}")
    return min(fitting)
