"""Times of attention calls at arrays of shapes, tiles and options, in one direction or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.common.arithmetic import at_places
from iomodel.counting.arrays.calls import Calls
from iomodel.counting.arrays.integers import common_shape
from iomodel.counting.cost_array import ATTENTION, CostArray, attention_calls, cost_array
from iomodel.counting.options import in_pass
from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.nests.implementation import TEXTBOOK, Implementation
from iomodel.solving.batch.pass_points import KERNELS, Columns, PassPoints, filled
from iomodel.solving.by_pass import joined, of_pass
from iomodel.solving.question import Question
from iomodel.timing.clock_points import Fastest, in_sequence
from iomodel.timing.parameters import Parameters

KERNELS_OF = "{} implementation"
"""The column of the implementations of a pass of a call in both directions."""


@dataclass(frozen=True)
class AttentionPoints:
    """The points of one question as flat columns, with a timer of each pass.

    `tiles` are the names of the tiles that each point chooses, `options` those options that are given.
    """

    algorithm: Algorithm
    called: Calls
    arguments: Mapping[str, Any]
    counted: CostArray | None
    shape: tuple[int, ...]
    passes: Mapping[str, PassPoints]
    tiles: tuple[str, ...]
    numbers: Columns
    options: Columns

    @classmethod
    def of(
        cls, algorithm: Algorithm, device: Hardware, implementation: str | Implementation | None,
        parameters: Parameters, arguments: Mapping[str, Any], launch: Mapping[str, Any],
    ) -> AttentionPoints:  # fmt: skip
        """Check the arguments and lay them out."""
        counted, own = None, launch or TILE_NAMES & arguments.keys()
        asked = None if own else attention_calls(algorithm, {**ATTENTION, **arguments})
        question = None if asked is None else Question.ask(algorithm, asked.called.first, device, None, asked.scalars)
        free = () if question is None else question.untiled.tiles
        if asked is None or question is None or not free:
            counted = cost_array(algorithm, **arguments)
            called, complete, sizes = counted.calls, counted.options, counted.tiles
        else:
            complete = {**question.bound.options, **asked.numbers}
            called, sizes = asked.called, {}
        assert isinstance(called, Calls)
        for name in ("dtype", "kv_dtype", *called.widths):
            if isinstance(called.fields.get(name, called.widths.get(name)), np.ndarray):
                raise InputError(f"{name}: an array given; allowed: one for all points, in an array of times")
        if counted is not None:
            counted.hbm_bytes  # noqa: B018 - checks the ranges of long arrays
        shape = common_shape({"calls, tiles and options": np.empty(called.shape, dtype=bool), **launch})
        both = called.first.direction == "both"
        names = ("forward", "backward") if both else (called.first.direction,)
        question = Question(algorithm, called.first, device, implementation, parameters=parameters)
        parts = {name: _in_direction(called, name) for name in names}
        passes = {name: PassPoints(replace(question, call=part.first), part) for name, part in parts.items()}
        point = {**called.point, **{name: called.number(name) for name in called.numeric}}
        given = complete if both and not free else {name: complete[name] for name in complete.keys() & arguments.keys()}
        return cls(
            algorithm, called, arguments, counted, shape, passes, tuple(free),
            {name: flat(value, shape) for name, value in {**point, **sizes, **launch}.items()},
            {name: flat(value, shape) for name, value in given.items()},
        )  # fmt: skip

    @cached_property
    def chosen(self) -> set[str]:
        """Names of the columns that are chosen for each point."""
        taken = {**self.algorithm.takes(self.called.first.direction), **self.algorithm.common}
        launch = map(KERNELS_OF.format, self.passes) if len(self.passes) > 1 else (*LAUNCH_NAMES, KERNELS)
        return {*launch, *taken, *self.tiles}

    def implementations(self, chosen: Mapping[str, Any]) -> Any:
        """Name the implementation of each point, of both passes in a call of both."""
        wanted = next(iter(self.passes.values())).question.implementation
        columns = [chosen[name] for name in (KERNELS, *map(KERNELS_OF.format, self.passes)) if name in chosen]
        if wanted is not None or not columns:
            return np.broadcast_to(str(getattr(wanted, "name", wanted) or TEXTBOOK.name), self.shape)
        names = np.array([*(known.name for known in self.algorithm.implementations), TEXTBOOK.name])
        first, *others = (names[column] for column in columns)
        for other in others:
            first = np.where(first == other, first, np.char.add(np.char.add(first, " and "), other))
        return first

    def fastest(self, part: slice) -> Fastest:
        """Time a block of points."""
        size = part.stop - part.start
        numbers = {name: at_places(value, part) for name, value in self.numbers.items()}
        options = {name: at_places(value, part) for name, value in self.options.items()}
        if not self.tiles:
            return in_sequence(self._timed(numbers, options, size, False))
        columns, found, options = self._defaults(numbers, options, size)
        if not found.any():
            return Fastest.none(size)
        passes = self._timed({**numbers, **filled(columns, found)}, options, size, True)
        timed = in_sequence(passes)
        timed.columns |= columns
        timed.columns |= {name: value for name, value in options.items() if name not in self.options}
        return Fastest(np.where(found, timed.seconds, np.inf), timed.columns)

    def _timed(self, numbers: Columns, options: Columns, size: int, searched: bool) -> list[Fastest]:
        """Time each pass at its tiles."""
        if len(self.passes) == 1:
            return [timer.fastest(numbers, options, size, searched) for timer in self.passes.values()]
        found = []
        for direction, timer in self.passes.items():
            own = in_pass(self.algorithm, direction, options)
            if direction == "forward":
                own |= self.algorithm.saved
            here = of_pass(direction, numbers)
            if KERNELS_OF.format(direction) in numbers:
                here[KERNELS] = numbers[KERNELS_OF.format(direction)]
            each = timer.fastest(here, own, size, True)
            kept = {name: values for name, values in each.columns.items() if name not in LAUNCH_NAMES}
            if KERNELS in kept:
                kept[KERNELS_OF.format(direction)] = kept.pop(KERNELS)
            found.append(Fastest(each.seconds, kept))
        return found

    def _defaults(self, numbers: Columns, options: Columns, size: int) -> tuple[Columns, Any, Columns]:
        """Choose the tiles, the launch and the options of each point, those of the forward pass first."""
        if len(self.passes) == 1:
            ((_, timer),) = self.passes.items()
            chosen, found = timer.defaults(numbers, options, size)
            return (*_tiles_first(chosen, found, options),)
        tiles: dict[str, Columns] = {}
        every = np.full(size, True)
        for direction, timer in self.passes.items():
            chosen, found = timer.defaults(numbers, in_pass(self.algorithm, direction, options), size)
            tiles[direction], found, options = _tiles_first(chosen, found, options)
            every &= found
        kernels = {KERNELS_OF.format(name): part[KERNELS] for name, part in tiles.items() if KERNELS in part}
        return {**joined(self.tiles, tiles), **kernels}, every, options

    def costs(self, tiles: Mapping[str, Any], found: Any) -> CostArray:
        """Count the points at the tiles that they choose."""
        if self.counted is not None:
            return self.counted
        feasible = found.reshape(self.shape)
        sizes = {name: np.where(feasible, values, max(1, int(values.max(initial=1)))) for name, values in tiles.items()}
        return cost_array(self.algorithm, **{**self.arguments, **dict.fromkeys(self.tiles, 1), **sizes})


def _tiles_first(chosen: Columns, found: Any, options: Columns) -> tuple[Columns, Any, Columns]:
    """Part the tiles and the launch from the options that are chosen with them."""
    sizes = {name: value for name, value in chosen.items() if name in TILE_NAMES | LAUNCH_NAMES | {KERNELS}}
    more = {name: value for name, value in filled(chosen, found).items() if name not in sizes}
    return sizes, found, {**more, **options}


def _in_direction(called: Calls, direction: str) -> Calls:
    if called.first.direction == direction:
        return called
    first = called.first.model_copy(update={"direction": direction})
    return replace(called, fields={**called.fields, "direction": direction}, first=first)


def flat(value: Any, shape: tuple[int, ...]) -> Any:
    """Lay an array out over all points; a single number stays one."""
    if not isinstance(value, np.ndarray):
        return value
    return value.item() if value.size == 1 else np.broadcast_to(value, shape).ravel()
