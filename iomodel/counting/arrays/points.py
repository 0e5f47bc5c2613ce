"""Quantities of an algorithm at the points of a CostArray, and the checks of their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from iomodel.common.validation import LARGEST
from iomodel.counting.arrays.calls import Calls, least_of
from iomodel.counting.arrays.integers import LONG, check_range
from iomodel.counting.arrays.layers import Layers
from iomodel.counting.compiled_algorithm import CompiledAlgorithm
from iomodel.counting.evaluation.array_engine import Ends, Seen
from iomodel.counting.evaluation.blocks import Part, aligned, blocks, offset, part_of
from iomodel.counting.evaluation.compiled import Compiled, StoredFormulas
from iomodel.counting.evaluation.numpy_runner import Runner
from iomodel.counting.evaluation.outputs import output_of


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
        stored = self.compiled.compiled.compiled
        short = prod(self.calls.shape) < LONG and not self.unchecked
        if short and self.engine != "numba" and isinstance(stored, StoredFormulas) and not self.compiled.compiled.nodes:
            names = (*self.calls.point, *self.compiled.numbers, *self.compiled.tiles)
            formula, inputs = _stored_output(stored.text, *self.compiled.outputs_of(quantity, tensor))
            return formula.arrays(*(self._number(names[place]) for place in inputs), engine=self.engine)[0]
        return self._compiled_here(quantity, tensor)

    def _compiled_here(self, quantity: str, tensor: str | None) -> Any:
        """Count with a formula that is compiled for these arrays: with common factors taken out, or as machine code."""
        from iomodel.counting.arrays.symbolic import inputs_of

        formulas = self.compiled.formulas
        formula = getattr(formulas, quantity) if tensor is None else getattr(formulas, quantity)[tensor]
        compiled, names, values = inputs_of(formula, self.calls, self.tiles, self._number, self.unchecked)
        checked = None
        if self.unchecked:
            checked = self._checker(names)
            if np.broadcast_shapes(*map(np.shape, values)) != self.calls.shape:  # the formula lacks an axis
                for part in blocks(self.calls.shape):
                    checked(part, {}, Runner(compiled, ()))
                self.unchecked.clear()
                checked = None
        result = compiled.arrays(*values, engine=self.engine, seen=checked)[0]
        if checked is not None:
            self.unchecked.clear()
        return result

    def _number(self, name: str) -> Any:
        if name in self.tiles:
            return self.tiles[name]
        return self.options[name] if name in self.options else self.calls.number(name)

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
                low, most[name] = ends[place] if place in ends else runner.extremes(here)
                start = offset([where.start for where in part], arrays[name])
                check_range(name, here, low, most[name], least_of(name), start)
            if apart:
                heads, kv_heads = (part_of(arrays[name], part) for name in ("heads", "kv_heads"))
                if not runner.divides(kv_heads, heads, most.get("heads", LARGEST)):
                    assert isinstance(self.calls, Calls)
                    self.calls.refuse(heads % kv_heads != 0, part)

        return check


@lru_cache(maxsize=1024)
def _stored_output(text: str, places: tuple[int, ...], joined_by: str) -> tuple[StoredFormulas, tuple[int, ...]]:
    """Return one output of a stored function as a formula, with the places of its inputs."""
    own, inputs = output_of(text, places, joined_by)
    return StoredFormulas(own, 1, lambda: Compiled([])), inputs
