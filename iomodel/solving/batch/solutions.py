"""Solutions of arrays of problems, and the largest proved lower bound on their traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import nan
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common import labels
from iomodel.common.deprecation import warn_renamed
from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import as_array, check_keys, decoded_values, named, plain
from iomodel.common.tabular import Tabular, flat_columns
from iomodel.counting.arrays.calls import Calls, calls
from iomodel.counting.arrays.elements import Elements
from iomodel.counting.arrays.integers import at_place, frozen
from iomodel.counting.arrays.layers import Layers, layers
from iomodel.counting.bound_values import VALUES, Pairs, bound_bytes_of, classes_of
from iomodel.counting.bounds import best_bound, counts_of
from iomodel.counting.cost_array import CostArray, cost_array
from iomodel.counting.evaluation.array_engine import narrowed
from iomodel.counting.kinds import kind_of
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH, LAUNCH_NAMES, TILES
from iomodel.placement.budget import Budget
from iomodel.solving.solution import Solution
from iomodel.solving.solve import solve
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import known_mask
from iomodel.workloads.workload_kinds import UNMASKED


def bound_bytes(algorithm: AlgorithmLike, calls: Calls | Layers, budget: Any, unit: str) -> Any:
    """Evaluate :func:`iomodel.counting.bounds.best_bound` for each call with its budget [B]."""
    first, shape, point = calls.first, calls.shape, calls.point
    if not isinstance(first, Attention):
        return _one_by_one(algorithm, calls, budget, unit)
    kind = kind_of(first)
    formulas = counts_of(kind.mask, kind.direction, first.latent)
    narrowest = np.minimum(32 * point["element_size"], point["kv_size"])
    sizes = budget if unit == "elements" else np.maximum(1, 32 * budget // narrowest)
    if formulas.nodes:  # a mask given by data
        return _one_by_one(algorithm, calls, budget, unit)
    elements, compulsory, pairs, *backward = formulas.arrays([*point.values()], (), ())
    names = classes_of(find_algorithm(algorithm).classes, first.direction, first.latent)

    def best(least: int, pairs: int, summed: int, read: int, groups: int, rows: int, keys: int, *others: int) -> int:
        width, values, moved, size, amount, *widths = others
        apart, shared = 0 if first.latent else values, ((groups, -pairs // groups),)
        full = rows if pairs == rows * keys else 0
        counted = Pairs(pairs, width, apart, values, summed, read, shared, full, keys, moved)
        known = None if unit == "elements" else amount
        bounds = ((name, VALUES[name](counted, size)) for name in names)
        held = [bound_bytes_of(name, counted, value, widths, known) for name, value in bounds if value]  # type: ignore[arg-type]
        return max(least, *held, 0)

    widths = 32 * point["element_size"], point["kv_size"]
    groups, rows = point["batch"] * point["kv_heads"], point["batch"] * point["heads"] * point["q_len"]
    shapes = groups, rows, point["kv_len"], point["head_dim"], point["value_dim"]
    numbers = (compulsory, pairs, *backward, *shapes, elements, sizes, budget, *widths)
    whole = [np.asarray(number).astype(object) for number in numbers]
    largest = np.frompyfunc(best, len(whole), 1)(*whole)
    return narrowed(np.broadcast_to(np.asarray(largest, dtype=object), shape))


def _one_by_one(algorithm: AlgorithmLike, calls: Calls | Layers, budget: Any, unit: str) -> Any:
    shape = np.broadcast_shapes(calls.shape, np.shape(budget))
    amounts, memory = np.broadcast_to(budget, shape), f"sram_{'elements' if unit == 'elements' else 'bytes'}"
    bounds = [
        best_bound(algorithm, calls.call(place, shape), **{memory: int(amounts[place])}).bytes
        for place in np.ndindex(*shape)
    ]
    return narrowed(np.array(bounds, dtype=object).reshape(shape))


SEARCH = (
    "hardware", "sram_bytes", "sram_elements", "alignment", "min_block_kv", "epsilon", "objective", "implementation",
)  # fmt: skip
"""Arguments of a search that are no options of the algorithm."""


@dataclass(frozen=True, eq=False)
class SolutionArray(Elements[Solution], Result, Tabular):
    """The best tiles of many problems, with their traffic.

    Attributes
    ----------
    tiles : mapping of tile name to array of int64
        The chosen tiles [rows]; 0 where nothing fits.
    hbm_bytes, least_hbm_bytes : array of int64
        The traffic of these tiles, and the least of all that fit [B]; equal unless epsilon is above 0.
        Python integers where a value exceeds 64 bits.
    feasible : array of bool
        True where a tile fits.
    budget : int or array of int64
        The memory that the tiles must fit, in `unit`.
    unit : {"B", "elements"}
        The unit of the budget.
    seconds : array of float or None
        With the objective "time", the time of each call [s]; NaN where nothing fits.
    searched : mapping of str to array
        With the objective "time", the options that the kernels choose per call.
    implementations : array of str or None
        With the objective "time", the kernels of each call.
    """

    algorithm: str
    tiles: Mapping[str, Any]
    hbm_bytes: Any
    least_hbm_bytes: Any
    feasible: Any
    budget: Any
    unit: str
    calls: Calls | Layers
    arguments: Mapping[str, Any]
    seconds: Any = None
    searched: Mapping[str, Any] = FrozenDict()
    implementations: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The broadcast shape of all arguments."""
        return self.feasible.shape  # type: ignore[no-any-return]

    @cached_property
    def cost(self) -> CostArray:
        """The traffic and operations of the tiles as arrays, computed on first access.

        Raises
        ------
        InputError
            No tile fits some of the problems.
        """
        if not self.feasible.all():
            raise InputError(
                f"cost: no tile fits {np.count_nonzero(~self.feasible):,} of {self.feasible.size:,} problems; "
                "allowed: where all fit, see .feasible"
            )
        options = {name: value for name, value in self.arguments.items() if name not in SEARCH}
        options |= {
            name: self._uniform(values) if name == "packed" else values for name, values in self.searched.items()
        }
        tiles = {name: sizes for name, sizes in self.tiles.items() if name not in LAUNCH_NAMES}
        return cost_array(self.algorithm, **self.calls.fields, **self.calls.widths, **tiles, **options)

    @staticmethod
    def _uniform(packed: Any) -> bool:
        if (packed != packed.flat[0]).any():
            raise InputError(
                "cost: some calls are packed and some are not; allowed: where all are alike, see .searched"
            )
        return bool(packed.flat[0])

    @cached_property
    def lower_bound(self) -> Any:
        """The largest proved lower bound for the algorithm [B], computed on first access."""
        bounds = bound_bytes(self.algorithm, self.calls, self.budget, self.unit)
        bounds.flags.writeable = False  # cached beside the tiles
        return bounds

    @property
    def ratio(self) -> Any:
        """Traffic over the lower bound [-]; 0 where nothing fits."""
        return self.hbm_bytes / self.lower_bound

    def element(self, place: tuple[int, ...]) -> Solution:
        """Solve one problem with a certificate, by :func:`iomodel.solve`.

        Raises
        ------
        InfeasibleError
            Nothing fits there.
        """
        return solve_at(self.algorithm, self.calls, self.arguments, place, self.shape, self._by_solve)

    def solution(self, index: int | tuple[int, ...] = ()) -> Solution:
        """Solve one problem: an old spelling of ``solutions[index]``."""
        warn_renamed("Solutions.solution(i)", "solutions[i]")
        return self[index]

    @property
    def _by_solve(self) -> bool:
        """True if the arguments are those of :func:`iomodel.solve`: of a search that was not of one memory."""
        return "objective" in self.arguments

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "shape": list(self.shape),
            "unit": self.unit,
            "budget": np.asarray(self.budget).tolist(),
            "tiles": {name: sizes.tolist() for name, sizes in self.tiles.items()},
            "hbm_bytes": self.hbm_bytes.tolist(),
            "least_hbm_bytes": self.least_hbm_bytes.tolist(),
            "feasible": self.feasible.tolist(),
            "seconds": None
            if self.seconds is None
            else np.asarray(np.where(self.feasible, self.seconds, None)).tolist(),
            "searched": {name: values.tolist() for name, values in self.searched.items()},
            "implementations": None if self.implementations is None else self.implementations.tolist(),
            "calls": plain({**self.calls.fields, **self.calls.widths}),
            "arguments": self._arguments(),
        }

    def _arguments(self) -> dict[str, Any]:
        device = self.arguments.get("hardware")
        data = {name: plain(value) for name, value in self.arguments.items() if name != "hardware"}
        return data | (named("hardware", device) if isinstance(device, Hardware) else {"hardware": device})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SolutionArray:
        """Rebuild the solutions from their plain data.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """
        objects: Any = Mapping[str, Any]
        kinds = {"algorithm": str, "shape": tuple[int, ...], "unit": str, "budget": Any, "tiles": objects}
        kinds |= {"hbm_bytes": Any, "least_hbm_bytes": Any, "feasible": Any, "calls": objects, "arguments": objects}
        kinds |= {"seconds": Any, "searched": objects, "implementations": Any}
        known = decoded_values(kinds, (), data, cls.__name__)
        check_keys(data, kinds)

        def array(name: str, values: Any) -> Any:
            return as_array({"dtype": None, "shape": known["shape"], "values": values}, name)

        arguments = dict(known["arguments"])
        device = decoded_values({"hardware": Hardware | None}, (), arguments, "arguments", "arguments")["hardware"]
        arguments = {name: value for name, value in arguments.items() if name != "hardware_data"}
        arrays = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
        called = _called(find_algorithm(known["algorithm"]), known["calls"], arrays)
        budget = known["budget"]
        return cls(
            known["algorithm"],
            FrozenDict({name: array(name, sizes) for name, sizes in known["tiles"].items()}),
            array("hbm_bytes", known["hbm_bytes"]),
            array("least_hbm_bytes", known["least_hbm_bytes"]),
            array("feasible", known["feasible"]),
            budget if isinstance(budget, int) else as_array({"shape": None, "values": budget}, "budget"),
            known["unit"],
            called,
            FrozenDict({**arguments, "hardware": device}),
            None if known["seconds"] is None else array("seconds", known["seconds"]).astype(np.float64),
            FrozenDict({name: array(name, values) for name, values in known["searched"].items()}),
            _names(known["implementations"], known["shape"]),
        )

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, SolutionArray) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.algorithm, self.shape))

    def records(self) -> dict[str, Any]:
        """Return a column per array argument and answer, with a row per problem."""
        arguments = {**self.calls.fields, **self.calls.widths, **self.arguments}
        arguments = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
        results = {"hbm_bytes": self.hbm_bytes, "least_hbm_bytes": self.least_hbm_bytes, "feasible": self.feasible}
        timed = {} if self.seconds is None else {"seconds": self.seconds, "implementation": self.implementations}
        results |= {**timed, **self.searched}
        return flat_columns({**arguments, **self.tiles, **results}, self.shape)

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        units = {entry.name: entry.unit for entry in (*TILES, *LAUNCH)}
        fits, every = int(np.count_nonzero(self.feasible)), self.feasible.size
        rows = [("problems", f"{every:,}", ""), ("of which a tile fits", f"{fits:,}", "")]
        values = {**{name: (sizes, units[name]) for name, sizes in self.tiles.items()}}
        values |= {labels.REQUESTS: (self.hbm_bytes, "B"), labels.LEAST_REQUESTS: (self.least_hbm_bytes, "B")}
        if self.seconds is not None:
            values["time"] = (np.round(self.seconds * 1e6, 1), "us")
        for name, (array, unit) in values.items() if fits else ():
            low, high = array[self.feasible].min(), array[self.feasible].max()
            rows.append((name, f"{low:,} to {high:,}" if low < high else f"{low:,}", unit))
        return [Table(f"{self.algorithm}: {self.shape}", ("", ">value", "unit"), rows)]


def _names(values: Any, shape: tuple[int, ...]) -> Any:
    """Read an array of names; InputError for other values."""
    if values is None:
        return None
    names = np.array(values, dtype=object)
    if names.shape != tuple(shape) or not all(isinstance(name, str) for name in names.flat):
        raise InputError(f"implementations: {shown(values)} given; allowed: names in the shape {tuple(shape)}")
    return names.astype(str)


def _called(found: Algorithm, fields: Mapping[str, Any], arrays: Mapping[str, Any]) -> Calls | Layers:
    if found.answers in UNMASKED:
        return layers(UNMASKED[found.answers], fields, arrays)
    return calls({**fields, "mask": known_mask(fields.get("mask", "full"))}, arrays)


def solve_at(
    algorithm: AlgorithmLike,
    calls: Calls | Layers,
    arguments: Mapping[str, Any],
    place: tuple[int, ...],
    shape: tuple[int, ...],
    by_solve: bool = False,
) -> Solution:
    """Solve one of many problems by :func:`iomodel.solve`, in one memory unless `by_solve`."""
    scalars = {name: at_place(value, place, shape) for name, value in arguments.items()}
    kernels = {} if by_solve else {"implementation": "textbook"}
    return solve(algorithm, calls.call(place, shape), **{**scalars, **kernels})


def gathered(
    algorithm: Algorithm, called: Calls | Layers, arguments: Mapping[str, Any], found: Sequence[Solution | None]
) -> SolutionArray:
    """Gather the solutions of single problems, None where nothing fits."""
    known = [solution for solution in found if solution is not None]
    tiles = dict.fromkeys(name for solution in known for name in solution.tiles)
    searched = dict.fromkeys(name for solution in known for name in solution.searched)

    def column(value: Callable[[Solution], Any], otherwise: Any = 0) -> Any:
        values = [otherwise if solution is None else value(solution) for solution in found]
        long = any(isinstance(each, int) and abs(each) >= 2**63 for each in values)
        return frozen(np.array(values, dtype=object if long else None), called.shape)

    def named(names: Iterable[str], value: Callable[[Solution, str], Any]) -> FrozenDict[str, Any]:
        return FrozenDict({name: column(partial(value, name=name)) for name in names})  # type: ignore[call-arg]

    def seconds(solution: Solution) -> float:
        return solution.seconds if solution.timed else nan

    budget = known[0].budget if known else Budget(0, "B", "", 1)
    return SolutionArray(
        name_of(algorithm),
        named(tiles, lambda solution, name: solution.tiles.get(name, 0)),
        column(lambda solution: solution.cost.hbm_bytes),
        column(lambda solution: solution.certificate.least_hbm_bytes),
        frozen(np.array([solution is not None for solution in found]), called.shape),
        budget.amount,
        budget.unit,
        called,
        FrozenDict(arguments),
        column(seconds, nan) if any(solution.timed for solution in known) else None,
        named(searched, lambda solution, name: int(solution.options[name])),
    )


Solutions = SolutionArray
"""The old name of :class:`SolutionArray`, under which pickles of older releases look it up."""
