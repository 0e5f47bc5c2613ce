"""Run a nest over numbers: what the counts fold symbolically, counted one statement at a time.

It reads the same declaration as :mod:`iomodel.counts`, so it finds mistakes in the folding, not in a declaration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from sympy import Expr, Symbol

from iomodel.nest import Axis, Exp, Hold, Kernel, Live, Load, Loop, MatMul, Nest, Statement, Store, Tensor

Extent = tuple[int, int]


@dataclass
class Machine:
    """The numbers for the symbols, the element-wise mask [query rows, keys], and the counters.

    `group` rows share a query where a GQA group is packed; `heads` and `kv_heads` are those of the whole batch.
    """

    values: Mapping[Symbol, int]
    seen: np.ndarray
    group: int
    heads: int
    kv_heads: int
    element_size: int
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    flops: int = 0
    exps: int = 0
    live: list[tuple[int, int]] = field(default_factory=list)

    def size(self, expr: Expr) -> int:
        return int(expr.subs(self.values))

    def rows(self, axis: Axis) -> int:
        return self.size(axis.length) * (self.group if axis.name == "query" else 1)

    def run(self, nest: Nest) -> None:
        """Execute one head's worth, or one packed group's worth."""
        for kernel in nest:
            self.body(kernel, {})
            self.hold(kernel, {}, {})

    def extent(self, axis: Axis, at: Mapping[Axis, Extent]) -> int:
        start, stop = at.get(axis, (0, self.rows(axis)))
        return stop - start

    def sees(self, axis: Axis, tile: Extent, at: Mapping[Axis, Extent]) -> bool:
        """Whether the tile of the enclosing loop sees anything of this tile; masks bind queries and keys only."""
        other = {"query": "key", "key": "query"}.get(axis.name)
        outer = next((extent for walked, extent in at.items() if walked.name == other), None)
        if outer is None:
            return True
        queries, keys = (tile, outer) if axis.name == "query" else (outer, tile)
        return bool(self.seen[slice(*queries), slice(*keys)].any())

    def body(self, block: Kernel | Loop | Live, at: Mapping[Axis, Extent]) -> None:
        for statement in block.body:
            self.execute(statement, at)

    def execute(self, statement: Statement, at: Mapping[Axis, Extent]) -> None:
        match statement:
            case Loop(axis=axis, masked=masked):
                tile, end = self.size(statement.tile), self.rows(axis)
                for start in range(0, end, tile):
                    here = start, min(start + tile, end)
                    if not masked or self.sees(axis, here, at):
                        self.body(statement, {**at, axis: here})
            case Live(axis=axis):
                if self.sees(axis, (0, self.rows(axis)), at):
                    self.body(statement, at)
            case Load(tensor=tensor):
                self.reads[tensor.name] += self.elements(tensor.axes, at)
            case Store(tensor=tensor):
                self.writes[tensor.name] += self.elements(tensor.axes, at)
            case MatMul(m=m, n=n, k=k):
                self.flops += 2 * self.elements((m, n, k), at)
            case Exp(axes=axes):
                self.exps += self.elements(axes, at)

    def elements(self, axes: tuple[Axis, ...], at: Mapping[Axis, Extent]) -> int:
        count = 1
        for axis in axes:
            count *= self.extent(axis, at)
        return count

    def hold(self, block: Kernel | Loop, tiles: Mapping[Axis, int], above: Mapping[Tensor, tuple[int, int]]) -> None:
        """Note what is live in every loop body: buffers are static, as large as a full tile, and outlive its trips."""
        live = dict(above)
        for statement in declared(block):
            if isinstance(statement, Load | Hold) and statement.tensor not in live:
                dtype = (statement.dtype if isinstance(statement, Hold) else None) or statement.tensor.dtype
                size = 1
                for axis in statement.tensor.axes:
                    size *= tiles.get(axis, self.rows(axis))
                live[statement.tensor] = size, self.element_size if dtype == "io" else 4
        self.live.append((sum(size for size, _ in live.values()), sum(size * width for size, width in live.values())))
        for statement in declared(block):
            if isinstance(statement, Loop):
                self.hold(statement, {**tiles, statement.axis: self.size(statement.tile)}, live)


def declared(block: Kernel | Loop | Live) -> list[Statement]:
    """The statements of a body; a guard opens no scope of its own."""
    found: list[Statement] = []
    for statement in block.body:
        found += declared(statement) if isinstance(statement, Live) else [statement]
    return found


def peak_hbm(nest: Nest, machine: Machine) -> int:
    """Most elements allocated at once: inputs always, results from their first store, scratch until its last load."""
    uses: dict[Tensor, list[tuple[int, str]]] = {}

    def note(block: Kernel | Loop | Live, number: int) -> None:
        for statement in block.body:
            if isinstance(statement, Loop | Live):
                note(statement, number)
            elif isinstance(statement, Load | Store):
                uses.setdefault(statement.tensor, []).append((number, type(statement).__name__))

    for number, kernel in enumerate(nest):
        note(kernel, number)
    allocated = [0] * len(nest)
    for tensor, found in uses.items():
        size = machine.heads if "query" in {axis.name for axis in tensor.axes} else machine.kv_heads
        for axis in tensor.axes:
            size *= machine.size(axis.length)
        stores = [number for number, kind in found if kind == "Store"]
        begin = 0 if found[0][1] == "Load" else found[0][0]
        scratch = bool(stores) and stores[-1] < found[-1][0]
        for number in range(begin, found[-1][0] + 1 if scratch else len(nest)):
            allocated[number] += size
    return max(allocated)
