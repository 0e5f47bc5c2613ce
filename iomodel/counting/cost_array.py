"""Exact cost of one algorithm at arrays of shapes, widths and tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.deprecation import warn_renamed
from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.results import check_keys, decoded_values, plain
from iomodel.common.tabular import Tabular, flat_columns
from iomodel.common.validation import as_choice
from iomodel.counting.arrays.calls import SIDES, Calls, calls
from iomodel.counting.arrays.columns import columns_of_calls
from iomodel.counting.arrays.elements import Elements
from iomodel.counting.arrays.integers import as_integers, at_place
from iomodel.counting.arrays.layers import Layers, layers, without_defaults
from iomodel.counting.arrays.points import Points
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.cost import Cost, cost
from iomodel.counting.evaluation.array_engine import exact_ratio
from iomodel.counting.evaluation.engine_choice import BACKENDS
from iomodel.counting.kinds import check_kind, kind_of
from iomodel.counting.quantities import QUANTITIES, TOTALS, Counts
from iomodel.counting.requirements import check_numbers, requirements
from iomodel.counting.tiles import with_followers
from iomodel.errors import UnknownKeywordError, UnknownNameError
from iomodel.nests.alphabet import LAUNCH_NAMES, NUMBERS, TILE_NAMES
from iomodel.nests.feature_names import AS_WRITTEN
from iomodel.workloads.attention import Attention
from iomodel.workloads.workload import Shape
from iomodel.workloads.workload_kinds import UNMASKED

Array = NDArray[Any]


class LazyQuantity:
    """A quantity of :class:`CostArray`, counted on first use."""

    def __init__(self, meaning: str, name: str) -> None:
        self.__doc__ = meaning
        self.name = name

    @overload
    def __get__(self, costs: None, owner: type) -> LazyQuantity: ...
    @overload
    def __get__(self, costs: CostArray, owner: type) -> Array: ...
    def __get__(self, costs: CostArray | None, owner: type) -> LazyQuantity | Array:
        if costs is None:
            return self
        values: Array = costs.points.array(self.name)
        return values


class LazyTraffic(Mapping[str, Array]):
    """Traffic of each tensor, counted on first use."""

    def __init__(self, points: Points, side: str) -> None:
        self._points, self._side = points, side

    def __getitem__(self, tensor: str) -> Array:
        if tensor not in self._points.tensors(self._side):
            raise UnknownNameError(f"tensor of {self._side}", tensor, self._points.tensors(self._side))
        traffic: Array = self._points.array(self._side, tensor)
        return traffic

    def __contains__(self, tensor: object) -> bool:
        return tensor in self._points.tensors(self._side)

    def get(self, tensor: str, default: Any = None) -> Any:
        """Return the traffic of a tensor, or the default if the algorithm has no tensor of this name."""
        return self[tensor] if tensor in self._points.tensors(self._side) else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._points.tensors(self._side))

    def __len__(self) -> int:
        return len(self._points.tensors(self._side))

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{tensor!r}: ...' for tensor in self)}}}"


if TYPE_CHECKING:

    class ArrayCounts(Counts[Array]):
        """The quantities of a CostArray."""

        hbm_reads: Array
        hbm_writes: Array
        hbm_elements: Array
else:
    _ENTRIES = {**QUANTITIES, **TOTALS}
    ArrayCounts = type(
        "ArrayCounts", (), {name: LazyQuantity(f"{e.meaning} [{e.unit}]", name) for name, e in _ENTRIES.items()}
    )


@dataclass(frozen=True, eq=False)
class CostArray(ArrayCounts, Elements[Cost], Result, Tabular):
    """The quantities of :class:`~iomodel.Cost` as arrays of one shape, each counted on first use.

    They are int64, or Python integers in an array of objects where a value exceeds 64 bits; they cannot be written to.

    Attributes
    ----------
    shape : tuple of int
        The broadcast shape of all arguments.
    reads, writes : mapping of tensor name to array
        HBM accesses [elements].
    """

    algorithm: str
    calls: Calls | Layers
    tiles: Mapping[str, Any]
    options: Mapping[str, Any]
    points: Points = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape of all arguments."""
        return self.calls.shape

    @cached_property
    def reads(self) -> Mapping[str, Array]:
        """Elements read from HBM, by tensor [elements]."""
        return LazyTraffic(self.points, "reads")

    @cached_property
    def writes(self) -> Mapping[str, Array]:
        """Elements written to HBM, by tensor [elements]."""
        return LazyTraffic(self.points, "writes")

    @property
    def intensity(self) -> NDArray[np.float64]:
        """Arithmetic intensity, FLOPs of the visited tiles over requests [FLOP/B]."""
        return exact_ratio(self.flops, self.hbm_bytes)

    def element(self, place: tuple[int, ...]) -> Cost:
        """Return the cost at one place, by :func:`iomodel.cost`.

        >>> import iomodel
        >>> costs = iomodel.cost_array("flash2", q_len=[1024, 4096], head_dim=64, block_q=128, block_kv=64)
        >>> bool(costs[1].hbm_bytes == costs.hbm_bytes[1])
        True
        """
        sizes, options = (
            {name: at_place(value, place, self.shape) for name, value in arrays.items()}
            for arrays in (self.tiles, self.options)
        )
        return cost(self.algorithm, self.calls.call(place), sizes or None, **options)

    def at(self, *index: int) -> Cost:
        """Return the cost at one index: an old spelling of ``costs[index]``."""
        warn_renamed("CostArray.at(i)", "costs[i]")
        return self[index]

    def to_dict(self) -> dict[str, Any]:
        """Return every quantity as nested lists, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "shape": list(self.shape),
            "tiles": {name: _plain(value) for name, value in self.tiles.items()},
            "options": {name: _plain(value) for name, value in self.options.items()},
            "reads": {tensor: _plain(self.reads[tensor]) for tensor in self.reads},
            "writes": {tensor: _plain(self.writes[tensor]) for tensor in self.writes},
            **{name: _plain(getattr(self, name)) for name in (*TOTALS, *QUANTITIES)},
            "intensity": _plain(self.intensity),
            "arguments": plain(self.arguments),
        }

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of :func:`iomodel.cost_array` that give this result, defaults included."""
        return FrozenDict({**self.calls.fields, **getattr(self.calls, "widths", {}), **self.tiles, **self.options})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CostArray:
        """Count the arguments of plain data again; the quantities are not read.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """
        known = decoded_values({"algorithm": str, "arguments": Mapping[str, Any]}, (), data, cls.__name__)
        arguments = {name: value for name, value in known["arguments"].items() if name not in ("algorithm", "engine")}
        made = cost_array(known["algorithm"], **arguments)
        derived = ("shape", "tiles", "options", "reads", "writes", "intensity", *TOTALS, *QUANTITIES)
        check_keys(data, (*known, *derived))
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CostArray):
            return NotImplemented
        return self.algorithm == other.algorithm and plain(self.arguments) == plain(other.arguments)

    def __hash__(self) -> int:
        return hash((self.algorithm, self.shape))

    def records(self) -> dict[str, Any]:
        """Return a column per array argument, tensor and quantity, with a row per point."""
        columns = {name: value for name, value in self.arguments.items() if isinstance(value, np.ndarray)}
        moved = {
            f"{side}_{tensor}": values for side in ("reads", "writes") for tensor, values in getattr(self, side).items()
        }
        counts = {name: getattr(self, name) for name in (*TOTALS, *QUANTITIES)}
        return flat_columns({**columns, **moved, **counts}, self.shape)

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        rows = [("points", f"{self.size:,}", "", "-")]
        for name in ("hbm_bytes", "hbm_elements", "flops", "footprint_bytes") if self.size else ():
            entry, values = {**QUANTITIES, **TOTALS}[name], getattr(self, name)
            rows.append((entry.label, f"{values.min():,}", f"{values.max():,}", entry.unit))
        return [Table(f"{self.algorithm}: {self.shape}", ("quantity", ">least", ">most", "unit"), rows)]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


@strict
def cost_array(
    algorithm: AlgorithmLike,
    workload: Shape | None = None,
    *,
    tiles: Mapping[str, Any] | None = None,
    backend: str = "auto",
    **columns: Any,
) -> CostArray:
    """Count the traffic and the operations of an algorithm exactly, at many shapes, widths and tiles at once.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention, Linear or another workload of one shape, optional
        A template, whose fields the columns replace.
    tiles : mapping of name to int or array, optional
        As for :func:`iomodel.cost`; sizes may be arrays.
    backend : {"auto", "numpy", "numba"}
        The engine for the formulas. "auto" takes NumPy until a formula has been asked 2**19 points in all, then Numba,
        if it is installed (extra ``fast``).
    **columns
        Fields of the workload, tiles and options by name, integers or arrays that broadcast as NumPy's do. The
        numbers, the numeric options, `dtype` and `kv_dtype` may be arrays; ``window_left`` and ``window_right`` may be
        arrays that replace the widths of a :class:`iomodel.Window`; the others are the same for all points.

    Returns
    -------
    CostArray
        The attributes of :class:`iomodel.Cost` as arrays, each counted on first use. Beside a result, the
        evaluation needs only the memory of some blocks that fit a cache.

    Raises
    ------
    UnknownNameError, InputError
        Any value that :func:`iomodel.cost` rejects, with the index of the first such element; shapes that do not
        broadcast. An array of 2**19 elements or more is not copied, and its range is checked at its use, so that the
        array is read only once.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> costs = iomodel.cost_array("flash2", w, q_len=[1024, 4096], block_q=[[64], [128]], block_kv=64)
    >>> costs.hbm_bytes
    array([[ 4460544, 68173824],
           [ 2363392, 34619392]])
    >>> costs.reads["K"].tolist()  # 16 and 64, then 8 and 32 passes over K
    [[1048576, 16777216], [524288, 8388608]]
    """
    if "engine" in columns:
        warn_renamed("cost_array(engine=)", "iomodel.cost_array(backend=)")
        backend = columns.pop("engine")
    as_choice("backend", backend, BACKENDS)
    declaration = find_algorithm(algorithm)
    given = columns_of_calls(declaration, workload, tiles, columns)
    if declaration.answers in UNMASKED:
        return _of_layers(algorithm, backend, without_defaults(UNMASKED[declaration.answers], given))
    called, sizes, numbers, scalars = attention_calls(algorithm, {**ATTENTION, **given})
    bound = BoundCall.bind(algorithm, called.first, scalars, tiled=bool(sizes))
    tiles = with_followers(bound.algorithm.name, bound.tiles, sizes)
    options = FrozenDict({**bound.options, **numbers})
    points = Points(bound.compiled, called, tiles, options, backend)
    return CostArray(name_of(algorithm), called, FrozenDict(tiles), options, points)


ATTENTION = {"batch": 1, "heads": 1, "dtype": "bf16", "mask": "full", "direction": "forward"}
"""Defaults of the fields of attention in :func:`cost_array`."""


class AttentionCalls(NamedTuple):
    """Attention calls with their tiles, their numeric options, and options of one of them."""

    called: Calls
    sizes: dict[str, Any]
    numbers: dict[str, Any]
    scalars: dict[str, Any]


def attention_calls(algorithm: AlgorithmLike, arguments: Mapping[str, Any]) -> AttentionCalls:
    """Check the arguments of :func:`cost_array` for an algorithm of attention."""
    more = dict(arguments)
    fields = {name: more.pop(name) for name in arguments if name in Attention.model_fields or name in SIDES}
    tiles_and_launch = {name: more.pop(name) for name in list(more) if name in TILE_NAMES | LAUNCH_NAMES}
    sizes = {name: as_integers(name, size, late=True) for name, size in tiles_and_launch.items()}
    sizes = {name: size for name, size in sizes.items() if name not in LAUNCH_NAMES}
    numbers = {name: as_integers(name, more[name], late=True) for name in NUMBERS & more.keys()}
    called = calls(fields, {**sizes, **numbers}, late=True)
    scalars = {**more, **{name: _some(value) for name, value in numbers.items()}}
    _check_names(algorithm, called.first, scalars)
    _check_numbers(algorithm, called, {**numbers, **sizes})
    return AttentionCalls(called, sizes, numbers, scalars)


def _of_layers(algorithm: AlgorithmLike, backend: str, arguments: Mapping[str, Any]) -> CostArray:
    """Count calls without a mask, such as linear layers."""
    declaration = find_algorithm(algorithm)
    kind = UNMASKED[declaration.answers]
    taken = (*declaration.takes(), *declaration.written())
    known = [*kind.model_fields, *TILE_NAMES, *taken]
    for name in arguments:
        if name not in known:
            raise UnknownKeywordError(f"argument for {declaration.name}", name, sorted(known))
    numbers = {name: as_integers(name, value) for name, value in arguments.items() if name in TILE_NAMES | NUMBERS}
    called = layers(kind, {name: value for name, value in arguments.items() if name in kind.model_fields}, numbers)
    switches = {name: value for name, value in arguments.items() if name in taken and name not in numbers}
    options = {name: value for name, value in numbers.items() if name in NUMBERS}
    sizes = {name: value for name, value in numbers.items() if name in TILE_NAMES}
    features = {name: name in called.first.features for name in declaration.features}
    bound = BoundCall.bind(algorithm, called.first, {**switches, **dict.fromkeys(options, 1)}, tiled=bool(sizes))
    tiles, chosen = with_followers(declaration.name, bound.tiles, sizes), FrozenDict({**bound.options, **options})
    check_numbers(declaration, {**called.point, **features, **chosen, **tiles})
    points = Points(bound.compiled, called, tiles, chosen, backend)
    return CostArray(name_of(algorithm), called, FrozenDict(tiles), chosen, points)


def _some(value: Any) -> Any:
    return value if not isinstance(value, np.ndarray) else int(value.flat[0]) if value.size else 1


def _check_names(algorithm: AlgorithmLike, first: Attention, options: Mapping[str, Any]) -> None:
    """Raise UnknownNameError for an unknown argument, with the nearest known name."""
    declaration = find_algorithm(algorithm)
    check_kind(declaration, kind_of(first))
    taken = {**declaration.takes(first.direction), **declaration.common}
    known = [*Attention.model_fields, *SIDES, *TILE_NAMES, *taken]
    written = {*AS_WRITTEN, *declaration.written(first.direction)}
    for name in options:
        if name not in taken and name not in written:
            likely = [*Attention.model_fields, *SIDES, *taken, "block_q", "block_kv"]
            raise UnknownKeywordError(f"argument for {algorithm}", name, sorted(known), likely)


def _check_numbers(algorithm: AlgorithmLike, called: Calls, sizes: Mapping[str, Any]) -> None:
    """Raise InputError with the first index where options, lengths and tiles break a requirement."""
    declaration = find_algorithm(algorithm)
    named = {name for requirement in requirements(declaration) for name in requirement.names}
    chosen = {**declaration.takes(called.first.direction), **sizes}
    tiles = {name for name in named if name not in chosen and name in TILE_NAMES}  # missing tiles raise later
    numbers = {name: chosen[name] if name in chosen else called.number(name) for name in named - tiles}
    checked = {name: as_integers(name, value) for name, value in numbers.items()}  # long arrays included
    check_numbers(declaration, {**chosen, "mask": called.first.mask, **checked})
