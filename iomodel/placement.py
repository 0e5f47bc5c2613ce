"""A residency on a device: what a tile occupies of each resource, what there is, how many blocks an SM takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm
from typing import Any

from sympy import Add, Expr, Integer, Max

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counts import buffers, in_bytes, tile_elements
from iomodel.coverage import View
from iomodel.errors import InputError, SpecError
from iomodel.expressions import Kind, declared
from iomodel.hardware import Hardware
from iomodel.nest import Block, DeclarationError, Kernel, Loop, Nest, Path, walk
from iomodel.per_device import per_device
from iomodel.quantity import Quantity
from iomodel.residency import Fragment, Residency, Reused, Shared
from iomodel.symbols import NAME_OF, TILES
from iomodel.tally import Formulas, compile_formulas
from iomodel.workload import Attention

SIZES = {entry.symbol for entry in TILES}


@dataclass(frozen=True)
class Device:
    """The figures of a device that decide what fits."""

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
        """All that one block may hold, shared memory and registers [B]."""
        return self.shared_per_block + 4 * self.registers_per_sm


@per_device
def device_of(hardware: Hardware) -> Device:
    """The figures, or SpecError naming the one that is missing."""
    quantities = hardware.quantities

    def figure(path: str) -> int:
        found = quantities.get(path)
        if not isinstance(found, Quantity):
            raise SpecError(f"{path}: {hardware.id or hardware.name} lacks it; residency on a GPU needs it")
        return int(found.value)

    sram, limits, mma = "memory.sram", "limits", "compute.mma"
    return Device(
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
    """How a block is launched: a residency, its warps, how they lie over the score tile, its stages."""

    residency: Residency
    warps: int
    along: tuple[int, int]
    stages: int


@dataclass(frozen=True)
class Occupied:
    """What a block occupies, beside what there is."""

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
        """The resources that are exceeded."""
        pairs = (
            ("shared memory", self.shared > self.shared_limit),
            ("registers", self.registers > self.registers_limit),
            ("threads", self.threads > self.threads_limit),
            ("MMA shape", bool(self.misfit)),
        )
        return tuple(name for name, exceeded in pairs if exceeded)


@dataclass(frozen=True)
class Placement:
    """A residency of an algorithm on a device, for one workload."""

    device: Device
    residency: Residency
    padded: Attention
    shared: Formulas
    registers: Formulas
    tiles: tuple[str, str]

    def launches(self) -> list[Launch]:
        """Every way to launch the kernel."""
        found = []
        for warps in self.residency.warps:
            if self.threads(warps) > self.device.threads_per_block:
                continue
            for along in self.layouts(warps):
                found += [Launch(self.residency, warps, along, stages) for stages in self.residency.stages]
        return found

    def layouts(self, warps: int) -> list[tuple[int, int]]:
        """How so many warps, or warp groups, may lie over the score tile (rows, columns)."""
        if self.residency.mma == "warpgroup":
            groups = warps // 4
            return [] if warps % 4 else [(1, groups) if self.residency.split == "columns" else (groups, 1)]
        if self.residency.split != "tile":
            return [(warps, 1) if self.residency.split == "rows" else (1, warps)]
        return [(m, warps // m) for m in range(1, warps + 1) if warps % m == 0]

    def steps(self, launch: Launch) -> tuple[int, int]:
        """Tiles are multiples of these, (query, key) [rows]: the matrix instructions of all warps tile them."""
        m, n = launch.along
        rows = self.device.rows if self.residency.mma == "warp" else self.device.warpgroup_rows or self.device.rows
        depth = max(1, self.device.depth // self.padded.element_size)  # both tiles are summed over by some product
        along_rows = 1 if self.residency.split == "rows" else depth
        columns = self.device.columns
        if self.residency.transposed:
            rows, columns = columns, rows
        return lcm(rows * m, along_rows), lcm(columns * n, depth)

    def threads(self, warps: int) -> int:
        """Threads of a block, producers included [-]."""
        return self.device.warp * (warps + self.residency.producers)

    def registers_limit(self, warps: int) -> int:
        """Registers that a thread may have [-].

        Of the register file each warp takes whole granules; producers give up what they do not need.
        """
        device, producers = self.device, self.residency.producers
        left = device.registers_per_sm - producers * device.warp * self.residency.producer_registers
        granules = left // warps // device.register_granularity
        return min(device.registers_per_thread, granules * device.register_granularity // device.warp)

    def occupied(self, query: int, key: int, launch: Launch) -> Occupied:
        """What a block with these tiles occupies."""
        device, threads = self.device, self.threads(launch.warps)
        shared = self.shared_bytes(query, key, launch.stages)
        registers = self.registers_of(query, key, launch.warps)
        off = zip(self.tiles, (query, key), self.steps(launch), strict=True)
        limit = self.registers_limit(launch.warps)
        blocks, by = self.blocks(shared, registers, launch.warps)
        return Occupied(
            shared, device.shared_per_block, registers, limit, threads, device.threads_per_block,
            tuple((name, size, step) for name, size, step in off if size % step), blocks, by,
        )  # fmt: skip

    def shared_bytes(self, query: int, key: int, stages: int) -> int:
        """Shared memory of a block [B]."""
        return self.shared.scalars(self.padded, (), (query, key, stages, 1))[0]

    def registers_of(self, query: int, key: int, warps: int) -> int:
        """Registers of a thread: its share of the tiles, and the overhead [-]."""
        size = self.registers.scalars(self.padded, (), (query, key, 1, warps))[0]
        return -(-size // (4 * self.device.warp * warps)) + self.residency.overhead

    def blocks(self, shared: int, registers: int, warps: int) -> tuple[int, str]:
        """Blocks that an SM takes at once, and what keeps it from taking more."""
        device, every = self.device, warps + self.residency.producers
        step, granule = device.shared_granularity, device.register_granularity
        registers = min(registers, self.registers_limit(warps))
        taken = -(-(shared + device.shared_reserved) // step) * step
        of_warp = -(-registers * device.warp // granule) * granule
        file = warps * of_warp + self.residency.producers * device.warp * self.residency.producer_registers
        limits = {
            "shared memory": device.shared_per_sm // taken,
            "registers": device.registers_per_sm // file,
            "warps": device.warps_per_sm // every,
            "blocks": device.blocks_per_sm,
        }
        by = min(limits, key=limits.__getitem__)
        return limits[by], by


def placements(
    name: str, workload: Attention, hardware: Hardware, given: object, options: dict[str, Any], kind: Kind
) -> list[Placement]:
    """The residencies of an algorithm on a device; InputError where a kernel does not take the workload."""
    declaring = find_algorithm(name).residency
    found: list[Residency] = [given] if isinstance(given, Residency) else list(declaring.get(workload.direction, ()))
    if not found:
        directions = ", ".join(declaring) or "none"
        raise InputError(
            f"residency: {given!r} given; {name} {workload.direction} declares none; declared: {directions}"
        )
    device = device_of(hardware)
    known = list(dict.fromkeys(dtype for residency in found for dtype in residency.dtypes))
    if workload.dtype not in known:
        raise InputError(f"dtype: {workload.dtype!r} given; allowed: {', '.join(known)}, for {name} on a GPU")
    found = _narrowest([residency for residency in found if workload.dtype in residency.dtypes], workload)
    return [_placed(name, workload, hardware, device, residency, options, kind) for residency in found]


def _placed(
    name: str,
    workload: Attention,
    hardware: Hardware,
    device: Device,
    residency: Residency,
    options: dict[str, Any],
    kind: Kind,
) -> Placement:
    least, *most = residency.capability
    have = hardware.compute_capability or "0.0"
    if not _version(least) <= _version(have) <= _version(most[0] if most else have):
        span = f"{least} to {most[0]}" if most and most[0] != least else least if most else f"{least} and later"
        raise InputError(f"hardware: compute capability {have} given; allowed: {span}, for {residency.title}")
    if residency.mma == "warpgroup" and device.warpgroup_rows is None:
        raise InputError(f"hardware: {device.label} given; allowed: a device with warp group matrix instructions")
    widths = {field: _padded(field, getattr(workload, field), residency) for field in ("head_dim", "value_dim")}
    shared, registers, tiles = _compiled(name, kind, tuple(sorted(options.items())), residency)
    return Placement(device, residency, workload.model_copy(update=widths), shared, registers, tiles)


def _narrowest(found: list[Residency], workload: Attention) -> list[Residency]:
    """Of kernels compiled for different widths those that pad the rows of a call least; the widest if none fits."""
    wide = max(workload.head_dim, workload.value_dim)
    widths = [min((width for width in r.head_dims if width >= wide), default=None) for r in found]
    least = min((width for width in widths if width is not None), default=None)
    if least is None:
        return [max(found, key=lambda residency: max(residency.head_dims))]
    return [residency for residency, width in zip(found, widths, strict=True) if width == least]


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _padded(field: str, width: int, residency: Residency) -> int:
    fitting = [known for known in residency.head_dims if known >= width]
    if not fitting:
        raise InputError(f"{field}: {width} given; allowed: up to {max(residency.head_dims)}, for {residency.title}")
    return min(fitting)


@lru_cache(maxsize=128)
def _compiled(
    name: str, kind: Kind, options: tuple[tuple[str, Any], ...], residency: Residency
) -> tuple[Formulas, Formulas, tuple[str, str]]:
    chosen = dict(options)
    nest = declared(find_algorithm(name), replace(kind, features=()), chosen)
    sizes = on_chip(nest, View(kind.mask, chosen["packed"]))
    tiles = sorted(
        {tile for expr in sizes.values() for tile in expr.free_symbols & SIZES}, key=[e.symbol for e in TILES].index
    )
    if len(tiles) != 2:
        raise DeclarationError(f"{name}: a residency is of a kernel with two tiles; found {tiles}")
    names = (NAME_OF[tiles[0]], NAME_OF[tiles[1]])

    def stored(part: Shared | Reused) -> Expr:
        if isinstance(part, Reused):
            return Max(*(Add(*map(stored, group)) for group in part.groups))
        return part.copies * sizes[part.tensor.name] * in_bytes(part.dtype or part.tensor.dtype)

    def held(phase: Sequence[Fragment]) -> Expr:
        return Add(*(part.share * sizes[part.tensor.name] * in_bytes(part.dtype) for part in phase))

    inputs = (*names, "stages", "warps")
    shared = compile_formulas([Add(*map(stored, residency.shared))], (), inputs)
    registers = compile_formulas([Max(Integer(0), *map(held, residency.phases))], (), inputs)
    return shared, registers, names


def on_chip(nest: Nest, view: View) -> dict[str, Expr]:
    """The tiles of the kernels that have tiles to choose, by the name of the tensor [elements]."""
    found: dict[str, Expr] = {}

    def inside(block: Any, path: Path) -> None:
        here = (*path, block)
        for tensor, _, around in buffers(block.body, here):
            found.setdefault(tensor.name, tile_elements(tensor, around, view))
        for statement in block.body:
            if isinstance(statement, Block):
                inside(statement, here)

    for kernel in nest:
        if _tiled(kernel):
            inside(kernel, ())
    return found


def _tiled(kernel: Kernel) -> bool:
    return any(isinstance(b, Loop) and b.tile in SIZES for _, path in walk((kernel,)) for b in path)
