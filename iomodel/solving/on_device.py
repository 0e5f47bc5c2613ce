"""Tiles of least traffic on a GPU, within the shared memory and registers of an algorithm's kernels.

Each launch configuration of a kernel (a residency, the layout of its warps over the score tile, its stages) has tile
sizes that are multiples of a step, and resources that grow with either tile. The search and its proof are therefore
those of a bare budget (:mod:`iomodel.solving.search`), once per launch configuration, over one shared table of costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import floor
from typing import Any, NamedTuple

from iomodel.algorithms import AlgorithmLike
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.cost import Cost
from iomodel.errors import InfeasibleError, InputError
from iomodel.placement.budget import Budget
from iomodel.placement.check import Check, checked
from iomodel.placement.placement import Launch, Placement, placements
from iomodel.solving.certificate import Binding, Certificate, NextStep, RunnerUp
from iomodel.solving.parts import PartFormulas, most_kv, parts_for, ranges_for
from iomodel.solving.problem import Problem, SearchResult, Tile, TileRange
from iomodel.solving.question import Question
from iomodel.solving.search import search
from iomodel.solving.solution import Solution
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.varlen import VarlenAttention


@dataclass(frozen=True)
class LaunchProblem:
    """A launch configuration of a kernel, as a problem for the search; `known` has the costs that all of them share."""

    placement: Placement
    launch: Launch
    part: PartFormulas
    ask: BoundCall
    ranges: Mapping[str, TileRange]
    known: dict[Tile, int]
    least_blocks: int

    @property
    def names(self) -> tuple[str, str]:
        """The outer and the inner tile."""
        return self.part.names

    @property
    def sides(self) -> tuple[TileRange, TileRange]:
        """The ranges of the outer and of the inner tile."""
        outer, inner = self.part.names
        return self.ranges[outer], self.ranges[inner]

    @cached_property
    def problem(self) -> Problem:
        """The problem: the traffic of a tile, and its shared memory."""
        return self.part.problem(
            self.ask, self.ranges, self.placement.device.shared_per_block, self._occupied, self.known
        )

    def _occupied(self, outer: int, inner: int) -> Any:
        """Return the shared memory, above the limit if the registers do not suffice; monotone in either tile."""
        query, key = (outer, inner) if self.part.names == self.placement.tiles else (inner, outer)
        fit = self.placement.fit(query, key, self.launch, on_steps=True)
        shared, suffices = fit.used["shared memory"], fit.used["registers"] <= fit.limits["registers"]
        fits = suffices and not fit.spills and fit.blocks_per_sm >= self.least_blocks
        return shared if fits else self.placement.device.shared_per_block + 1 + shared

    def sizes(self, tile: tuple[Any, Any]) -> dict[str, Any]:
        """Return a tile by name, query tile first; its sizes may be arrays."""
        by_name = dict(zip(self.names, tile, strict=True))
        return {name: by_name[name] for name in self.placement.tiles}


class LaunchProblems(NamedTuple):
    """All launch configurations of the kernels of a call on a device, with their shared table of costs."""

    question: Question
    ask: BoundCall
    placements: tuple[Placement, ...]
    ways: tuple[LaunchProblem, ...]
    known: dict[Tile, int]

    def found(self) -> list[tuple[LaunchProblem, SearchResult]]:
        """Search every launch configuration in which a tile fits; InfeasibleError if no tile fits."""
        results = [(variant, result) for variant in self.ways if (result := search(variant.problem)) is not None]
        if not results:
            raise nothing_fits(self.question, self.ways)
        return results

    def cost(self, sizes: Mapping[str, int]) -> Cost:
        """Evaluate the exact cost at tiles."""
        return self.ask.cost(sizes)

    def solution(
        self,
        least: int,
        variant: LaunchProblem,
        tile: Tile,
        share: float,
        runner_up: RunnerUp | None,
        binding: Binding,
        timed: TimedTiles | None = None,
    ) -> Solution:
        """Build the solution of a tile in one launch configuration; `least` is the least traffic of all [B]."""
        question, workload, on_device = self.question, self.ask.workload, variant.placement.device
        check = _check(variant, tile, question.algorithm, as_attention(workload.longest))
        cost = self.cost(check.tiles)
        bound, any_schedule = question.lower_bounds
        certificate = Certificate(
            binding=binding,
            next_step=_next_step(variant, tile),
            runner_up=runner_up,
            least_hbm_bytes=least,
            lower_bound=bound,
            ratio=cost.hbm_bytes / bound.bytes,
            examined=len(self.known) if timed is None else timed.examined,
            any_schedule=any_schedule,
            memory=on_device.on_chip,
            least_traffic=None if timed is None else timed.least_traffic,
            shipped=None if timed is None else timed.shipped,
            ties=None if timed is None else timed.ties,
        )
        saturated = any(
            way.problem.footprint(way.problem.outer.last, way.problem.inner.last) <= way.problem.budget
            for way in self.ways
        )
        budget = Budget(on_device.shared_per_block, "B", question.device.name, on_device.rows)
        return Solution(
            question.name, check.tiles, cost, certificate, budget, share, saturated, check,
            question.library.name,
            known_seconds=None if timed is None else timed.seconds,
            known_dram_bytes=None if timed is None else timed.dram_bytes,
            hardware=question.device,
        )  # fmt: skip


class TimedTiles(NamedTuple):
    """Time and DRAM traffic of a solution, with the tiles of least traffic, the shipped ones and the number of ties."""

    seconds: float
    dram_bytes: tuple[int, int]
    least_traffic: RunnerUp
    shipped: RunnerUp | None
    examined: int
    ties: int


def ways_for(question: Question, searched: Mapping[str, Any] = FrozenDict()) -> LaunchProblems:
    """Build the search problems of an implementation under further options, one per launch configuration."""
    call, kernels, device = question.adding(searched).bound, question.library, question.device
    assert isinstance(call.workload, Attention | VarlenAttention)
    longest = as_attention(call.workload.longest)
    placed = placements(call.algorithm, longest, device, kernels, dict(call.structure), call.kind)
    compiled = parts_for(call.algorithm, call.kind, call.structure, call.compiled.numbers, "B")
    if len(compiled.formulas) != 1:
        raise InputError(
            f"implementation: {call.algorithm} {call.workload.direction} has tiles of several kernels; allowed: of one"
        )
    part = compiled.formulas[0]
    least_kv, blocks = question.least_keys, question.least_blocks
    known: dict[Tile, int] = {}
    variants = []
    stepped: dict[tuple[int, int], dict[str, TileRange]] = {}
    for placement in placed:
        for launch in placement.launches():
            steps = placement.steps(launch)
            ranges = stepped.get(steps)
            if ranges is None:
                named = dict(zip(placement.tiles, steps, strict=True))
                ranges = stepped[steps] = ranges_for(
                    compiled, call, named, least_kv, most_kv(call.workload, call.options, steps[1])
                )
            for fixed in _sizes(placement, launch, ranges):
                variants.append(LaunchProblem(placement, launch, part, call, fixed, known, blocks))
    if not variants:
        sizes = sorted({size for placement in placed for size in placement.residency.sizes[1]})
        raise InputError(f"min_block_kv: {least_kv} given; allowed: up to {sizes[-1]}, for {kernels.name}")
    return LaunchProblems(question, call, tuple(placed), tuple(variants), known)


def _sizes(placement: Placement, launch: Launch, ranges: dict[str, TileRange]) -> Iterator[dict[str, TileRange]]:
    """Yield the ranges of the tiles, or those of each pair of sizes for which a kernel is compiled.

    Where a larger key tile may take less shared memory, each size whose registers suffice is a range of its own, in
    which the memory grows with the query tile.
    """
    if placement.residency.shrinks:
        query, key = placement.tiles
        side, most = ranges[key], placement.registers_limit(launch.warps)
        for size in range(side.first, side.last + 1, side.step):
            if size > side.first and placement.registers_of(ranges[query].first, size, launch.warps) > most:
                break
            yield {**ranges, key: side._replace(least=size, most=size)}
        return
    listed = dict(zip(placement.tiles, placement.residency.sizes, strict=True))
    fixed = [
        [
            (name, ranges[name]._replace(step=size, least=size, most=size))
            for size in sizes
            if size % ranges[name].step == 0
            and size >= min(ranges[name].least, ranges[name].rows)
            and (ranges[name].most or size) >= size
        ]
        for name, sizes in listed.items()
        if sizes
    ]
    for choice in product(*fixed):
        yield {**ranges, **dict(choice)}


def solve_resident(question: Question, share: Fraction) -> Solution:
    """Solve for the least traffic, as :func:`iomodel.solve` with an implementation and ``objective="traffic"``."""
    variants = ways_for(question)
    results = variants.found()
    least = min(result.least for _, result in results)
    limit = floor(least * (1 + share))
    within = [
        (variant, result if result.bytes == limit else search(variant.problem, at_most=limit))
        for variant, result in results
        if result.least <= limit
    ]
    checks = [
        (variant, result, _check(variant, result.tile, question.algorithm, as_attention(variants.ask.workload.longest)))
        for variant, result in within
        if result is not None
    ]
    variant, result, _ = min(checks, key=lambda item: _rank(*item))
    fixed = variants.cost(variant.sizes(result.tile)).hbm_bytes - result.bytes
    runner_up = _runner_up(results, least, fixed)
    binding = binding_of(variant, result.tile)
    return variants.solution(least + fixed, variant, result.tile, float(share), runner_up, binding)


def nothing_fits(question: Question, variants: Sequence[LaunchProblem]) -> InfeasibleError:
    """Build the error that names the resources exceeded by the smallest tiles."""
    least = min((variant.problem.outer.first, variant.problem.inner.first, i) for i, variant in enumerate(variants))
    variant = variants[least[2]]
    over = _over(variant, variant.sizes(least[:2]))
    query, key = variant.sizes(least[:2]).values()
    need = variant.placement.fit(query, key, variant.launch).used["shared memory"]
    return InfeasibleError(
        f"{question.algorithm}: no tile fits {question.device.name} ({variant.placement.residency.title}); "
        f"the smallest, {query} x {key}, exceeds: {', '.join(_amounts(variant, query, key, over))}",
        least=need,
        unit="B",
    )


def _amounts(variant: LaunchProblem, query: int, key: int, over: Sequence[str]) -> Iterator[str]:
    """Yield each exceeded resource of a tile with its use and its limit."""
    fit = variant.placement.fit(query, key, variant.launch)
    words = {"registers": " a thread", "shared memory": " B", "tensor memory": " columns"}
    for name in over:
        if name == "blocks per SM":
            yield f"{name} ({fit.blocks_per_sm}, {variant.least_blocks} wanted)"
        else:
            yield f"{name} ({fit.used[name]:,} of {fit.limits[name]:,}{words.get(name, '')})"


def _check(variant: LaunchProblem, tile: Tile, algorithm: AlgorithmLike, workload: Attention) -> Check:
    return checked(variant.placement, variant.launch, algorithm, workload, variant.sizes(tile))


def _rank(variant: LaunchProblem, result: SearchResult, check: Check) -> tuple[int, ...]:
    query, key = variant.sizes(result.tile).values()
    shared = check.resources["shared memory"].used
    return (-key, result.bytes, -check.blocks_per_sm, shared, variant.launch.warps, variant.launch.stages, query)


def _over(variant: LaunchProblem, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """List the resources that a tile exceeds, apart from the shape of the matrix instructions."""
    query, key = variant.placement.tiles
    fit = variant.placement.fit(sizes[query], sizes[key], variant.launch)
    over = tuple(name for name in fit.over if name != "MMA shape")
    return over or (("blocks per SM",) if fit.blocks_per_sm < variant.least_blocks else ())


def binding_of(variant: LaunchProblem, tile: Tile, otherwise: Binding = "traffic") -> Binding:
    """Name the limit on the growth of a tile."""
    sizes = variant.sizes(tile)
    growable = [name for name in variant.placement.tiles if sizes[name] < variant.ranges[name].rows]
    if not growable:
        return "extent"
    device = variant.placement.device
    least = dict(
        zip(
            variant.placement.tiles,
            (device.rows, max(1, device.depth // variant.placement.padded.element_size)),
            strict=True,
        )
    )
    for name in growable:
        over = _over(variant, {**sizes, name: sizes[name] + variant.ranges[name].step})
        if over:
            if not _over(variant, {**sizes, name: sizes[name] + least[name]}):
                return "MMA shape"
            return over[0]  # type: ignore[return-value]
    return otherwise


def _next_step(variant: LaunchProblem, tile: Tile) -> NextStep:
    """Find the nearest larger tile that exceeds a resource."""
    sizes = variant.sizes(tile)
    candidates = []
    for name in variant.placement.tiles:
        step, count = variant.ranges[name].step, 1
        while not _over(variant, {**sizes, name: sizes[name] + count * step}):
            count *= 2
        low, high = count // 2, count
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if _over(variant, {**sizes, name: sizes[name] + middle * step}) else (middle, high)
            )
        larger = {**sizes, name: sizes[name] + high * step}
        resource = _over(variant, larger)[0]
        query, key = variant.placement.tiles
        fit = variant.placement.fit(larger[query], larger[key], variant.launch)
        if resource == "blocks per SM":
            used, excess, unit = fit.blocks_per_sm, variant.least_blocks - fit.blocks_per_sm, "blocks"
        else:
            unit = "registers" if resource == "registers" else fit.units[resource]
            used, excess = fit.used[resource], fit.over[resource]
        candidates.append((high, NextStep(name, larger[name], used, excess, resource, unit)))
    return min(candidates, key=lambda item: item[0])[1]


def _runner_up(results: list[tuple[LaunchProblem, SearchResult]], least: int, fixed: int) -> RunnerUp | None:
    """Return the cheapest tile above the least traffic over all launch configurations."""
    above = [
        (result.least, i, variant.sizes(result.least_tile))
        for i, (variant, result) in enumerate(results)
        if result.least > least
    ]
    above += [
        (result.runner_up_bytes, i, variant.sizes(result.runner_up))
        for i, (variant, result) in enumerate(results)
        if result.least == least and result.runner_up is not None and result.runner_up_bytes is not None
    ]
    if not above:
        return None
    more, which, sizes = min(above, key=lambda item: item[:2])
    launch = results[which][0].launch
    return RunnerUp(FrozenDict({**sizes, "warps": launch.warps, "stages": launch.stages}), more + fixed)
