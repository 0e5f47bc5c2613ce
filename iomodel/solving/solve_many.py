"""Tiles of proven least HBM bytes for arrays of problems, searched together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Literal

import numpy as np

from iomodel.algorithms import AlgorithmLike, name_of, schedule_and_kernels
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_choice
from iomodel.counting.arrays.calls import SIDES, Calls, calls
from iomodel.counting.arrays.integers import as_integers, frozen
from iomodel.counting.arrays.layers import Layers, layers, not_default
from iomodel.counting.kinds import check_kind, kind_of
from iomodel.counting.options import check_options, structural
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError, UnknownNameError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import NUMBERS, OPTIONS, TILES
from iomodel.nests.implementation import Implementation
from iomodel.placement.budget import budget_of
from iomodel.solving.batch.chunks import Results, solve_batch, with_exact
from iomodel.solving.batch.fastest_answers import solve_many_fastest
from iomodel.solving.batch.formulas import many_parts
from iomodel.solving.batch.ranges import Batch
from iomodel.solving.batch.solutions import Solutions, solve_at
from iomodel.solving.parts import parts_for
from iomodel.solving.solve import share_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Mask
from iomodel.workloads.workload_kinds import UNMASKED

FIELDS = Attention.model_fields.keys() | SIDES.keys()


def solve_many(
    algorithm: AlgorithmLike,
    hardware: Hardware | str | None = None,
    *,
    sram_bytes: Any = None,
    sram_elements: Any = None,
    q_len: Any = None,
    head_dim: Any = None,
    kv_len: Any = None,
    batch: Any = 1,
    heads: Any = 1,
    kv_heads: Any = None,
    value_dim: Any = None,
    dtype: Any = "bf16",
    mask: Mask = "full",
    direction: str = "forward",
    alignment: Any = None,
    min_block_kv: Any = None,
    epsilon: float = 0.0,
    objective: Literal["traffic", "time"] = "traffic",
    implementation: str | Implementation | None = None,
    infeasible: Literal["raise", "mark"] = "raise",
    **options: Any,
) -> Solutions:
    """Find the tiles of :func:`iomodel.solve` for arrays of problems at once: of least traffic, or of least time.

    Every number, the budget included, may be an integer or an array of integers; all of them broadcast. The search is
    the same exact search, run on all problems together. `solve` handles single problems whose counts do not fit
    64 bits, and all problems whose counts have no formula: under a mask given by data (BlockMask, Documents), and for
    pages under a mask. It also handles linear layers and recurrences, one after the other. With the objective "time"
    every tile that fits a kernel of the device is timed at every call, in arrays; warps, stages and searched options
    are chosen too.

    Parameters
    ----------
    algorithm, hardware
        As for :func:`iomodel.solve`.
    sram_bytes, sram_elements : int or array, optional
        A bare budget in place of a device [B], [elements].
    q_len, head_dim, kv_len, batch, heads, kv_heads, value_dim : int or array
        The calls, as for :class:`iomodel.Attention`.
    rows, in_features, out_features, groups, scale_block : int or array of int
        The fields of :class:`iomodel.Linear`, for an algorithm of linear layers, in place of those of attention; for
        one of recurrences the fields of :class:`iomodel.Recurrence`.
    dtype, mask, direction
        As for :class:`iomodel.Attention`; the dtype may be an array of names, the others are the same for all calls.
        The widths of a Window may be given as arrays, ``window_left`` and ``window_right``.
    alignment, min_block_kv : int or array, optional
        The tiles are multiples of `alignment`; `min_block_kv` is the least block_kv [rows].
    epsilon : float
        The share of the least traffic that may be given up for the largest block_kv [-].
    objective : {"traffic", "time"}
        The quantity minimised: the traffic on the textbook's machine of one memory, with proof; or the time, with the
        kernels of an implementation on a device.
    implementation : str or Implementation, optional
        With the objective "time", the kernels; by default the first that runs the calls on the device.
    infeasible : {"raise", "mark"}
        The result if no tile fits: an error, or tiles and bytes of 0 and a `feasible` of False.
    **options
        Further fields of the call (``page_size``, ``bias``); options of the algorithm, of which ``splits`` and
        ``dq_buffers`` may be arrays; ``packed=True``.

    Raises
    ------
    InfeasibleError
        No tile fits some of the problems; its `least` is the smallest budget feasible for all.
    UnknownNameError, InputError
        An unknown name; a value out of range, with its index; arrays that do not broadcast; not exactly one budget.

    Examples
    --------
    >>> import iomodel
    >>> found = iomodel.solve_many("flash2", sram_elements=[25600, 51200], q_len=4096, head_dim=64, lse=False)
    >>> found.tiles["block_q"], found.hbm_bytes
    (array([187, 373]), array([24117248, 12582912]))
    """
    share = share_of(epsilon)
    as_choice("objective", objective, ("traffic", "time"))
    as_choice("infeasible", infeasible, ("raise", "mark"))
    integers = {"sram_bytes": sram_bytes, "sram_elements": sram_elements, "alignment": alignment}
    integers |= {"min_block_kv": min_block_kv, **{name: options[name] for name in sorted(NUMBERS & options.keys())}}
    numbers = {name: as_integers(name, value) for name, value in integers.items() if value is not None}
    fields = {"q_len": q_len, "kv_len": kv_len, "batch": batch, "heads": heads, "kv_heads": kv_heads}
    fields |= {"head_dim": head_dim, "value_dim": value_dim, "mask": mask, "direction": direction}
    declaration, implementation = schedule_and_kernels(algorithm, implementation)
    called, own = _called(declaration, fields, dtype, options, numbers)
    if objective == "time":
        bare = {"sram_bytes": sram_bytes, "sram_elements": sram_elements, "alignment": alignment}
        return solve_many_fastest(
            declaration, called, hardware, implementation, {**bare, "epsilon": epsilon or None}, min_block_kv,
            {**own, **{name: numbers[name] for name in NUMBERS & numbers.keys()}}, infeasible,
        )  # fmt: skip
    if not isinstance(implementation, str | None) or implementation not in (None, "textbook"):
        raise InputError(f"implementation: {shown(implementation)} given; allowed: with objective='time'")
    arguments = {**own, **numbers, "hardware": hardware, "epsilon": epsilon}
    problems = Problems(declaration, called, hardware, numbers, own, share, arguments)
    return problems.solved(infeasible == "raise")


def _called(
    declaration: Algorithm,
    fields: dict[str, Any],
    dtype: Any,
    options: Mapping[str, Any],
    numbers: Mapping[str, Any],
) -> tuple[Calls | Layers, dict[str, Any]]:
    """Lay the calls out in arrays; return them with the options that are no fields of a call."""
    options, arrays = dict(options), {name: value for name, value in numbers.items() if isinstance(value, np.ndarray)}
    if declaration.answers in UNMASKED:
        shaped_as = UNMASKED[declaration.answers]
        options |= not_default(fields)  # refused beside the options that the algorithm lacks
        own = {name: options.pop(name) for name in [*options] if name in shaped_as.model_fields}
        return layers(shaped_as, {**own, "dtype": dtype}, arrays), options
    own = {name: options.pop(name) for name in [*options] if name in FIELDS}
    return calls({**own, **fields, "dtype": dtype}, arrays), options


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

    def solved(self, every: bool) -> Solutions:
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
        return Solutions(
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
