"""Compilation of a nest to programs: numbers for symbols, decided conditions, a slot for the tile of every axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sympy import Expr, Integer, Symbol

from iomodel.counting.coverage import View
from iomodel.counting.folds import allocations, buffers, in_bytes
from iomodel.nests.language import (
    Accumulate,
    Axis,
    Cut,
    Exp,
    Guard,
    Hold,
    Kernel,
    Leaf,
    Live,
    Load,
    Lookup,
    Loop,
    MatMul,
    Nest,
    Path,
    Piece,
    Pointwise,
    Random,
    Sight,
    Statement,
    Tanh,
    Tensor,
    When,
    loops,
    rebuilt,
    walk,
)
from iomodel.nests.symbols import G, N_k, N_q, W_l, p
from iomodel.nests.tensors import grouped, head, key, query
from iomodel.studies.trace.program import Coordinate, Held, Program, TraceCut, TraceLoop, TracePiece, TraceStep
from iomodel.workloads.masks.spans import MaskSpans
from iomodel.workloads.window import Window

if TYPE_CHECKING:
    from iomodel.workloads.call import Mask

OTHER = {query: key, key: query}


class Numbers:
    """The numbers of a call, for every formula of a nest."""

    def __init__(self, values: Mapping[Symbol, int], view: View) -> None:
        shared = values.get(G, 1) > 1 and not view.packed
        self.values, self.view = values, view
        self.point = {symbol: Integer(number) for symbol, number in values.items()} | {grouped: Integer(shared)}

    def within(self, piece: Piece) -> Numbers:
        """Return the numbers of a piece of the call."""
        return Numbers({**self.values, **{symbol: self(size) for symbol, size in piece.sizes.items()}}, self.view)

    def __call__(self, formula: Expr) -> int:
        """Evaluate a formula."""
        return int(formula.xreplace(self.point))

    def decided(self, statement: Statement) -> Sequence[Statement]:
        """Return the statement itself, or the body of a condition that holds."""
        if isinstance(statement, When):
            return statement.body if self(statement.holds) else ()
        return (statement,)


def programs(nest: Nest, values: Mapping[Symbol, int], view: View) -> tuple[Program, ...]:
    """Compile the kernels of a nest at these numbers."""
    compiled = []
    for kernel, size in zip(nest, allocations(nest, view, in_bytes), strict=True):
        number = Numbers(values, view.of((kernel,)))
        packed = number.view.packed and kernel.per == "head"
        compiler = _Compiler(number)
        body = compiler.scope(kernel.with_body(rebuilt(kernel.body, number.decided)), (), {})
        slots, per = tuple(compiler.slots.values()), "kv_head" if packed else kernel.per
        compiled.append(Program(kernel.title, per, number(G) if packed else 1, body, slots, number(size)))
    return tuple(compiled)


def _repetitions(cut: Cut, number: Numbers) -> list[tuple[Piece, int]]:
    """Return the pieces of a cut with their repetitions; a piece that subtracts one cancels an equal one."""
    pieces: dict[Any, tuple[Piece, int]] = {}
    for piece in cut.pieces:
        times, same = number(piece.times), (piece.mask, *(number(size) for size in piece.sizes.values()))
        first, already = pieces.get(same, (piece, 0))
        pieces[same] = first, already + times
    return list(pieces.values())


def _shared_out(cut: Cut, number: Numbers) -> list[Axis]:
    """Return the axes whose rows a cut divides among its pieces: the rows of all pieces sum to those of the call.

    They also do so in a second call, for equal numbers alone may be a coincidence.
    """
    lengths = {symbol: size for piece in cut.pieces for symbol, size in piece.sizes.items()}
    axes = {axis for leaf, path in walk((Kernel("", [cut]),)) for axis in (*_axes(leaf), *loops(path))}
    return [
        axis
        for axis in sorted(axes, key=lambda axis: axis.name)
        if axis.length.free_symbols & lengths.keys()
        and all(
            sum(piece.times * axis.length.xreplace(dict(piece.sizes)) for piece in cut.pieces).xreplace(point)
            == axis.length.xreplace(point)
            for point in (number.point, {symbol: 3 * size + 7 for symbol, size in number.point.items()})
        )
    ]


def _axes(leaf: Leaf) -> tuple[Axis, ...]:
    if isinstance(leaf, MatMul):
        return leaf.m, leaf.n, leaf.k
    return leaf.axes if isinstance(leaf, Pointwise) else leaf.tensor.axes


class _Scope:
    """The buffers of a body, declared and still to be declared [B]."""

    def __init__(self, have: dict[Tensor, int], waiting: dict[Tensor, int]) -> None:
        self.have, self.waiting = dict(have), waiting

    def declare(self, *tensors: Tensor) -> None:
        """Declare the buffers of tensors, unless they are declared already."""
        self.have |= {tensor: self.waiting.pop(tensor) for tensor in tensors if tensor in self.waiting}

    @property
    def held(self) -> Held:
        return tuple((tensor.name, size) for tensor, size in self.have.items())


class _Compiler:
    """A compiler of the statements of one kernel, which collects its slots."""

    def __init__(self, number: Numbers) -> None:
        self.whole, self.view = number, number.view
        self.number = number
        """The numbers of the current piece; sizes of buffers are those of the whole call."""
        self.slots: dict[tuple[str, str, int], Coordinate] = {}

    def slot(self, kind: str, name: str, stop: int = 0) -> int:
        """Return the slot of an axis and a kind, such as its loop or the whole axis, initially 0 .. stop."""
        self.slots.setdefault((kind, name, stop), (name, 0, stop))
        return list(self.slots).index((kind, name, stop))

    def scope(self, block: Any, path: Path, above: dict[Tensor, int]) -> tuple[TraceStep | TraceLoop | TraceCut, ...]:
        """Compile a kernel or a loop; its buffers are declared one by one, but all before an inner loop."""
        here = (*path, block)
        own: dict[Tensor, int] = {}
        for tensor, dtype, around in buffers(block.body, here):
            if tensor not in above and tensor not in own:
                own[tensor] = self.whole(in_bytes(dtype) * self.view.buffer(tensor, around))
        return self.body(block, here, _Scope(above, own))

    def body(self, block: Any, path: Path, scope: _Scope) -> tuple[TraceStep | TraceLoop | TraceCut, ...]:
        statements: list[TraceStep | TraceLoop | TraceCut] = []
        for statement in block.body:
            if isinstance(statement, Loop):
                scope.declare(*scope.waiting)
                statements.append(self.loop(statement, path, scope))
            elif isinstance(statement, Cut):
                scope.declare(*scope.waiting)
                statements.append(self.cut(statement, path, scope))
            elif isinstance(statement, Guard):  # it opens no scope of its own
                inner = self.body(statement, (*path, statement), scope)
                assert not isinstance(statement, When)
                parted = statement.axis in loops(path) and statement.axis.of
                axis = parted or statement.axis
                bounds = self.bounds(axis, path, not parted, statement.sight)
                statements.append(TraceLoop(axis.name, body=inner, live=isinstance(statement, Live), **bounds))
            elif not isinstance(statement, Pointwise) or isinstance(statement, Exp | Tanh | Random):
                statements.append(self.step(statement, path, scope))
        return tuple(statements)

    def cut(self, cut: Cut, path: Path, scope: _Scope) -> TraceCut:
        """Compile the pieces of a cut, each with numbers and a mask of its own."""
        shared, pieces = _shared_out(cut, self.whole), []
        for piece, times in _repetitions(cut, self.whole):
            self.number = self.whole.within(piece)
            body = self.scope(cut, path, scope.have)
            rows = {axis.name: self.number(axis.length) for axis in shared}
            whole = tuple(self.slot("whole", *row) for row in rows.items() if ("whole", *row) in self.slots)
            pieces.append(TracePiece(times, body, self.mask(piece), tuple(rows.items()), whole))
        self.number = self.whole
        return TraceCut(tuple(pieces))

    def mask(self, piece: Piece) -> MaskSpans:
        """Return the mask of the current piece."""
        if piece.mask == "full":
            return MaskSpans("full", 1, 1)
        mask: Mask = Window(left=self.number(W_l), right=0) if piece.mask == "window" else "causal"
        return MaskSpans(mask, self.number(N_q), self.number(N_k), self.number(G) if self.view.packed else 1)

    def loop(self, loop: Loop, path: Path, scope: _Scope) -> TraceLoop:
        axis = loop.axis
        more: dict[str, Any] = {}
        if axis == key:
            more["stored"] = self.slot("stored", "key"), self.number(p * -(-N_k // p))
            more["pages"] = self.slot("loop", "page"), self.number(p)
        body = self.scope(loop, path, scope.have)
        slot, tile = self.slot("loop", axis.name), self.number(loop.tile)
        more |= {
            kind: self.slot(kind, axis.name)
            for kind in ("clipped", "padded", "again")
            if (kind, axis.name, 0) in self.slots
        }
        if axis == query and ("heads", head.name, 0) in self.slots:
            more["heads"] = self.slot("heads", head.name), self.number(G)
        if loop.serpentine:
            more["turns"] = self.slot("loop", list(loops(path))[-1].name)
        bounds = self.bounds(axis, path, loop.masked, loop.sight)
        return TraceLoop(axis.name, body=body, tile=tile, slot=slot, **more, **bounds)

    def bounds(self, axis: Axis, path: Path, masked: bool, sight: Sight) -> dict[str, Any]:
        """Return the bounds of a loop or a guard: a tile of the other axis, or a part of the axis."""
        fields: dict[str, Any] = {"rows": self.number(self.view.rows(axis)), "left": sight.left}
        if sight.query_tile is not None:
            fields["query_tile"] = self.number(sight.query_tile)
        for outer in loops(path):
            if masked and outer == OTHER.get(axis):
                fields["seer"] = self.slot("loop", outer.name)
            if outer.of == axis and outer.chunk is not None:
                fields |= {"part": self.slot("loop", outer.name), "chunk": self.number(outer.chunk)}
        return fields

    def step(self, statement: Any, path: Path, scope: _Scope) -> TraceStep:
        op = type(statement).__name__
        if isinstance(statement, MatMul):
            return TraceStep(op, "", self.tile((statement.m, statement.n, statement.k), path), scope.held, factor=2)
        if isinstance(statement, Pointwise):
            return TraceStep(op, "", self.tile(statement.axes, path), scope.held, factor=1)
        tensor = statement.tensor
        if isinstance(statement, Load | Hold):
            scope.declare(tensor)
        width = self.number(in_bytes(getattr(statement, "dtype", None) or tensor.dtype))
        if isinstance(statement, Hold):
            size = self.whole(self.view.buffer(tensor, path))
            return TraceStep(op, tensor.name, self.tile(tensor.axes, path), scope.held, width, size=size)
        if isinstance(statement, Lookup):
            return TraceStep(op, tensor.name, (self.pages(path),), scope.held, width, 1)
        if isinstance(statement, Accumulate):
            slots = self.tile(statement.axes, path, tensor.paged)
            return TraceStep(op, tensor.name, slots, scope.held, width, 2, atomic=statement.atomic)
        waits, only = (self.trips(getattr(statement, name, None), path) for name in ("after_first", "only_first"))
        stays = None
        if isinstance(statement, Load) and self.view.kept(tensor.axes, path) != 0:
            stays = self.slot("loop", list(loops(path))[-1].name)
        clipped = _clipped(statement, path)  # up to what is seen, not to the end of a page
        paged = tensor.paged and clipped is None
        slots = self.tile(tensor.axes, path, paged, getattr(statement, "padded", ()), clipped)
        return TraceStep(op, tensor.name, slots, scope.held, width, 1, after=waits, only=only, stays=stays)

    def trips(self, axis: Axis | None, path: Path) -> int | None:
        """Return the slot whose trips a step waits for: of the loop over `axis`, or of the visits of the tile in it."""
        inner = next((block.axis for block in path if isinstance(block, Loop) and block.masked), axis)
        if axis is None or inner is None:
            return None
        return self.slot("loop" if inner == axis else "again", inner.name)

    def tile(
        self,
        axes: Sequence[Axis],
        path: Path,
        paged: bool = False,
        padded: Sequence[Axis] = (),
        clipped: Axis | None = None,
    ) -> tuple[int, ...]:
        """Return the slots of the tile of a statement: the current tile of a loop, or a whole axis."""
        around, slots = loops(path), []
        uncut = tuple(block for block in path if not isinstance(block, Cut))  # the numbers are of the piece already
        for axis in axes:
            if axis in around:
                kinds = {"padded": axis in padded, "clipped": axis == clipped, "stored": paged and axis == key}
                slots.append(self.slot(next((kind for kind, holds in kinds.items() if holds), "loop"), axis.name))
            elif axis == head and query in around and self.view.packed:
                slots.append(self.slot("heads", axis.name))
            else:
                slots.append(self.slot("whole", axis.name, self.number(self.view.extent(axis, uncut))))
        return tuple(slots)

    def pages(self, path: Path) -> int:
        """Return the slot of the pages of the current key tile."""
        return (
            self.slot("loop", "page") if key in loops(path) else self.slot("whole", "page", self.number(-(-N_k // p)))
        )


def _clipped(statement: Any, path: Path) -> Axis | None:
    """Return the axis of the masked loop around a clipped load."""
    if not getattr(statement, "clipped", False):
        return None
    return next(block.axis for block in path if isinstance(block, Loop) and block.masked)
