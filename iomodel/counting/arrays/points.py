"""Formulas of an algorithm at the points of a CostArray, and the checks of their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from iomodel.common.validation import LARGEST
from iomodel.counting.arrays.calls import Calls, least_of
from iomodel.counting.arrays.integers import LONG, check_range
from iomodel.counting.arrays.layers import Layers
from iomodel.counting.bands import Count
from iomodel.counting.enumerated import counted
from iomodel.counting.evaluation.array_engine import Ends, Seen
from iomodel.counting.evaluation.blocks import Part, aligned, blocks, offset, part_of
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.counting.evaluation.numpy_runner import Runner
from iomodel.counting.expressions import Expressions
from iomodel.nests.symbols import BY_NAME, NAME_OF


@dataclass(frozen=True, eq=False)
class Points:
    """The formulas of one algorithm with the numbers at every point, and the results computed so far."""

    formulas: Expressions
    calls: Calls | Layers
    tiles: Mapping[str, Any]
    options: Mapping[str, Any]
    engine: str
    _known: dict[tuple[str, str | None], Any] = field(default_factory=dict, repr=False)
    _unchecked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        beside = {**self.tiles, **self.options}
        self._unchecked.extend([*self.calls.late, *(name for name, value in beside.items() if np.size(value) >= LONG)])

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the cached results."""
        return {**self.__dict__, "_known": {}}

    def tensors(self, side: str) -> Mapping[str, Expr]:
        """Return the formula of each tensor on one side, ``reads`` or ``writes``."""
        formulas: Mapping[str, Expr] = getattr(self.formulas, side)
        return formulas

    def array(self, quantity: str, tensor: str | None = None) -> Any:
        """Return a quantity at every point, computed once."""
        key = quantity, tensor
        if key not in self._known:
            self._known[key] = self._counted(self._formula(quantity, tensor))
        return self._known[key]

    def _formula(self, quantity: str, tensor: str | None) -> Expr:
        if tensor is not None:
            return self.tensors(quantity)[tensor]
        formula: Expr = getattr(self.formulas, quantity)
        return formula

    def _counted(self, formula: Expr) -> Any:
        compiled, nodes = compiled_for(formula, self._same)
        values = [self._node(nodes[symbol]) if symbol in nodes else self._number(symbol) for symbol in compiled.inputs]
        shape = np.broadcast_shapes(*(np.shape(value) for value in values))
        checked = None
        if self._unchecked:
            beside = self._beside(compiled.inputs)
            if shape == self.calls.shape and beside:  # one pass over all the arrays takes less than two over some
                compiled, _ = compiled_for(formula, self._same, beside)
                values += [self._number(symbol) for symbol in beside]
            checked = self._checker([NAME_OF.get(symbol, str(symbol)) for symbol in compiled.inputs])
            if shape != self.calls.shape:  # the formula lacks an axis of the arrays
                for part in blocks(self.calls.shape):
                    checked(part, {}, PLAIN)
                self._unchecked.clear()
                checked = None
        result = np.broadcast_to(compiled.arrays(*values, engine=self.engine, seen=checked)[0], self.calls.shape)
        if checked is not None:
            self._unchecked.clear()
        result.flags.writeable = False
        return result

    def _number(self, symbol: Symbol) -> Any:
        name = NAME_OF[symbol]
        if name in self.tiles:
            return self.tiles[name]
        return self.options[name] if name in self.options else self.calls.number(name)

    def _beside(self, inputs: Sequence[Symbol]) -> tuple[Symbol, ...]:
        """Return the symbols of unchecked arrays that are no inputs of a formula."""
        symbols = {BY_NAME[name] for name in self._unchecked} - dict(self._same).keys() - set(inputs)
        return tuple(sorted(symbols, key=str))

    @property
    def _same(self) -> tuple[tuple[Symbol, Symbol], ...]:
        """Pairs of symbols with one array: the lengths of self attention, the widths of K and V."""
        fields = {**{name: self.calls.fields[name] for name in LEADERS if name in self.calls.fields}, **self.tiles}
        first: dict[int, str] = {}
        pairs = []
        for name, value in fields.items():
            if isinstance(value, np.ndarray) and first.setdefault(id(value), name) != name:
                pairs.append((BY_NAME[name], BY_NAME[first[id(value)]]))
        return tuple(pairs)

    def _checker(self, inputs: Sequence[str]) -> Seen:
        """Build the check of unchecked arrays, run part by part."""
        numbers = {**self.calls.numeric, **self.tiles, **self.options}
        arrays = {name: aligned(np.asarray(value), len(self.calls.shape)) for name, value in numbers.items()}
        apart = not {"heads", "kv_heads"}.isdisjoint(self._unchecked) and numbers["heads"] is not numbers["kv_heads"]
        places = {name: place for place, name in enumerate(inputs)}
        unchecked = tuple(self._unchecked)

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

    def _node(self, node: Count) -> Any:
        """Compute a count without a closed form, once for each distinct set of its inputs."""
        assert isinstance(self.calls, Calls)  # only a mask has counts without a formula
        quantity, outer, *sizes = node.args
        compiled = Compiled(sizes)
        tile_sizes = np.broadcast_arrays(*compiled.arrays(*map(self._number, compiled.inputs)))
        inputs = [*tile_sizes, *(self.calls.number(name) for name in COUNTED)]
        columns = [np.asarray(column).astype(object) for column in np.broadcast_arrays(*inputs)]
        known: dict[tuple[int, ...], int] = {}
        result = np.empty(columns[0].shape, dtype=object)
        for place in np.ndindex(result.shape):
            point = tuple(int(column[place]) for column in columns)
            if point not in known:
                u, v, group, q_len, kv_len, page_size, left, right = point
                mask = self.calls.first.mask
                if self.calls.widths:
                    sides = {"left": left, "right": right}
                    mask = mask.model_copy(update={s: n for s, n in sides.items() if getattr(mask, s) is not None})  # type: ignore[union-attr]
                call: Any = SimpleNamespace(q_len=q_len, kv_len=kv_len, page_size=page_size, mask=mask)
                known[point] = counted(str(quantity), str(outer), u, v, group, call)
            result[place] = known[point]
        return result


LEADERS = ("q_len", "kv_len", "heads", "kv_heads", "head_dim", "value_dim")
PLAIN = Runner(Compiled([]), ())
COUNTED = ("q_len", "kv_len", "page_size", "window_left", "window_right")


@lru_cache(maxsize=1024)
def compiled_for(
    formula: Expr, same: tuple[tuple[Symbol, Symbol], ...], beside: tuple[Symbol, ...] = ()
) -> tuple[Compiled, dict[Symbol, Count]]:
    """Compile one formula over its own symbols, and return the symbols that replace counts with these counts.

    Symbols that share an array become one symbol. The symbols `beside` are inputs that the formula ignores.
    """
    nodes = sorted(formula.atoms(Count), key=str)
    names = {node: Symbol(f"count_{i}", integer=True, nonnegative=True) for i, node in enumerate(nodes)}
    compiled = Compiled([formula.xreplace(names)], same=dict(same))
    if beside:
        compiled = Compiled([formula.xreplace(names)], (*compiled.inputs, *beside), dict(same))
    return compiled, {name: node for node, name in names.items()}
