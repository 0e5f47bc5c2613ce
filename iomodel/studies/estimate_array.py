"""Times of one algorithm at arrays of shapes, tiles and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.arrays.calls import Calls
from iomodel.counting.arrays.integers import as_integers, common_shape, frozen
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.cost_array import CostArray, cost_array
from iomodel.counting.options import NUMBERS
from iomodel.counting.requirements import met
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.rates import rates
from iomodel.errors import InfeasibleError, InputError, UnknownNameError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.nests.implementation import Implementation
from iomodel.placement.implementations import implementation_for
from iomodel.solving.candidates import choices, underfilled
from iomodel.studies.estimate_array_result import EstimateArray
from iomodel.timing.balance import GridRows
from iomodel.timing.clock import Clock, clock_for
from iomodel.timing.clock_points import Fastest, PointCalls, fastest_at
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.workloads.attention import Attention
from iomodel.workloads.masks.tabulated import Tabulated

BLOCK = 1 << 14
"""Points timed together, whose arrays fit a cache [-]."""


def estimate_array(
    algorithm: AlgorithmLike,
    hardware: Hardware | str,
    *,
    parameters: Parameters = DEFAULT,
    implementation: str | Implementation | None = None,
    infeasible: str = "raise",
    **arguments: Any,
) -> EstimateArray:
    """Estimate the time of an algorithm at many shapes, tiles and options at once.

    Parameters
    ----------
    algorithm, hardware, parameters, implementation
        As for :func:`iomodel.estimate`.
    infeasible : {"raise", "mark"}
        The result where a tile does not fit: an error, or a time of NaN.
    **arguments
        The calls, tiles and options, as for :func:`iomodel.cost_array`: any number may be an array, and all broadcast.
        ``warps`` and ``stages`` may be arrays too; without them the fastest launch of each tile counts. Options that
        the kernels choose per call are chosen for each point if they are not given.

    Raises
    ------
    InfeasibleError
        A tile does not fit the device; the error has its index.
    UnknownNameError, InputError, SpecError
        As for :func:`iomodel.estimate` and :func:`iomodel.cost_array`; no tiles; arrays of dtypes; a mask given by
        data, linear layers, and both directions at once, which have no arrays of times.

    Examples
    --------
    >>> import iomodel
    >>> times = iomodel.estimate_array("flash3", "h100-sxm5", q_len=[2048, 4096, 8192], heads=16, head_dim=128,
    ...                                mask="causal", block_q=128, block_kv=128)
    >>> [f"{mfu:.2f}" for mfu in times.mfu], times.bound.tolist()
    (['0.47', '0.56', '0.60'], ['matrix', 'matrix', 'matrix'])
    """
    device, declaration = as_device(hardware), find_algorithm(algorithm)
    if not isinstance(infeasible, str) or infeasible not in ("raise", "mark"):
        raise UnknownNameError("infeasible", infeasible, ["raise", "mark"])
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.Parameters")
    if declaration.answers != Attention.operation:
        raise InputError(
            f"algorithm: {declaration.name} given; allowed: an algorithm of attention, in an array of times"
        )
    launch = {name: as_integers(name, arguments[name]) for name in sorted(LAUNCH_NAMES & arguments.keys())}
    costs = cost_array(algorithm, **{name: value for name, value in arguments.items() if name not in launch})
    called = _checked(costs)
    shape = common_shape({"calls, tiles and options": np.empty(costs.shape, dtype=bool), **launch})
    taken = {**declaration.takes(called.first.direction), **declaration.common}
    points = _Points(
        declaration, device, implementation, parameters, called,
        {name: value for name, value in costs.options.items() if name in arguments and name in taken},
        {name: _flat(value, shape) for name, value in {**called.point, **costs.tiles, **launch}.items()},
        {name: _flat(value, shape) for name, value in costs.options.items() if name in arguments},
    )  # fmt: skip
    size = prod(shape)
    parts = [points.fastest(slice(start, min(start + BLOCK, size))) for start in range(0, size, BLOCK)]
    columns = {name: _joined([part.column(name) for part in parts]) for name in _names(parts)}
    seconds = np.concatenate([part.seconds for part in parts]) if parts else np.zeros(0)
    misfits = np.flatnonzero(np.isinf(seconds))
    seconds[misfits] = np.nan
    shaped = {name: frozen(column, shape) for name, column in columns.items()}
    streamed = shaped.pop("streamed", np.zeros(shape))
    chosen = {
        name: frozen(shaped.pop(name).astype(np.int64), shape) for name in [*shaped] if name in (*LAUNCH_NAMES, *taken)
    }
    known = {**costs.arguments, **launch}
    inputs = FrozenDict({name: _frozen(known.get(name, value)) for name, value in arguments.items()})
    result = EstimateArray(
        name_of(declaration), device, costs, frozen(seconds, shape), FrozenDict(shaped), streamed, FrozenDict(chosen),
        rates(device, called.first.dtype), parameters, implementation, inputs,
    )  # fmt: skip
    if len(misfits) and infeasible == "raise":
        place = tuple(map(int, np.unravel_index(misfits[0], shape)))
        try:
            result.at(*place)
        except InfeasibleError as error:
            text = f"{error}; at index {place}, the first of {len(misfits):,} among {size:,} points"
            raise InfeasibleError(text, least=error.least, unit=error.unit) from None
    return result


def _joined(parts: Sequence[Any]) -> Any:
    """Concatenate the parts of a column; one value for all points takes no memory."""
    if all(len(part) and part.strides == (0,) and part[0] == parts[0][0] for part in parts):
        return np.broadcast_to(parts[0][0], sum(map(len, parts)))
    return np.concatenate(parts)


def _checked(costs: CostArray) -> Calls:
    """Return the calls if they have arrays of times; raise InputError with the reason if not."""
    called = costs.calls
    assert isinstance(called, Calls)
    if isinstance(called.first.mask, Tabulated):
        raise InputError("mask: data given; allowed: 'full', 'causal' or a Window, in an array of times")
    if called.first.direction == "both":
        raise InputError("direction: 'both' given; allowed: 'forward' or 'backward', in an array of times")
    for name in ("dtype", "kv_dtype", *called.widths):
        if isinstance(called.fields.get(name, called.widths.get(name)), np.ndarray):
            raise InputError(f"{name}: an array given; allowed: one for all points, in an array of times")
    costs.hbm_bytes  # noqa: B018 - checks the ranges of long arrays
    return called


@dataclass(frozen=True)
class _Points:
    """The points of one question as flat columns, with the clocks of their kinds of call."""

    algorithm: Algorithm
    device: Hardware
    implementation: str | Implementation | None
    parameters: Parameters
    called: Calls
    given: Mapping[str, Any]
    numbers: Mapping[str, Any]
    options: Mapping[str, Any]
    clocks: dict[Any, list[tuple[dict[str, Any], Clock]]] = field(default_factory=dict)

    def fastest(self, part: slice) -> Fastest:
        """Time a block of points, split into those of one layout."""
        size = part.stop - part.start
        numbers = {name: _part(value, part) for name, value in self.numbers.items()}
        options = {name: _part(value, part) for name, value in self.options.items()}
        packs = underfilled(numbers["q_len"], numbers["group"]) & (numbers["group"] != 1)
        kinds = np.stack(
            [np.broadcast_to(column, size) for column in (numbers["head_dim"], numbers["value_dim"], packs)]
        )
        if (kinds == kinds[:, :1]).all():
            return self._alike(kinds[:, 0].tolist(), numbers, options, size)
        fastest = Fastest.none(size)
        known, places = np.unique(kinds, axis=1, return_inverse=True)
        for number, kind in enumerate(known.T.tolist()):
            where = np.flatnonzero(places.ravel() == number)
            inputs = {name: _part(value, where) for name, value in numbers.items()}
            own = {name: _part(value, where) for name, value in options.items()}
            fastest.place(where, self._alike(kind, inputs, own, len(where)))
        return fastest

    def _alike(self, kind: list[int], numbers: Mapping[str, Any], options: Mapping[str, Any], size: int) -> Fastest:
        """Time points whose rows have the same widths and whose tiles are filled alike."""
        fastest = Fastest.none(size)
        point = {name: numbers[name] for name in self.called.first.numbers}
        for searched, clock in self._clocks(kind, numbers):
            chosen = {**clock.options, **options, **searched}
            tiles = {name: numbers[name] for name in clock.demands.tiles}
            values = {**point, **chosen, **{name: numbers[name] for name in TILE_NAMES & numbers.keys()}}
            features = {name: name in self.called.first.features for name in self.algorithm.features}
            where = np.broadcast_to(met(self.algorithm, {**features, "mask": self.called.first.mask, **values}), size)
            if not where.any():
                continue
            rows = GridRows(
                point["q_len"], point["kv_len"], point["group"], self.called.first.mask, point["batch"], point["heads"]
            )
            calls = PointCalls(point, self.called.first.element_size)
            each = fastest_at(clock, calls, rows, chosen, tiles, numbers, size)
            fastest.offer(where & np.isfinite(each.seconds), each.seconds, {**each.columns, **searched})
        return fastest

    def _clocks(self, kind: list[int], numbers: Mapping[str, Any]) -> list[tuple[dict[str, Any], Clock]]:
        """Return each choice of the searched options that are not given, with its clock."""
        key = tuple(kind)
        if key not in self.clocks:
            fields = {name: int(np.ravel(numbers[name])[0]) for name in self.called.numeric}
            call = Attention(**{**self.called.fields, **fields})
            kernels = implementation_for(self.algorithm, call, self.device, self.implementation)
            clocks: list[tuple[dict[str, Any], Clock]] = []
            known = rates(self.device, call.dtype)
            first = {name: int(np.ravel(value)[0]) if name in NUMBERS else value for name, value in self.given.items()}
            for searched in choices(kernels, call, self.algorithm.takes(call.direction), first):
                words = {name: value for name, value in searched.items() if name not in NUMBERS}
                bound = BoundCall.bind(self.algorithm, call, {**first, **words}, tiled=bool(self._tiles))
                clock = clock_for(
                    self.algorithm, call, self.device, bound.options, self.parameters, known, self.implementation
                )
                clocks.append((searched, clock))
            self.clocks[key] = clocks
        return self.clocks[key]

    @property
    def _tiles(self) -> set[str]:
        return set(TILE_NAMES & self.numbers.keys())


def _flat(value: Any, shape: tuple[int, ...]) -> Any:
    """Lay an array out over all points; a single number stays one."""
    if not isinstance(value, np.ndarray):
        return value
    return value.item() if value.size == 1 else np.broadcast_to(value, shape).ravel()


def _part(value: Any, where: Any) -> Any:
    return value[where] if isinstance(value, np.ndarray) else value


def _frozen(value: Any) -> Any:
    """Return an argument that cannot be changed."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.setflags(write=False)
    return value


def _names(parts: Sequence[Fastest]) -> list[str]:
    """List the columns of all blocks, in order."""
    return list(dict.fromkeys(name for part in parts for name in part.columns))
