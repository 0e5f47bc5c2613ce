"""Quantities of an algorithm at the points of a CostArray, and the checks of their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iomodel.common.validation import LARGEST
from iomodel.counting.arrays.calls import SIDES, Calls, least_of
from iomodel.counting.arrays.integers import LONG, check_range
from iomodel.counting.arrays.layers import Layers
from iomodel.counting.compiled_algorithm import COUNT, CompiledAlgorithm, enumerated
from iomodel.counting.enumerated import MaskedRows
from iomodel.counting.evaluation.array_engine import Ends, Seen, extremes
from iomodel.counting.evaluation.blocks import Part, aligned, blocks, offset, part_of
from iomodel.counting.evaluation.engine_choice import Runner


@dataclass(frozen=True, eq=False)
class Points:
    """The formulas of one algorithm with the numbers at every point, and the results computed so far."""

    compiled: CompiledAlgorithm
    calls: Calls | Layers
    tiles: Mapping[str, Any]
    options: Mapping[str, Any]
    engine: str
    unchecked: list[str] = field(default_factory=list)
    _known: dict[tuple[str, str | None], Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        beside = {**self.tiles, **self.options}
        self.unchecked.extend([*self.calls.late, *(name for name, value in beside.items() if np.size(value) >= LONG)])

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the cached results."""
        return {**self.__dict__, "_known": {}}

    def tensors(self, side: str) -> tuple[str, ...]:
        """Return the names of the tensors on one side, ``reads`` or ``writes``."""
        return self.compiled.reads if side == "reads" else self.compiled.writes

    def array(self, quantity: str, tensor: str | None = None) -> Any:
        """Return a quantity at every point, computed once."""
        key = quantity, tensor
        if key not in self._known:
            result = np.broadcast_to(self._counted(quantity, tensor), self.calls.shape)
            result.flags.writeable = False
            self._known[key] = result
        return self._known[key]

    def _counted(self, quantity: str, tensor: str | None) -> Any:
        formula, names = self.compiled.output(quantity, tensor)
        values = [self._number(name) for name in names]
        checked = self._checker(names) if self.unchecked else None
        if checked is not None and np.broadcast_shapes(*map(np.shape, values)) != self.calls.shape:
            for part in blocks(self.calls.shape):  # the formula lacks an axis
                checked(part, {}, Runner(formula, ()))
            checked = None
        result = formula.arrays(*values, engine=self.engine, seen=checked)[0]
        self.unchecked.clear()
        return result

    def _number(self, name: str) -> Any:
        if name in self.tiles:
            return self.tiles[name]
        if name in self.options:
            return self.options[name]
        if not name.startswith(COUNT):
            return self.calls.number(name)
        assert isinstance(self.calls, Calls)  # only a mask has counts without a formula
        q_len, kv_len, page_size = map(self.calls.number, ("q_len", "kv_len", "page_size"))
        rows = MaskedRows(q_len, kv_len, page_size, self.calls.first.mask)
        widths = {SIDES[side]: value for side, value in self.calls.widths.items()}
        point = [*self.calls.point.values(), *map(self._number, (*self.compiled.numbers, *self.compiled.tiles))]
        return enumerated(self.compiled.compiled.nodes[int(name.removeprefix(COUNT))], point, rows, widths)

    def _checker(self, inputs: Sequence[str]) -> Seen:
        """Build the check of unchecked arrays, run part by part."""
        numbers = {**self.calls.numeric, **self.tiles, **self.options}
        arrays = {name: aligned(np.asarray(value), len(self.calls.shape)) for name, value in numbers.items()}
        apart = not {"heads", "kv_heads"}.isdisjoint(self.unchecked) and numbers["heads"] is not numbers["kv_heads"]
        places = {name: place for place, name in enumerate(inputs)}
        unchecked = tuple(self.unchecked)

        def check(part: Part, ends: Mapping[int, Ends], runner: Runner) -> None:
            most = {}
            for name in unchecked:
                here, place = part_of(arrays[name], part), places.get(name, -1)
                low, most[name] = ends[place] if place in ends else extremes(here)
                start = offset([where.start for where in part], arrays[name])
                check_range(name, here, low, most[name], least_of(name), start)
            if apart:
                heads, kv_heads = (part_of(arrays[name], part) for name in ("heads", "kv_heads"))
                if not runner.divides(kv_heads, heads, most.get("heads", LARGEST)):
                    assert isinstance(self.calls, Calls)
                    self.calls.refuse(heads % kv_heads != 0, part)

        return check
