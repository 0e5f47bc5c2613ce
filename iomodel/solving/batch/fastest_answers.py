"""Answers of the search for the fastest tiles of many calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from iomodel.algorithms import name_of
from iomodel.common.arithmetic import at_places
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer
from iomodel.counting.arrays.calls import Calls
from iomodel.counting.arrays.integers import frozen
from iomodel.counting.arrays.layers import Layers
from iomodel.counting.cost_array import cost_array
from iomodel.counting.kinds import check_kind, kind_of
from iomodel.counting.options import NUMBERS, check_options
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError, InputError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH_NAMES, TILES
from iomodel.nests.implementation import Implementation
from iomodel.solving.batch.fastest_search import FastestSearch
from iomodel.solving.batch.pass_points import KERNELS, PassPoints
from iomodel.solving.batch.solutions import SolutionArray
from iomodel.solving.candidates import PREFERENCE
from iomodel.solving.certificate import TIE
from iomodel.solving.question import Question
from iomodel.timing.clock_points import Fastest
from iomodel.workloads.masks.tabulated import Tabulated

INTERNAL = ("seconds", "requested", "less_keys", "shared", "idle", "least")
"""Columns of a search that are no part of a launch."""
ORDER = (*(entry.name for entry in TILES), "warps", "stages")
"""Tiles and launch, in the order in which they are listed."""


def solve_many_fastest(
    algorithm: Algorithm,
    called: Calls | Layers,
    hardware: Hardware | str | None,
    implementation: str | Implementation | None,
    refused: Mapping[str, Any],
    min_block_kv: Any,
    options: Mapping[str, Any],
    infeasible: str,
) -> SolutionArray:
    """Find the fastest tiles, as :func:`iomodel.solve_many` with ``objective="time"``."""
    given = next((name for name, value in refused.items() if value is not None), None)
    if given is not None:
        raise InputError(f"{given}: {shown(refused[given])} given; allowed: none, with objective='time'")
    if hardware is None:
        raise InputError("hardware: not given; allowed: a device, with objective='time'")
    device = as_device(hardware)
    if not isinstance(called, Calls) or isinstance(called.first.mask, Tabulated) or called.first.direction == "both":
        raise InputError("objective: 'time' given; allowed: attention in one direction, without a mask given by data")
    for name in ("dtype", "kv_dtype", *called.widths):
        if isinstance(called.fields.get(name, called.widths.get(name)), np.ndarray):
            raise InputError(f"{name}: an array given; allowed: one for all calls, with objective='time'")
    check_kind(algorithm, kind_of(called.first))
    numbers = {name: value for name, value in options.items() if name in NUMBERS}
    check_options(algorithm, {**options, **dict.fromkeys(numbers, 1)}, True, called.first.direction)
    shape, size = called.shape, prod(called.shape)

    def flat(values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: np.broadcast_to(value, shape).ravel() if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }

    least = 1 if min_block_kv is None else as_integer("min_block_kv", min_block_kv)
    point = {**called.point, **{name: called.number(name) for name in called.numeric}}
    question = Question(algorithm, called.first, device, implementation, min_block_kv=least)
    if size:
        columns = PassPoints(question, called).by_kernels(flat(point), flat(options), size, _fastest).columns
    else:
        columns = dict.fromkeys(PREFERENCE, np.zeros(0))
    kernels = columns.pop(KERNELS, None)
    feasible = np.isfinite(columns["seconds"])
    arguments = FrozenDict(
        {
            **options,
            "hardware": hardware,
            "min_block_kv": min_block_kv,
            "objective": "time",
            "implementation": implementation,
        }
    )
    if infeasible == "raise" and not feasible.all():
        place = tuple(map(int, np.unravel_index(int(feasible.argmin()), shape)))
        many = np.count_nonzero(~feasible)
        raise InfeasibleError(
            f"{algorithm.name}: no tile fits {device.name} in {many:,} of {size:,} problems, first at index {place}",
            least=device.sram_per_block + 1,
            unit="B",
        )
    columns = {
        name: np.where(feasible, values, 0).astype(np.int64) if name not in INTERNAL else values
        for name, values in columns.items()
    }
    requested = _exact_bytes(algorithm, called, flat, options, columns, feasible)
    names = sorted(columns.keys() - {*INTERNAL}, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    chosen = {name: frozen(columns[name], shape) for name in names}
    known = np.array([kernels.name for kernels in algorithm.implementations])
    wanted = str(getattr(implementation, "name", implementation))
    by = np.broadcast_to(wanted, shape) if kernels is None else known[kernels.astype(np.int64)].reshape(shape)
    searched = {name: chosen.pop(name) for name in [*chosen] if name in (*NUMBERS, "packed")}
    requested = frozen(requested, shape)
    seconds = frozen(np.where(feasible, columns["seconds"], np.nan), shape)
    return SolutionArray(
        name_of(algorithm), FrozenDict(chosen), requested, requested, frozen(feasible, shape), device.sram_per_block,
        "B", called, arguments, seconds, FrozenDict(searched), by,
    )  # fmt: skip


def _fastest(timer: PassPoints, numbers: dict[str, Any], options: dict[str, Any], size: int) -> Fastest:
    """Search the fastest tiles of an implementation at each point, the shipped ones of equally fast ones."""
    columns = FastestSearch(timer.question, timer.called, numbers, options, size).found().columns
    shipped = timer.shipped(numbers, options, size)
    ties = np.isfinite(shipped.seconds) & (shipped.seconds <= columns["least"] * (1 + TIE))
    ties[ties] &= timer.competes(ties, shipped.columns, numbers)
    taken = {"seconds": shipped.seconds, **shipped.columns}
    columns |= {name: np.where(ties, taken[name], values) for name, values in columns.items() if name in taken}
    return Fastest(columns["seconds"], columns)


def _exact_bytes(
    algorithm: Algorithm,
    called: Calls,
    flat: Callable[[Mapping[str, Any]], dict[str, Any]],
    options: Mapping[str, Any],
    columns: Mapping[str, Any],
    feasible: Any,
) -> Any:
    """Count the traffic of the chosen tiles exactly, packed calls apart from others [B]."""
    fields, given = flat(called.fields), flat(options)
    tiles = {name: values for name, values in columns.items() if name not in (*INTERNAL, *LAUNCH_NAMES, "packed")}
    packed = columns.get("packed", np.full(feasible.shape, bool(options.get("packed", False))))
    found = np.zeros(feasible.shape, dtype=np.int64)
    for word in (False, True):
        where = np.flatnonzero(feasible & (packed == word))
        if len(where):
            here = {name: at_places(value, where) for name, value in {**fields, **given, **tiles}.items()}
            switch = {"packed": word} if word or "packed" in columns else {}
            counted = cost_array(algorithm, **{**here, **called.widths, **switch}).hbm_bytes
            found = found.astype(counted.dtype)  # Python integers beyond 64 bits
            found[where] = counted
    return found
