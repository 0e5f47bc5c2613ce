"""Best tiles for arrays of problems, searched together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice
from iomodel.counting.arrays.calls import SIDES, Calls, calls
from iomodel.counting.arrays.columns import columns_of_calls
from iomodel.counting.arrays.integers import as_integers, frozen
from iomodel.counting.arrays.layers import Layers, layers, without_defaults
from iomodel.counting.cost_array import ATTENTION
from iomodel.counting.kinds import check_kind, kind_of
from iomodel.counting.options import check_options, structural
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError, UnknownNameError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import NUMBERS, OPTIONS, TILES
from iomodel.nests.implementation import TEXTBOOK, Implementation
from iomodel.placement.budget import budget_of
from iomodel.placement.implementations import named
from iomodel.solving.batch.chunks import Results, solve_batch, with_exact
from iomodel.solving.batch.fastest_answers import solve_many_fastest
from iomodel.solving.batch.formulas import many_parts
from iomodel.solving.batch.ranges import Batch
from iomodel.solving.batch.solutions import SolutionArray, gathered, solve_at
from iomodel.solving.parts import check_tiled, parts_for
from iomodel.solving.question import Question
from iomodel.solving.solution import Solution
from iomodel.solving.solve import share_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.masks.tabulated import Tabulated
from iomodel.workloads.workload import Shape
from iomodel.workloads.workload_kinds import UNMASKED

LIMITS = ("sram_bytes", "sram_elements", "alignment", "min_block_kv")
"""Numbers that limit the tiles of a search, which may be arrays."""
LIMITS_OF_MEMORY = {*LIMITS} - {"min_block_kv"}
"""Those of a bare budget."""
FIELDS = Attention.model_fields.keys() | SIDES.keys()


@strict
def solve_array(
    algorithm: AlgorithmLike,
    workload: Shape | None = None,
    hardware: Hardware | str | None = None,
    *,
    implementation: str | Implementation | None = None,
    objective: Literal["traffic", "time"] | None = None,
    infeasible: Literal["raise", "mark"] = "raise",
    **columns: Any,
) -> SolutionArray:
    """Find the tiles of :func:`iomodel.solve` for arrays of problems at once.

    Each element is the answer of `solve` to that call: the fastest tiles on a device, those of least traffic under a
    bare budget. The search is the same exact search, run on all problems together: of least traffic in one memory,
    and of least time with the kernels of a device for attention in one direction. Other problems are solved one after
    the other.

    Parameters
    ----------
    algorithm, hardware, implementation, objective
        As for :func:`iomodel.solve`, the same for all problems.
    workload : Attention, Linear or Recurrence, optional
        A template, whose fields the columns replace.
    infeasible : {"raise", "mark"}
        The result if no tile fits: an error, or tiles and bytes of 0 and a `feasible` of False.
    **columns
        Fields of the workload and options of the algorithm, as for :func:`iomodel.cost_array`; and of a search
        `sram_bytes` or `sram_elements` in place of a device, `alignment` and `min_block_kv`, each an integer or an
        array, and `epsilon`.

    Raises
    ------
    InfeasibleError
        No tile fits some of the problems; its `least` is the smallest budget feasible for all.
    UnknownNameError, InputError
        An unknown name; a value out of range, with its index; arrays that do not broadcast; not exactly one budget.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    >>> found = iomodel.solve_array("flash3", w, "h100-sxm5", q_len=[4096, 8192])
    >>> [f"{seconds * 1e6:.1f}" for seconds in found.seconds], found.tiles["block_q"].tolist()
    (['243.2', '870.5'], [192, 192])
    >>> call = iomodel.Attention(q_len=4096, head_dim=64)
    >>> iomodel.solve_array("flash2", call, sram_elements=[25600, 51200], lse=False).hbm_bytes
    array([24117248, 12582912])
    """
    algorithm, implementation = named(algorithm, implementation, hardware)
    asked = _asked(algorithm, workload, columns)
    if objective is not None:
        as_choice("objective", objective, ("traffic", "time"))
    as_choice("infeasible", infeasible, ("raise", "mark"))
    if objective == "time" and (hardware is None or asked.share or LIMITS_OF_MEMORY & asked.numbers.keys()):
        return _fastest(asked, hardware, implementation, infeasible)  # which refuses
    bare = LIMITS_OF_MEMORY & asked.numbers.keys()
    textbook = isinstance(implementation, str | Implementation) and implementation in (TEXTBOOK.name, TEXTBOOK)
    if objective != "time" and (hardware is None or bare or textbook):
        return _of_least_traffic(asked, hardware, infeasible)
    together = hardware is not None and objective != "traffic" and not asked.share
    if together and _in_arrays(asked, hardware, implementation):
        return _fastest(asked, hardware, implementation, infeasible)
    search = {"hardware": hardware, "implementation": implementation, "objective": objective}
    return _one_at_a_time(asked, search, infeasible)


def solve_many(algorithm: AlgorithmLike, hardware: Hardware | str | None = None, **columns: Any) -> SolutionArray:
    """Find the tiles of least traffic for arrays of problems: an old spelling of :func:`iomodel.solve_array`.

    The objective is the traffic by default, on the textbook's machine of one memory; that of `solve_array` is the
    time on a device.

    >>> solve_many("flash2", sram_elements=[25600, 51200], q_len=4096, head_dim=64, lse=False).hbm_bytes
    array([24117248, 12582912])
    """
    objective = as_choice("objective", columns.pop("objective", "traffic"), ("traffic", "time"))
    infeasible = as_choice("infeasible", columns.pop("infeasible", "raise"), ("raise", "mark"))
    algorithm, implementation = named(algorithm, columns.pop("implementation", None), hardware)
    asked = _asked(algorithm, None, columns)
    if objective == "time":
        return _fastest(asked, hardware, implementation, infeasible)
    if not isinstance(implementation, str | None) or implementation not in (None, "textbook"):
        raise InputError(f"implementation: {shown(implementation)} given; allowed: with objective='time'")
    return _of_least_traffic(asked, hardware, infeasible)


class ArrayQuestion(NamedTuple):
    """Calls of an array with the numbers and the options of their search, and the share of traffic given up."""

    algorithm: Algorithm
    called: Calls | Layers
    numbers: dict[str, Any]
    options: dict[str, Any]
    share: Fraction
    epsilon: float


def _asked(algorithm: AlgorithmLike, workload: Shape | None, columns: Mapping[str, Any]) -> ArrayQuestion:
    """Check the columns of a search and lay the calls out in arrays."""
    declaration, own = find_algorithm(algorithm), dict(columns)
    epsilon = own.pop("epsilon", 0.0)
    share = share_of(epsilon)
    given = columns_of_calls(declaration, workload, None, own)
    limits = {name: given.pop(name) for name in [*LIMITS, *sorted(NUMBERS & given.keys())] if name in given}
    numbers = {name: as_integers(name, value) for name, value in limits.items() if value is not None}
    arrays = {name: value for name, value in numbers.items() if isinstance(value, np.ndarray)}
    if declaration.answers in UNMASKED:
        kind = UNMASKED[declaration.answers]
        known = without_defaults(kind, given)
        fields = {name: known.pop(name) for name in [*known] if name in kind.model_fields}
        return ArrayQuestion(declaration, layers(kind, fields, arrays), numbers, known, share, epsilon)
    fields = {name: given.pop(name) for name in [*given] if name in FIELDS}
    return ArrayQuestion(declaration, calls({**ATTENTION, **fields}, arrays), numbers, given, share, epsilon)


def _of_least_traffic(asked: ArrayQuestion, hardware: Hardware | str | None, infeasible: str) -> SolutionArray:
    arguments = {**asked.options, **asked.numbers, "hardware": hardware, "epsilon": asked.epsilon}
    problems = Problems(asked.algorithm, asked.called, hardware, asked.numbers, asked.options, asked.share, arguments)
    return problems.solved(infeasible == "raise")


def _fastest(
    asked: ArrayQuestion, hardware: Hardware | str | None, implementation: str | Implementation | None, infeasible: str
) -> SolutionArray:
    bare = {name: asked.numbers.get(name) for name in ("sram_bytes", "sram_elements", "alignment")}
    options = {**asked.options, **{name: asked.numbers[name] for name in NUMBERS & asked.numbers.keys()}}
    return solve_many_fastest(
        asked.algorithm, asked.called, hardware, implementation, {**bare, "epsilon": asked.epsilon or None},
        asked.numbers.get("min_block_kv"), options, infeasible,
    )  # fmt: skip


def _in_arrays(
    asked: ArrayQuestion, hardware: Hardware | str | None, implementation: str | Implementation | None
) -> bool:
    """Check that the fastest tiles of all calls can be searched together: kernels run them, in one direction."""
    called = asked.called
    if not isinstance(called, Calls) or isinstance(called.first.mask, Tabulated) or called.first.direction == "both":
        return False
    varied = [called.fields.get(name, called.widths.get(name)) for name in ("dtype", "kv_dtype", *called.widths)]
    if any(isinstance(value, np.ndarray) for value in (*varied, asked.numbers.get("min_block_kv"))):
        return False
    return bool(Question.ask(asked.algorithm, called.first, hardware, implementation).kernels)


def _one_at_a_time(asked: ArrayQuestion, search: Mapping[str, Any], infeasible: str) -> SolutionArray:
    """Solve the problems one after the other, as :func:`iomodel.solve` does."""
    shape, called = asked.called.shape, asked.called
    arguments = {**asked.options, **asked.numbers, **search, **({"epsilon": asked.epsilon} if asked.share else {})}
    found: list[Solution | None] = []
    failed: dict[tuple[int, ...], InfeasibleError] = {}
    for place in np.ndindex(shape):
        try:
            found.append(solve_at(asked.algorithm, called, arguments, place, shape, by_solve=True))
        except InfeasibleError as error:
            found.append(None)
            failed[place] = error
        except InputError as error:
            raise InputError(f"{error}; at index {place}" if place else str(error)) from None
    if failed and infeasible == "raise":
        place, first = next(iter(failed.items()))
        raise InfeasibleError(
            f"{first}; at index {place}, the first of {len(failed):,} among {len(found):,} problems",
            least=max(one.least for one in failed.values()), unit=first.unit,
        )  # fmt: skip
    return gathered(asked.algorithm, called, arguments, found)


@dataclass(frozen=True)
class Problems:
    """Calls in one memory each, whose tiles of least traffic are searched together.

    `numbers` are the budget, the alignment and the numeric options that are given, `options` the other options.
    """

    algorithm: Algorithm
    called: Calls | Layers
    hardware: Hardware | str | None
    numbers: Mapping[str, Any]
    options: Mapping[str, Any]
    share: Fraction
    arguments: Mapping[str, Any]

    def solved(self, every: bool) -> SolutionArray:
        """Search all problems; raise InfeasibleError if `every` one must have a tile and some have none."""
        numbers, called, shape = self.numbers, self.called, self.called.shape
        scalars = {name: value if isinstance(value, int) else 1 for name, value in numbers.items()}
        budget = budget_of(
            self.hardware, scalars.get("sram_bytes"), scalars.get("sram_elements"), scalars.get("alignment")
        )
        kind = kind_of(called.first)
        check_kind(self.algorithm, kind)
        given = {**self.options, **{name: scalars[name] for name in NUMBERS & scalars.keys()}}
        complete = check_options(self.algorithm, given, True, kind.direction, kind.features)
        taken = tuple(entry.name for entry in OPTIONS if entry.name in self.algorithm.takes(kind.direction))
        shaped = self.algorithm, kind, structural(complete), taken, budget.unit
        cut = {name for part in parts_for(*shaped).formulas for name in (*part.names, *part.least)}
        tiles = [entry.name for entry in TILES if entry.name in cut]
        check_tiled(self.algorithm, tiles)
        if "min_block_kv" in numbers and "block_kv" not in tiles:
            raise UnknownNameError(f"tile of {self.algorithm.name}", "block_kv", tiles)
        parts = many_parts(*shaped) if isinstance(called, Calls) else None
        amount, count = numbers.get("sram_bytes", numbers.get("sram_elements", budget.amount)), prod(shape)
        if parts is None:
            results = Results(count, {name: np.zeros(count, dtype=np.int64) for name in tiles})
            results.exact = list(range(count))
        else:
            columns = {**called.point, **{name: complete[name] for name in taken}, "min_block_kv": 1, **numbers}
            columns |= {"budget": amount, "alignment": numbers.get("alignment", budget.alignment)}
            laid = {name: _laid_out(value, shape) for name, value in columns.items()}
            results = solve_batch(Batch(parts, laid, taken, complete["packed"], self.share, shape, count), tiles)
        _one_by_one(results, self.algorithm, called, self.arguments, shape)
        feasible = results.bytes > 0
        if every and not feasible.all():
            raise self._infeasible(results, feasible, budget.unit)
        found = {name: frozen(sizes, shape) for name, sizes in results.tiles.items()}
        moved, least, fits = (frozen(values, shape) for values in (results.bytes, results.least, feasible))
        return SolutionArray(
            name_of(self.algorithm), FrozenDict(found), moved, least, fits, amount, budget.unit, called,
            FrozenDict(self.arguments),
        )  # fmt: skip

    def _infeasible(self, results: Results, feasible: Any, unit: str) -> InfeasibleError:
        """Build the error of the problems in which no tile fits."""
        short = np.flatnonzero(~feasible)
        least = int(results.needed[short].max())
        first = tuple(map(int, np.unravel_index(short[0], self.called.shape)))
        return InfeasibleError(
            f"{self.algorithm}: no tile fits {len(short):,} of {len(feasible):,} problems, the first at index {first}, "
            f"which needs {results.needed[short[0]]:,} {unit}; the smallest feasible budget for all is "
            f"{least:,} {unit}",
            least=least,
            unit=unit,
        )


def _laid_out(value: Any, shape: tuple[int, ...]) -> Any:
    """Return an int for a single value, else the values as a flat array."""
    if not isinstance(value, np.ndarray) or value.size == 1:
        return int(np.asarray(value).item())
    return np.ascontiguousarray(np.broadcast_to(value, shape), dtype=np.int64).reshape(-1)


def _one_by_one(
    results: Results,
    algorithm: AlgorithmLike,
    called: Calls | Layers,
    arguments: Mapping[str, Any],
    shape: tuple[int, ...],
) -> None:
    """Solve the problems that arrays cannot hold."""
    for where in results.exact:
        place = tuple(map(int, np.unravel_index(where, shape)))
        try:
            solution = solve_at(algorithm, called, arguments, place, shape)
        except InfeasibleError as error:
            results.note(where, {}, 0, 0)
            results.needed = with_exact(results.needed, where, error.least)
            continue
        except InputError as error:
            raise InputError(f"{error}; at index {place}" if place else str(error)) from None
        results.note(where, solution.tiles, solution.cost.hbm_bytes, solution.certificate.least_hbm_bytes)
