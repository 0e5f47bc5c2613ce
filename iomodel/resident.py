"""Tiles of least traffic on a GPU, as an algorithm's kernels lie in shared memory and registers.

Each way to launch a kernel (a residency, its warps and how they lie over the score tile, its stages) has steps that its
tiles are multiples of, and resources that grow with either tile; so the search and its proof are those of a bare budget
(:mod:`iomodel.search`), once for each way, over one shared table of costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from iomodel.bounds import best_bound
from iomodel.budget import Budget
from iomodel.certificate import Binding, Certificate, RunnerUp, Step
from iomodel.check import Check, as_device, as_residency, checked
from iomodel.cost import Cost, cost_at, tally_for
from iomodel.coverage import View
from iomodel.errors import InfeasibleError, InputError
from iomodel.expressions import kind_of, structural
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.placement import Launch, Placement, placements
from iomodel.problem import Found, Problem, Range, Tile
from iomodel.question import Asked, PartFormulas, most_kv, parts_for, ranges_for
from iomodel.residency import Residency
from iomodel.search import search
from iomodel.solution import Solution
from iomodel.tally import Tally
from iomodel.validation import as_integer
from iomodel.workload import Attention, VarlenAttention


@dataclass(frozen=True)
class Way:
    """One way to launch, as a problem for the search."""

    placement: Placement
    launch: Launch
    problem: Problem
    ranges: Mapping[str, Range]
    names: tuple[str, str]
    least_blocks: int

    def sizes(self, tile: Tile) -> dict[str, int]:
        """A tile by name, query tile first."""
        found = dict(zip(self.names, tile, strict=True))
        return {name: found[name] for name in self.placement.tiles}


@dataclass(frozen=True)
class Ways:
    """Every way to launch the kernels of a call on a device, and what they cost."""

    algorithm: str
    device: Hardware
    ask: Asked
    tally: Tally
    options: Mapping[str, Any]
    ways: tuple[Way, ...]
    known: dict[Tile, int]

    def found(self) -> list[tuple[Way, Found]]:
        """The least traffic of each way in which a tile fits; InfeasibleError if none does in any."""
        found = [(way, result) for way in self.ways if (result := search(way.problem)) is not None]
        if not found:
            raise _nothing_fits(self.algorithm, self.device, self.ways)
        return found

    def cost(self, sizes: Mapping[str, int]) -> Cost:
        """The exact cost at tiles."""
        return cost_at(self.tally, self.ask.workload, {name: sizes[name] for name in self.tally.tiles}, self.options)

    def solution(
        self,
        found: list[tuple[Way, Found]],
        way: Way,
        tile: Tile,
        share: float,
        runner_up: RunnerUp | None,
        binding: Binding,
        seconds: float | None = None,
    ) -> Solution:
        """The answer: a tile in one way, and why."""
        check = _check(way, tile, self.algorithm, self.ask.longest)
        cost = self.cost(check.tiles)
        workload, on_device = self.ask.workload, way.placement.device
        chip = on_device.on_chip // min(workload.element_size, workload.kv_element_size)
        bound = best_bound(self.algorithm, workload, chip)
        fixed = cost.hbm_bytes - way.problem.bytes_at(*tile)  # of the kernels that have no tile to choose
        certificate = Certificate(
            binding=binding,
            next_step=_next_step(way, tile),
            runner_up=runner_up,
            least_hbm_bytes=min(result.least for _, result in found) + fixed,
            lower_bound=bound,
            ratio=cost.hbm_bytes / bound.bytes,
            examined=len(self.known),
        )
        saturated = any(
            w.problem.footprint(w.problem.outer.last, w.problem.inner.last) <= w.problem.budget for w, _ in found
        )
        budget = Budget(on_device.shared_per_block, "B", self.device.name, on_device.rows)
        return Solution(self.algorithm, check.tiles, cost, certificate, budget, share, saturated, check, seconds)


def ways_for(
    algorithm: str,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None,
    residency: str | Residency,
    min_block_kv: int | None,
    min_blocks_per_sm: int,
    options: Mapping[str, Any],
) -> Ways:
    """What is searched with a residency."""
    if hardware is None:
        raise InputError("hardware: none given; residency needs a device, such as hardware('h100-sxm5')")
    as_residency(residency)
    device = as_device(hardware)
    tally, complete = tally_for(algorithm, workload, options, tiled=True)
    ask = Asked(workload, tuple(complete[name] for name in tally.numbers), tally.numbers)
    kind, chosen = kind_of(workload), structural(complete)
    placed = placements(algorithm, ask.longest, device, residency, dict(chosen), kind)
    compiled = parts_for(algorithm, kind, chosen, tally.numbers, "B")
    if len(compiled.formulas) != 1:
        raise InputError(f"residency: {algorithm} {workload.direction} has tiles of several kernels; allowed: of one")
    part, view = compiled.formulas[0], View(kind.mask, complete["packed"])
    least_kv = 1 if min_block_kv is None else as_integer("min_block_kv", min_block_kv)
    blocks = as_integer("min_blocks_per_sm", min_blocks_per_sm)
    known: dict[Tile, int] = {}
    ways = []
    for placement in placed:
        for launch in placement.launches():
            steps = dict(zip(placement.tiles, placement.steps(launch), strict=True))
            most = most_kv(ask, complete, steps[placement.tiles[1]])
            ranges = ranges_for(compiled, view, ask, steps, least_kv, most)
            ways.append(_way(part, ask, placement, launch, ranges, known, blocks))
    return Ways(algorithm, device, ask, tally, complete, tuple(ways), known)


def solve_resident(
    algorithm: str,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None,
    residency: str | Residency,
    min_block_kv: int | None,
    min_blocks_per_sm: int,
    share: Fraction,
    options: Mapping[str, Any],
) -> Solution:
    """:func:`iomodel.solve` with a residency."""
    ways = ways_for(algorithm, workload, hardware, residency, min_block_kv, min_blocks_per_sm, options)
    found = ways.found()
    least = min(result.least for _, result in found)
    limit = floor(least * (1 + share))
    within = [
        (way, result if result.bytes == limit else search(way.problem, at_most=limit))
        for way, result in found
        if result.least <= limit
    ]
    checks = [
        (way, result, _check(way, result.tile, algorithm, ways.ask.longest))
        for way, result in within
        if result is not None
    ]
    way, result, _ = min(checks, key=lambda item: _rank(*item))
    fixed = ways.cost(way.sizes(result.tile)).hbm_bytes - result.bytes
    runner_up = _runner_up(found, least, fixed)
    return ways.solution(found, way, result.tile, float(share), runner_up, binding_of(way, result.tile))


def _nothing_fits(algorithm: str, device: Hardware, ways: Sequence[Way]) -> InfeasibleError:
    """What the smallest tiles lack."""
    least = min((way.problem.outer.first, way.problem.inner.first, i) for i, way in enumerate(ways))
    way = ways[least[2]]
    over = _over(way, way.sizes(least[:2]))
    query, key = way.sizes(least[:2]).values()
    need = way.placement.shared_bytes(query, key, way.launch.stages)
    return InfeasibleError(
        f"{algorithm}: no tile fits {device.name} ({way.placement.residency.title}); the smallest, {query} x {key}, "
        f"exceeds: {', '.join(over)}",
        least=need,
        unit="B",
    )


def _way(
    part: PartFormulas,
    ask: Asked,
    placement: Placement,
    launch: Launch,
    ranges: Mapping[str, Range],
    known: dict[Tile, int],
    least_blocks: int,
) -> Way:
    outer_first = part.names == placement.tiles
    limit, most = placement.device.shared_per_block, placement.registers_limit(launch.warps)

    def occupied(u: int, v: int) -> int:
        """Shared memory; beyond all there is where the registers do not do. It grows with either tile."""
        query, key = (u, v) if outer_first else (v, u)
        shared = placement.shared_bytes(query, key, launch.stages)
        registers = placement.registers_of(query, key, launch.warps)
        fits = registers <= most and placement.blocks(shared, registers, launch.warps)[0] >= least_blocks
        return shared if fits else limit + 1 + shared

    problem = part.problem(ask, ranges, limit, occupied, known)
    return Way(placement, launch, problem, ranges, part.names, least_blocks)


def _check(way: Way, tile: Tile, algorithm: str, workload: Attention) -> Check:
    return checked(way.placement, way.launch, algorithm, workload, way.sizes(tile))


def _rank(way: Way, result: Found, check: Check) -> tuple[int, ...]:
    query, key = way.sizes(result.tile).values()
    shared = check.resources["shared memory"].used
    return (-key, result.bytes, -check.blocks_per_sm, shared, way.launch.warps, way.launch.stages, query)


def _over(way: Way, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The resources, the shape of the matrix instructions apart, that a tile exceeds."""
    query, key = way.placement.tiles
    occupied = way.placement.occupied(sizes[query], sizes[key], way.launch)
    over = tuple(name for name in occupied.over if name != "MMA shape")
    return over or (("blocks per SM",) if occupied.blocks_per_sm < way.least_blocks else ())


def binding_of(way: Way, tile: Tile, otherwise: Binding = "traffic") -> Binding:
    """What keeps the tile from growing."""
    sizes = way.sizes(tile)
    growable = [name for name in way.placement.tiles if sizes[name] < way.ranges[name].rows]
    if not growable:
        return "extent"
    device = way.placement.device
    least = dict(
        zip(way.placement.tiles, (device.rows, max(1, device.depth // way.placement.padded.element_size)), strict=True)
    )
    for name in growable:
        over = _over(way, {**sizes, name: sizes[name] + way.ranges[name].step})
        if over:
            if not _over(way, {**sizes, name: sizes[name] + least[name]}):
                return "MMA shape"
            return over[0]  # type: ignore[return-value]
    return otherwise


def _next_step(way: Way, tile: Tile) -> Step:
    """The smallest larger tile that exceeds a resource, of the tile that is the nearest to it."""
    sizes = way.sizes(tile)
    found = []
    for name in way.placement.tiles:
        step, count = way.ranges[name].step, 1
        while not _over(way, {**sizes, name: sizes[name] + count * step}):
            count *= 2
        low, high = count // 2, count
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _over(way, {**sizes, name: sizes[name] + middle * step}) else (middle, high)
        larger = {**sizes, name: sizes[name] + high * step}
        resource = _over(way, larger)[0]
        query, key = way.placement.tiles
        occupied = way.placement.occupied(larger[query], larger[key], way.launch)
        used, excess, unit = {
            "shared memory": (occupied.shared, occupied.shared - occupied.shared_limit, "B"),
            "registers": (occupied.registers, occupied.registers - occupied.registers_limit, "registers"),
            "blocks per SM": (occupied.blocks_per_sm, way.least_blocks - occupied.blocks_per_sm, "blocks"),
        }[resource]
        found.append((high, Step(name, larger[name], used, excess, resource, unit)))
    return min(found, key=lambda item: item[0])[1]


def _runner_up(found: list[tuple[Way, Found]], least: int, fixed: int) -> RunnerUp | None:
    """The cheapest tile of any way that moves more than the least."""
    above = [
        (result.least, i, way.sizes(result.least_tile)) for i, (way, result) in enumerate(found) if result.least > least
    ]
    above += [
        (result.runner_up_bytes, i, way.sizes(result.runner_up))
        for i, (way, result) in enumerate(found)
        if result.least == least and result.runner_up is not None and result.runner_up_bytes is not None
    ]
    if not above:
        return None
    more, which, sizes = min(above, key=lambda item: item[:2])
    launch = found[which][0].launch
    return RunnerUp(FrozenDict({**sizes, "warps": launch.warps, "stages": launch.stages}), more + fixed)
