"""Tiles with proven least HBM bytes under a memory budget, and the certificate that says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import Any

from sympy import Add, Integer

from iomodel import counts
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.bounds import best_bound
from iomodel.budget import Budget, budget_of
from iomodel.certificate import Certificate, RunnerUp, binding, steps
from iomodel.compiled import Compiled
from iomodel.cost import Cost, cost_at, plan_for
from iomodel.counts import View, elements, in_bytes
from iomodel.errors import InfeasibleError, InputError, UnknownNameError, shown
from iomodel.expressions import declared, mask_kind
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.masks import MaskKind
from iomodel.nest import Load, Nest, Store
from iomodel.problem import Problem, Range
from iomodel.search import Found, search
from iomodel.show import Shown, table
from iomodel.structure import TILE_ORDER, Part, parts, without_masked_loops
from iomodel.symbols import BY_NAME, NAME_OF, TILES, WORKLOAD
from iomodel.validation import as_integer
from iomodel.workload import Attention


@dataclass(frozen=True)
class Solution(Shown):
    """The best tiles, their exact cost, and why they are the best.

    Attributes
    ----------
    tiles : mapping of tile name to int
        The tiles chosen [rows].
    cost : Cost
        What they move and compute.
    certificate : Certificate
        What binds, what comes next, how far the lower bound is.
    budget : Budget
        The memory that was to be kept to.
    epsilon : float
        The share of traffic that was offered for a larger block_kv [-].
    saturated : bool
        Whether every tile fits, so that more memory cannot help.
    """

    algorithm: str
    tiles: Mapping[str, int]
    cost: Cost
    certificate: Certificate
    budget: Budget
    epsilon: float
    saturated: bool

    @property
    def footprint(self) -> int:
        """What the tiles occupy, in the unit of the budget."""
        return self.cost.footprint_bytes if self.budget.unit == "B" else self.cost.footprint_elements

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "tiles": dict(self.tiles),
            "budget": dict(self.budget.__dict__),
            "footprint": self.footprint,
            "epsilon": self.epsilon,
            "saturated": self.saturated,
            "cost": self.cost.to_dict(),
            "certificate": self.certificate.to_dict(),
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        unit, why, step = self.budget.unit, self.certificate, self.certificate.next_step
        units = {entry.name: entry.unit for entry in TILES}
        rows = [(name, f"{size:,}", units[name]) for name, size in self.tiles.items()]
        rows += [
            ("HBM traffic", f"{self.cost.hbm_bytes:,}", "B"),
            ("HBM accesses", f"{self.cost.hbm_elements:,}", "elements"),
            ("arithmetic intensity", f"{self.cost.intensity:,.1f}", "FLOP/B"),
            (f"SRAM used of {self.budget.amount:,}", f"{self.footprint:,}", unit),
            ("binding constraint", why.binding, ""),
            (f"{step.tile} = {step.size:,} would exceed it by", f"{step.excess:,}", unit),
        ]
        if why.runner_up is not None:
            tiles = ", ".join(f"{name} = {size:,}" for name, size in why.runner_up.tiles.items())
            rows.append((f"runner-up: {tiles}", f"{why.runner_up.hbm_bytes:,}", "B"))
        if why.least_hbm_bytes != self.cost.hbm_bytes:
            rows.append(("least traffic of all tiles", f"{why.least_hbm_bytes:,}", "B"))
        rows += [
            (f"lower bound ({why.lower_bound.name})", f"{why.lower_bound.bytes:,}", "B"),
            ("traffic / lower bound", f"{why.ratio:,.3f}", "-"),
            ("tiles examined", f"{why.examined:,}", "-"),
        ]
        return table(f"{self.algorithm} on {self.budget.label or self.budget}", ("", ">value", "unit"), rows)


@dataclass(frozen=True)
class _PartFormulas:
    """A part with its traffic [B] and footprint compiled over (workload, outer, inner)."""

    part: Part
    traffic: Compiled
    footprint: Compiled
    base: Compiled

    def problem(self, workload: Attention, ranges: Mapping[str, Range], budget: int) -> Problem:
        point, part = workload.point, self.part
        traffic, footprint = self.traffic.scalars, self.footprint.scalars
        outer, inner = (ranges[NAME_OF[tile]] for tile in (part.outer, part.inner))
        base, least_stream = None, 0
        if part.masked:
            base = self.base.scalars(*point, 1, 1)[0]
            least_stream = traffic(*point, outer.rows, 1)[0] - self.base.scalars(*point, outer.rows, 1)[0]
        return Problem(
            outer,
            inner,
            cost=lambda u, v: traffic(*point, u, v)[0],
            footprint=lambda u, v: footprint(*point, u, v)[0],
            budget=budget,
            prefer_inner=TILE_ORDER.index(part.outer) < TILE_ORDER.index(part.inner),
            base=base,
            provable=part.provable,
            least_stream=least_stream,
            costs=lambda us, v: self.traffic.arrays(*point, us, v)[0],
        )


@lru_cache(maxsize=256)
def _compiled(
    name: str, kind: MaskKind, options: tuple[tuple[str, Any], ...], unit: str
) -> tuple[list[_PartFormulas], Compiled]:
    """The parts of an algorithm, and the footprint of the kernels that have no tile."""
    chosen = dict(options)
    view, weight = View(kind, chosen["packed"]), (in_bytes if unit == "B" else elements)
    found, fixed = parts(declared(find_algorithm(name), chosen), kind)
    workload = [entry.symbol for entry in WORKLOAD]

    def traffic(nest: Nest) -> Any:
        sides = (counts.moves(nest, view, Load), counts.moves(nest, view, Store))
        return Add(*(in_bytes(tensor.dtype) * moved for side in sides for tensor, moved in side.items()))

    formulas = []
    for part in found:
        inputs = [*workload, part.outer, part.inner]
        formulas.append(
            _PartFormulas(
                part,
                Compiled([traffic(part.nest)], inputs),
                Compiled([counts.footprint(part.nest, view, weight)], inputs),
                Compiled([traffic(without_masked_loops(part.nest))], inputs),
            )
        )
    rest = counts.footprint(fixed, view, weight) if fixed else Integer(0)
    return formulas, Compiled([rest], workload)


def solve(
    algorithm: str,
    workload: Attention,
    hardware: Hardware | str | None = None,
    *,
    sram_bytes: int | None = None,
    sram_elements: int | None = None,
    alignment: int | None = None,
    min_block_kv: int | None = None,
    epsilon: float = 0.0,
    **options: Any,
) -> Solution:
    """Find the tiles that move the fewest HBM bytes in the memory given; proven, not searched for in part.

    Every integer tile that is a multiple of `alignment` competes, up to the first that covers its axis. Of tiles with
    equal traffic the one with the larger block_kv wins, then the smaller footprint, then the smaller block_q.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`. Standard attention is solved as tiled products.
    workload : Attention
        The attention call.
    hardware : Hardware or str, optional
        A device, whose on-chip memory for one thread block is the budget.
    sram_bytes, sram_elements : int, optional
        A bare budget in place of a device [B], [elements] (the papers' M).
    alignment : int, optional
        Tiles are multiples of it [rows]: that of the device (16) by default, 1 for a bare budget.
    min_block_kv : int, optional
        The least block_kv allowed [rows]; a tile that covers all keys always is.
    epsilon : float
        The share of the least traffic that may be given up for the largest block_kv [-].
    **options
        Options of the algorithm, and ``packed=True``.

    Raises
    ------
    InfeasibleError
        No tile fits; its `least` is the least budget that would do.
    UnknownNameError, InputError
        An unknown name; a value out of range; not exactly one budget.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> s = iomodel.solve("flash2", w, sram_elements=51200, lse=False)
    >>> dict(s.tiles), s.cost.hbm_elements, s.certificate.binding
    ({'block_q': 373, 'block_kv': 5}, 6291456, 'sram')
    """
    budget = budget_of(hardware, sram_bytes, sram_elements, alignment)
    share = _share(epsilon)
    plan, complete = plan_for(algorithm, workload, options, tiled=True)
    if min_block_kv is not None and "block_kv" not in plan.tiles:
        raise UnknownNameError(f"tile of {algorithm}", "block_kv", plan.tiles)
    least_kv = 1 if min_block_kv is None else as_integer("min_block_kv", min_block_kv)
    kind, key = mask_kind(workload.mask), tuple(sorted(complete.items()))
    formulas, rest = _compiled(algorithm, kind, key, budget.unit)

    view, ranges = View(kind, complete["packed"]), {}
    for formula in formulas:
        for symbol, axis in formula.part.axes.items():
            packed = view.rows(axis) != axis.length
            rows = workload.numbers[NAME_OF[axis.length]] * (workload.group if packed else 1)
            name = NAME_OF[symbol]
            ranges[name] = Range(rows, budget.alignment, least_kv if name == "block_kv" else 1)
    problems = [formula.problem(workload, ranges, budget.amount) for formula in formulas]
    least = max([problem.least_footprint for problem in problems] + [*rest.scalars(*workload.point)])
    if least > budget.amount:
        raise InfeasibleError(
            f"{algorithm}: no tile fits {budget}; the least that would do is {least:,} {budget.unit}",
            least=least,
            unit=budget.unit,
        )
    found = [result for problem in problems if (result := search(problem, share)) is not None]
    tiles = _named(formulas, found, plan.tiles)
    cost = cost_at(plan, workload, tiles, complete)
    total_least = cost.hbm_bytes - sum(result.bytes - result.least for result in found)

    def footprint(at: Mapping[str, int]) -> int:
        return max(
            problem.footprint(at[NAME_OF[formula.part.outer]], at[NAME_OF[formula.part.inner]])
            for problem, formula in zip(problems, formulas, strict=True)
        )

    too_large = steps(tiles, ranges, footprint, budget.amount)
    bound = best_bound(algorithm, workload, budget.elements(workload.element_size))
    certificate = Certificate(
        binding=binding(tiles, ranges, too_large),
        next_step=too_large[0],
        runner_up=_runner_up(formulas, found, plan.tiles, total_least),
        least_hbm_bytes=total_least,
        lower_bound=bound,
        ratio=cost.hbm_bytes / bound.bytes,
        examined=sum(f.examined for f in found),
    )
    saturated = footprint({name: sizes.last for name, sizes in ranges.items()}) <= budget.amount
    return Solution(algorithm, cost.tiles, cost, certificate, budget, float(epsilon), saturated)


def _named(formulas: list[_PartFormulas], found: list[Found], order: tuple[str, ...]) -> dict[str, int]:
    """The tiles of all parts, in the order of the alphabet."""
    sizes: dict[Any, int] = {}
    for formula, result in zip(formulas, found, strict=True):
        sizes |= dict(zip((formula.part.outer, formula.part.inner), result.tile, strict=True))
    return {name: sizes[BY_NAME[name]] for name in order}


def _runner_up(
    formulas: list[_PartFormulas], found: list[Found], order: tuple[str, ...], total: int
) -> RunnerUp | None:
    """The cheapest way to move more than the least: one part steps to its own runner-up, the others stay least."""
    steps_up = [
        (result.runner_up_bytes - result.least, i, result.runner_up)
        for i, result in enumerate(found)
        if result.runner_up is not None and result.runner_up_bytes is not None
    ]
    if not steps_up:
        return None
    more, which, tile = min(steps_up)
    chosen = [
        Found(tile if i == which else result.least_tile, 0, 0, result.least_tile, None, None, 0)
        for i, result in enumerate(found)
    ]
    return RunnerUp(FrozenDict(_named(formulas, chosen, order)), total + more)


def _share(epsilon: object) -> Fraction:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not isfinite(epsilon) or epsilon < 0:
        raise InputError(f"epsilon: {shown(epsilon)} given; allowed: a share of traffic from 0 up, such as 0.05")
    return Fraction(str(epsilon))  # the decimal that was written, not the nearest binary fraction
