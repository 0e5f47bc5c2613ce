"""A nest made ready to run: numbers for symbols, conditions decided, a slot for the tile of every axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Expr, Integer, Symbol

from iomodel.counts import allocations, buffers, in_bytes, tile_elements
from iomodel.coverage import View
from iomodel.nest import (
    Accumulate,
    Axis,
    Elementwise,
    Exp,
    Guard,
    Hold,
    Live,
    Load,
    Lookup,
    Loop,
    MatMul,
    Nest,
    Path,
    Random,
    Statement,
    Tanh,
    Tensor,
    When,
    loops,
    rebuilt,
)
from iomodel.symbols import G, N_k, p
from iomodel.tensors import grouped, head, key, query
from iomodel.tracing.program import Coordinate, Held, Program, Step, Walk

OTHER = {query: key, key: query}


class Numbers:
    """The numbers of a call, for every formula of a nest."""

    def __init__(self, values: Mapping[Symbol, int], view: View) -> None:
        shared = values[G] > 1 and not view.packed
        self.view = view
        self.point = {symbol: Integer(number) for symbol, number in values.items()} | {grouped: Integer(shared)}

    def __call__(self, formula: Expr) -> int:
        """The value of a formula."""
        return int(formula.xreplace(self.point))

    def decided(self, statement: Statement) -> Sequence[Statement]:
        """The statement itself, or what a condition leaves of it."""
        if isinstance(statement, When):
            return statement.body if self(statement.holds) else ()
        return (statement,)


def programs(nest: Nest, values: Mapping[Symbol, int], view: View) -> tuple[Program, ...]:
    """Every kernel of a nest, ready to run at these numbers."""
    number = Numbers(values, view)
    nest = tuple(kernel.with_body(rebuilt(kernel.body, number.decided)) for kernel in nest)
    made = []
    for kernel, size in zip(nest, allocations(nest, view, in_bytes), strict=True):
        compiler = _Compiler(number)
        body = compiler.scope(kernel, (), {})
        made.append(Program(kernel.title, kernel.per, body, tuple(compiler.slots.values()), number(size)))
    return tuple(made)


class _Scope:
    """The buffers of a body: those that are there so far, and those still to come; all in bytes."""

    def __init__(self, have: dict[Tensor, int], waiting: dict[Tensor, int]) -> None:
        self.have, self.waiting = dict(have), waiting

    def declare(self, *tensors: Tensor) -> None:
        """Give tensors their buffers, unless they have them."""
        self.have |= {tensor: self.waiting.pop(tensor) for tensor in tensors if tensor in self.waiting}

    @property
    def held(self) -> Held:
        return tuple((tensor.name, size) for tensor, size in self.have.items())


class _Compiler:
    """Makes the statements of one kernel, and finds its slots on the way."""

    def __init__(self, number: Numbers) -> None:
        self.number, self.view = number, number.view
        self.slots: dict[tuple[str, str], Coordinate] = {}

    def slot(self, kind: str, name: str, stop: int = 0) -> int:
        """The slot of an axis as a loop has it, as a whole, and so on; 0 .. stop at first."""
        self.slots.setdefault((kind, name), (name, 0, stop))
        return list(self.slots).index((kind, name))

    def scope(self, block: Any, path: Path, above: dict[Tensor, int]) -> tuple[Step | Walk, ...]:
        """The statements of a kernel or a loop; its buffers come one by one, but all before a loop inside."""
        here = (*path, block)
        own: dict[Tensor, int] = {}
        for tensor, dtype, around in buffers(block.body, here):
            if tensor not in above and tensor not in own:
                own[tensor] = self.number(in_bytes(dtype) * tile_elements(tensor, around, self.view))
        return self.body(block, here, _Scope(above, own))

    def body(self, block: Any, path: Path, scope: _Scope) -> tuple[Step | Walk, ...]:
        found: list[Step | Walk] = []
        for statement in block.body:
            if isinstance(statement, Loop):
                scope.declare(*scope.waiting)
                found.append(self.loop(statement, path, scope))
            elif isinstance(statement, Guard):  # it opens no scope of its own
                inner = self.body(statement, (*path, statement), scope)
                assert not isinstance(statement, When)
                bounds = self.bounds(statement.axis, path, True)
                found.append(Walk(statement.axis.name, body=inner, live=isinstance(statement, Live), **bounds))
            elif not isinstance(statement, Elementwise) or isinstance(statement, Exp | Tanh | Random):
                found.append(self.step(statement, path, scope))
        return tuple(found)

    def loop(self, loop: Loop, path: Path, scope: _Scope) -> Walk:
        axis = loop.axis
        more: dict[str, Any] = {}
        if axis == key:
            more["stored"] = self.slot("stored", "key"), self.number(p * -(-N_k // p))
            more["pages"] = self.slot("loop", "page"), self.number(p)
        body = self.scope(loop, path, scope.have)
        slot, tile = self.slot("loop", axis.name), self.number(loop.tile)
        return Walk(axis.name, body=body, tile=tile, slot=slot, **more, **self.bounds(axis, path, loop.masked))

    def bounds(self, axis: Axis, path: Path, masked: bool) -> dict[str, Any]:
        """What a loop or a guard is bounded by: a tile that sees, a part of the axis."""
        found: dict[str, Any] = {"rows": self.number(self.view.rows(axis))}
        for outer in loops(path):
            if masked and outer == OTHER.get(axis):
                found["seer"] = self.slot("loop", outer.name)
            if outer.of == axis and outer.chunk is not None:
                found |= {"part": self.slot("loop", outer.name), "chunk": self.number(outer.chunk)}
        return found

    def step(self, statement: Any, path: Path, scope: _Scope) -> Step:
        op = type(statement).__name__
        if isinstance(statement, MatMul):
            return Step(op, "", self.tile((statement.m, statement.n, statement.k), path), scope.held, factor=2)
        if isinstance(statement, Elementwise):
            return Step(op, "", self.tile(statement.axes, path), scope.held, factor=1)
        tensor = statement.tensor
        if isinstance(statement, Load | Hold):
            scope.declare(tensor)
        width = self.number(in_bytes(getattr(statement, "dtype", None) or tensor.dtype))
        if isinstance(statement, Hold):
            size = self.number(tile_elements(tensor, path, self.view))
            return Step(op, tensor.name, self.tile(tensor.axes, path), scope.held, width, size=size)
        if isinstance(statement, Lookup):
            return Step(op, tensor.name, (self.pages(path),), scope.held, width, 1)
        if isinstance(statement, Accumulate):
            slots = self.tile(statement.axes, path, tensor.paged)
            return Step(op, tensor.name, slots, scope.held, width, 2, atomic=statement.atomic)
        waits = getattr(statement, "after_first", None)
        after = None if waits is None else self.slot("loop", waits.name)
        return Step(op, tensor.name, self.tile(tensor.axes, path, tensor.paged), scope.held, width, 1, after=after)

    def tile(self, axes: Sequence[Axis], path: Path, paged: bool = False) -> tuple[int, ...]:
        """The slots of what a statement covers: where a loop is, or all of an axis."""
        around, found = loops(path), []
        for axis in axes:
            if axis in around:
                found.append(self.slot("stored" if paged and axis == key else "loop", axis.name))
            else:
                rows = self.number(self.view.extent(axis, path))  # one row of heads inside one row of queries
                found.append(self.slot("one" if axis == head and rows == 1 else "whole", axis.name, rows))
        return tuple(found)

    def pages(self, path: Path) -> int:
        """The slot of the pages that the keys of the current tile lie in."""
        return (
            self.slot("loop", "page") if key in loops(path) else self.slot("whole", "page", self.number(-(-N_k // p)))
        )
