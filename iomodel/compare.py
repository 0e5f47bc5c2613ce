"""Every algorithm side by side on one workload, each at its best tiles under one budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import list_algorithms
from iomodel.approximate import approximations, marked, with_footnotes
from iomodel.budget import Budget, budget_of
from iomodel.check import as_device
from iomodel.compare_time import TimeComparison, by_time
from iomodel.cost import tally_for
from iomodel.errors import InfeasibleError, InputError, UnknownNameError, shown
from iomodel.expressions import check_kind, check_options, kind_of, known_options, only_taken
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.requirements import met
from iomodel.show import Shown, table
from iomodel.solution import Solution
from iomodel.solve import solve
from iomodel.workload import Attention, VarlenAttention, as_attention, as_call


@dataclass(frozen=True)
class Unfit:
    """An algorithm of which no tile fits, and the least budget that would do, in the unit of the budget."""

    algorithm: str
    least: int


@dataclass(frozen=True)
class Comparison(Shown):
    """The solved algorithms, least HBM traffic first, and those that do not fit.

    One that approximates attention computes something else: it has its place in the row where it was asked for, and is
    never the `best`, for which it is no substitute without another training of the model.

    Attributes
    ----------
    workload : Attention or VarlenAttention
        The attention call.
    budget : Budget
        The memory that every algorithm was to keep to.
    solutions : tuple of Solution
        One for each algorithm that fits, least traffic [B] first.
    infeasible : tuple of Unfit
        The others, least need first.
    approximates : mapping of str to str
        Of those in the row that are not exact, what they compute in place of attention.
    """

    workload: Attention | VarlenAttention
    budget: Budget
    solutions: tuple[Solution, ...]
    infeasible: tuple[Unfit, ...]
    approximates: Mapping[str, str] = field(default_factory=FrozenDict)

    @property
    def best(self) -> Solution:
        """The exact one that moves the fewest bytes."""
        return next(solution for solution in self.solutions if solution.algorithm not in self.approximates)

    @property
    def best_approximate(self) -> Solution | None:
        """The approximate one that moves the fewest bytes, if any is in the row."""
        return next((solution for solution in self.solutions if solution.algorithm in self.approximates), None)

    def relative(self, solution: Solution) -> float:
        """Traffic over that of the best [-]; below 1 for an approximate one that moves less."""
        return solution.cost.hbm_bytes / self.best.cost.hbm_bytes

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "workload": self.workload.to_dict(),
            "budget": dict(self.budget.__dict__),
            "best": self.best.algorithm,
            "best_approximate": self.best_approximate and self.best_approximate.algorithm,
            "approximates": dict(self.approximates),
            "solutions": [{**s.to_dict(), "relative": self.relative(s)} for s in self.solutions],
            "infeasible": [{**unfit.__dict__, "unit": self.budget.unit} for unfit in self.infeasible],
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        unit = self.budget.unit
        columns = ("algorithm", "tiles", ">HBM traffic\n[B]", ">relative\nto best", ">FLOPs", ">intensity\n[FLOP/B]",
                   f">SRAM used of\n{self.budget.amount:,} [{unit}]")  # fmt: skip
        rows = [
            (
                marked(solution.algorithm, self.approximates),
                ", ".join(f"{name}={size}" for name, size in solution.tiles.items()),
                f"{solution.cost.hbm_bytes:,}",
                f"{self.relative(solution):,.3f}",
                f"{solution.cost.flops:,}",
                f"{solution.cost.intensity:,.1f}",
                f"{solution.footprint:,}",
            )
            for solution in self.solutions
        ]
        unfit = [
            (marked(u.algorithm, self.approximates), "none fits", "", "", "", "", f"needs {u.least:,}")
            for u in self.infeasible
        ]
        made = table(f"all algorithms on {self.budget.label or self.budget}", columns, [*rows, *unfit])
        for column in made.columns:
            column.overflow = "fold"  # on a narrow terminal a number takes two lines rather than lose digits
        made.columns[0].no_wrap = True
        return with_footnotes(made, self.approximates)


def answering(workload: Attention | VarlenAttention, approximate: bool = False) -> list[str]:
    """The algorithms that answer the direction of a workload and have its features; InputError if none does.

    Those that approximate attention are among them where that is wanted, and the numbers of the call allow them.
    """
    kind, found = kind_of(as_call(workload)), []
    for name in list_algorithms():
        algorithm = find_algorithm(name)
        if algorithm.approximates and not approximate:
            continue
        try:
            check_kind(algorithm, kind)
        except InputError:
            continue
        found.append(name)
    if not found:
        features = ", ".join(kind.features)
        raise InputError(f"direction: {kind.direction} given with {features}; no algorithm has all of it")
    return found


@overload
def compare(
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None = None,
    *,
    objective: Literal["time"],
    **options: Any,
) -> TimeComparison: ...
@overload
def compare(
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None = None,
    *,
    objective: Literal["traffic"] = "traffic",
    **options: Any,
) -> Comparison: ...
def compare(
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None = None,
    *,
    sram_bytes: int | None = None,
    sram_elements: int | None = None,
    alignment: int | None = None,
    min_block_kv: int | None = None,
    epsilon: float = 0.0,
    objective: Literal["traffic", "time"] = "traffic",
    approximate: bool = False,
    **options: Any,
) -> Comparison | TimeComparison:
    """Solve every algorithm under one budget: those that answer the direction of the call and have its features.

    Parameters
    ----------
    workload : Attention or VarlenAttention
        The attention call.
    hardware, sram_bytes, sram_elements
        Exactly one budget, as :func:`iomodel.solve` takes it.
    alignment, min_block_kv, epsilon
        As in :func:`iomodel.solve`; min_block_kv concerns the algorithms that have a block_kv.
    objective : {"traffic", "time"}
        What is to be least: bytes, or the time that :func:`iomodel.estimate` finds on `hardware`; then the answer is a
        :class:`iomodel.TimeComparison`, and no other budget or solver's option has a say.
    approximate : bool
        Whether algorithms that approximate attention stand beside the exact ones, marked; they are never the `best`.
        Left out by default: who asks which kernel to run, or what a load costs, has a model whose outputs are to stay.
    **options
        Options, each handed to the algorithms that know it.

    Raises
    ------
    InfeasibleError
        No exact algorithm fits; its `least` is the least budget in which one would.
    UnknownNameError, InputError
        An option that none of them takes; a value out of range; not exactly one budget.

    Examples
    --------
    >>> import iomodel
    >>> c = compare(iomodel.Attention(q_len=4096, head_dim=64), sram_elements=51200)
    >>> [solution.algorithm for solution in c.solutions][0]
    'flash2'
    """
    if not isinstance(objective, str) or objective not in ("traffic", "time"):
        raise UnknownNameError("objective", objective, ["traffic", "time"])
    if objective == "time":
        given: dict[str, Any] = {"sram_bytes": sram_bytes, "sram_elements": sram_elements, "alignment": alignment}
        given |= {"min_block_kv": min_block_kv, "epsilon": epsilon or None}
        if (typed := [name for name, value in given.items() if value is not None]) or hardware is None:
            raise InputError(f"objective: 'time' given with {typed or 'no hardware'}; allowed: with hardware alone")
        return by_time(_options(workload, options, approximate), as_attention(workload), as_device(hardware))
    budget = budget_of(hardware, sram_bytes, sram_elements, alignment)
    chosen_for = _options(workload, options, approximate)
    inexact = approximations(chosen_for)
    solutions, infeasible = [], []
    for name, chosen in chosen_for.items():
        tiles = tally_for(name, workload, chosen, tiled=True)[0].tiles
        try:
            solutions.append(
                solve(
                    name,
                    workload,
                    hardware,
                    sram_bytes=sram_bytes,
                    sram_elements=sram_elements,
                    alignment=alignment,
                    min_block_kv=min_block_kv if "block_kv" in tiles else None,
                    epsilon=epsilon,
                    **chosen,
                )
            )
        except InfeasibleError as error:
            infeasible.append(Unfit(name, error.least))
    infeasible.sort(key=lambda unfit: unfit.least)
    if all(solution.algorithm in inexact for solution in solutions):
        least, unit = next(unfit for unfit in infeasible if unfit.algorithm not in inexact), budget.unit
        none = "none that is exact" if inexact else "none"
        raise InfeasibleError(
            f"algorithm: {none} fits {budget}; the least that would do is {least.least:,} {unit} ({least.algorithm})",
            least=least.least,
            unit=unit,
        )
    solutions.sort(key=lambda solution: solution.cost.hbm_bytes)
    return Comparison(workload, budget, tuple(solutions), tuple(infeasible), inexact)


def _options(
    workload: Attention | VarlenAttention, options: Mapping[str, Any], approximate: bool
) -> dict[str, dict[str, Any]]:
    """The algorithms that can answer, each with those of the options that it knows."""
    if not isinstance(approximate, bool):
        raise InputError(f"approximate: {shown(approximate)} given; allowed: True or False")
    able = answering(workload, approximate)
    known = known_options(able, workload.direction)
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of {', '.join(able)}", option, known)
    chosen = {name: only_taken(find_algorithm(name), workload.direction, options) for name in able}
    return {name: own for name, own in chosen.items() if _allowed(name, workload, own)}


def _allowed(name: str, workload: Attention | VarlenAttention, options: Mapping[str, Any]) -> bool:
    """Whether an approximate algorithm takes these lengths: self-attention, say, of more rows than it selects."""
    found = find_algorithm(name)
    if not found.approximates:
        return True
    if not isinstance(workload, Attention):
        return False
    complete = check_options(found, options, direction=workload.direction)
    return bool(met(found, {**workload.numbers, "mask": workload.mask, **complete}))
