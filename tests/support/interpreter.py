"""Run a nest over numbers: what the counts fold symbolically, counted one statement at a time.

It reads the same declaration as :mod:`iomodel.counting.folds`, so it finds mistakes in a fold, not in a declaration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from iomodel.nests.language import (
    Accumulate,
    Axis,
    Cut,
    Exp,
    Fill,
    Hold,
    Idle,
    Kernel,
    Live,
    Load,
    Lookup,
    Loop,
    MatMul,
    Nest,
    Piece,
    Random,
    Statement,
    Store,
    Tanh,
    Tensor,
    When,
)
from iomodel.nests.symbols import B, G, H, H_kv, N_k, N_q, W_l, e, e_kv, p
from iomodel.nests.tensors import grouped

Extent = tuple[int, int]


@dataclass
class Here:
    """Where a statement runs: the tile of each axis walked, whose loops they are, and trips of the masked loops."""

    tiles: dict[Axis, Extent] = field(default_factory=dict)
    loops: dict[Axis, Loop] = field(default_factory=dict)
    trips: dict[Axis, int] = field(default_factory=dict)  # how many the masked loop over an axis has made before

    def inside(self, loop: Loop, tile: Extent, trip: int) -> Here:
        trips = {**self.trips, loop.axis: trip} if loop.masked else self.trips
        return Here({**self.tiles, loop.axis: tile}, {**self.loops, loop.axis: loop}, trips)


@dataclass
class Machine:
    """The numbers for the symbols, the element-wise mask [query rows, keys], and the counters of one instance.

    Packed, the rows of a GQA group share a query, and `seen` has a row for each of them.
    """

    values: Mapping[Symbol, int]
    seen: np.ndarray
    packed: bool
    counters: Counter[str] = field(default_factory=Counter)
    live: list[tuple[int, int]] = field(default_factory=list)

    def size(self, expr: Expr) -> int:
        return int(expr.subs(self.values))

    def holds(self, when: When) -> bool:
        """Several programs share a key/value head where the group is larger than one, unless it is packed."""
        shared = int(self.values[G] > 1 and not self.packed)
        return bool(self.size(when.condition.subs(grouped, shared))) != when.unless

    def rows(self, axis: Axis) -> int:
        return self.size(axis.length) * (self.values[G] if self.packed and axis.name in ("query", "head") else 1)

    def run(self, nest: Nest) -> None:
        """Execute all instances of every kernel."""
        batch = self.values[B]
        heads = batch * (self.values[H_kv] if self.packed else self.values[H])
        for kernel in nest:
            before, self.counters = self.counters, Counter()
            self.body(kernel, Here())
            instances = {"head": heads, "kv_head": batch * self.values[H_kv], "batch": batch, "call": 1}[kernel.per]
            self.counters = before + Counter({name: n * instances for name, n in self.counters.items()})
            self.hold(kernel, Here(), {})

    def extent(self, axis: Axis, here: Here, paged: bool = False) -> int:
        """Rows of the current tile; of a paged tensor those that its last page has, of a head the one of the row."""
        if axis in here.tiles:
            start, stop = here.tiles[axis]
            if paged and axis.name == "key":
                page = self.values[p]
                stop = min(start + self.size(here.loops[axis].tile), -(-self.values[N_k] // page) * page)
            return stop - start
        if axis.name == "head" and any(
            walked.name == "query" and loop.tile == 1 for walked, loop in here.loops.items()
        ):
            return 1
        return self.rows(axis)

    def sees(self, axis: Axis, tile: Extent, here: Here) -> bool:
        """Whether the tile of the enclosing loop sees anything of this tile; masks bind queries and keys only."""
        other = {"query": "key", "key": "query"}.get(axis.name)
        outer = next((extent for walked, extent in here.tiles.items() if walked.name == other), None)
        if outer is None:
            return tile[0] < tile[1]
        queries, keys = (tile, outer) if axis.name == "query" else (outer, tile)
        return bool(self.seen[slice(*queries), slice(*keys)].any())

    def whole(self, axis: Axis, here: Here) -> Extent:
        """All of an axis, or the part of it that a loop over a partition is at."""
        for part, (at, _) in here.tiles.items():
            if part.of == axis:
                assert part.chunk is not None
                chunk, end = self.size(part.chunk), self.rows(axis)
                return min(at * chunk, end), min((at + 1) * chunk, end)
        return 0, self.rows(axis)

    def body(self, block: Any, here: Here) -> None:
        for statement in block.body:
            self.execute(statement, here)

    def execute(self, statement: Statement, here: Here) -> None:
        match statement:
            case Loop(axis=axis, masked=masked):
                tile, trip = self.size(statement.tile), 0
                begin, end = self.whole(axis, here)
                for start in range(begin, end, tile):
                    at = start, min(start + tile, end)
                    if not masked or self.sees(axis, at, here):
                        self.body(statement, here.inside(statement, at, trip))
                        trip += 1
            case Live(axis=axis) | Idle(axis=axis):
                if self.sees(axis, self.whole(axis, here), here) == isinstance(statement, Live):
                    self.body(statement, here)
            case When():
                if self.holds(statement):
                    self.body(statement, here)
            case Cut(pieces=pieces):
                for piece in pieces:
                    within = replace(self.within(piece), counters=Counter())
                    within.body(statement, here)
                    for name, count in within.counters.items():
                        self.counters[name] += self.size(piece.times) * count
            case Load(tensor=tensor, after_first=axis):
                if axis is None or here.trips[axis] > 0:
                    self.counters[f"reads {tensor.name}"] += self.elements(tensor.axes, here, tensor.paged)
            case Lookup(tensor=tensor):
                self.counters[f"reads {tensor.name}"] += self.pages(here)
            case Store(tensor=tensor) | Fill(tensor=tensor):
                self.counters[f"writes {tensor.name}"] += self.elements(tensor.axes, here, tensor.paged)
            case Accumulate(tensor=tensor, within=within, atomic=atomic):
                n = self.elements(tuple(axis for axis in tensor.axes if axis not in within), here, tensor.paged)
                for name in (f"reads {tensor.name}", f"writes {tensor.name}", *(["atomics"] if atomic else [])):
                    self.counters[name] += n
            case MatMul(m=m, n=n, k=k):
                self.counters["flops"] += 2 * self.elements((m, n, k), here)
            case Exp(axes=axes) | Tanh(axes=axes) | Random(axes=axes):
                self.counters[type(statement).__name__] += self.elements(axes, here)

    def within(self, piece: Piece) -> Machine:
        """The same counters on a piece of the call."""
        values = {**self.values, **{symbol: self.size(size) for symbol, size in piece.sizes.items()}}
        q_len, kv_len = values[N_q], values[N_k]
        distance = np.arange(kv_len)[None, :] - np.arange(q_len)[:, None] - (kv_len - q_len)
        seen = np.ones(distance.shape, dtype=bool)
        if piece.mask != "full":
            seen &= distance <= 0
        if piece.mask == "window":
            seen &= distance >= -values[W_l]
        rows = np.repeat(seen, values[G], axis=0) if self.packed else seen
        return replace(self, values=values, seen=rows)

    def elements(self, axes: tuple[Axis, ...], here: Here, paged: bool = False) -> int:
        count = 1
        for axis in axes:
            count *= self.extent(axis, here, paged)
        return count

    def pages(self, here: Here) -> int:
        """Pages that the keys of the current tile lie in."""
        keys = next((tile for axis, tile in here.tiles.items() if axis.name == "key"), (0, self.values[N_k]))
        return len({key // self.values[p] for key in range(*keys)})

    def declared(self, block: Any) -> Iterator[Statement]:
        """The statements of a body; a guard opens no scope of its own."""
        for statement in block.body:
            if isinstance(statement, Live | Idle) or (isinstance(statement, When) and self.holds(statement)):
                yield from self.declared(statement)
            elif not isinstance(statement, When):
                yield statement

    def width(self, dtype: str) -> int:
        return {"io": self.values[e], "kv": self.values[e_kv], "fp32": 4, "int32": 4, "int64": 8, "bool": 1}[dtype]

    def hold(self, block: Any, here: Here, above: Mapping[Tensor, tuple[int, int]]) -> None:
        """Note what is live in every loop body: buffers are static, as large as a full tile, and outlive its trips."""
        live = dict(above)
        for statement in self.declared(block):
            if isinstance(statement, Load | Hold) and statement.tensor not in live:
                dtype = (statement.dtype if isinstance(statement, Hold) else None) or statement.tensor.dtype
                live[statement.tensor] = self.elements(statement.tensor.axes, here), self.width(dtype)
        self.live.append((sum(size for size, _ in live.values()), sum(size * width for size, width in live.values())))
        for statement in self.declared(block):
            if isinstance(statement, Loop):
                self.hold(statement, here.inside(statement, (0, self.size(statement.tile)), 0), live)
            if isinstance(statement, Cut):
                self.within(statement.pieces[0]).hold(statement, here, live)

    def moved(self, block: Any) -> Iterator[tuple[Tensor, bool]]:
        """The tensors that a kernel moves, in program order, and whether each is written."""
        for statement in self.declared(block):
            match statement:
                case Loop() | Cut():
                    yield from self.moved(statement)
                case Load(tensor=tensor) | Lookup(tensor=tensor):
                    yield tensor, False
                case Store(tensor=tensor) | Fill(tensor=tensor) | Accumulate(tensor=tensor):
                    yield tensor, True

    def peak_hbm(self, nest: Nest) -> tuple[int, int]:
        """Most elements and bytes allocated: inputs always, results from the first store, scratch to the last load."""
        uses: dict[Tensor, list[tuple[int, bool]]] = {}
        every = [(n, *use) for n, kernel in enumerate(nest) for use in [*self.moved(kernel), *kept(kernel)]]
        whole = {tensor.name: tensor for _, tensor, _ in every if not tensor.inside}
        for number, tensor, written in every:
            uses.setdefault(whole.get(tensor.name, tensor) if tensor.inside else tensor, []).append((number, written))
        allocated = [[0, 0] for _ in nest]
        for tensor, found in uses.items():
            if tensor.inside:
                continue
            batch, page = self.values[B], self.values[p]
            per = {"head": batch * self.values[H], "kv_head": batch * self.values[H_kv], "heads": self.values[H]}
            size = {**per, "kv_heads": self.values[H_kv], "batch": batch, "call": 1}[tensor.per]
            for axis in tensor.axes:
                length = self.size(axis.length)
                size *= -(-length // page) * page if tensor.paged and axis.name == "key" else length
            stores = [number for number, written in found if written]
            scratch = bool(stores) and stores[-1] < found[-1][0]
            begin = found[0][0] if found[0][1] else 0
            for number in range(begin, found[-1][0] + 1 if scratch else len(nest)):
                allocated[number][0] += size
                allocated[number][1] += size * self.width(tensor.dtype)
        return max(n for n, _ in allocated), max(n for _, n in allocated)


def kept(kernel: Kernel) -> list[tuple[Tensor, bool]]:
    """What a kernel leaves in HBM though it does not move it."""
    return [(tensor, False) for tensor in kernel.keeps]
