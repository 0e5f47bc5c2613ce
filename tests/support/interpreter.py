"""Run a nest over numbers: what the counts fold symbolically, counted one statement at a time.

It reads the same declaration as :mod:`iomodel.counting.folds`, so it finds mistakes in a fold, not in a declaration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from iomodel.nests import tensors
from iomodel.nests.language import (
    EXACT,
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
    Sight,
    Statement,
    Store,
    Tanh,
    Tensor,
    When,
    walk,
)
from iomodel.nests.symbols import B, G, H, H_k, H_kv, N_k, N_q, W_l, b_kv, e, p
from iomodel.nests.tensors import grouped
from tests.support.integers import integer

Extent = tuple[int, int]


@dataclass
class Here:
    """Where a statement runs: the tile of each axis walked, whose loops they are, and trips of the masked loops."""

    tiles: dict[Axis, Extent] = field(default_factory=dict)
    loops: dict[Axis, Loop] = field(default_factory=dict)
    trips: dict[Axis, int] = field(default_factory=dict)  # how many the masked loop over an axis has made before
    ends: dict[int, Extent] = field(default_factory=dict)  # where serpentine loops at the tile before have ended
    turned: bool = False  # directly in a serpentine loop, at the tile that ended its walk before

    def inside(
        self, loop: Loop, tile: Extent, trip: int, ends: dict[int, Extent] | None = None, turned: bool = False
    ) -> Here:
        trips = {**self.trips, loop.axis: trip} if loop.masked else self.trips
        return Here(
            {**self.tiles, loop.axis: tile},
            {**self.loops, loop.axis: loop},
            trips,
            {} if ends is None else ends,
            turned,
        )

    @property
    def nearest(self) -> Axis:
        """The axis of the loop directly around."""
        return list(self.loops)[-1]


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
    known: dict[Expr, Any] = field(default_factory=dict)  # sizes that are evaluated already
    sighted: Callable[[bool], np.ndarray] | None = None
    """The mask with or without its left side, and with rows after the last query, for a loop that applies it so."""

    def size(self, expr: Expr) -> int:
        return integer(expr, self.values, self.known)

    def holds(self, when: When) -> bool:
        """Several programs share a key/value head where the group is larger than one, unless it is packed."""
        shared = int(self.values[G] > 1 and not self.packed)
        return bool(integer(when.condition, {**self.values, grouped: shared})) != when.unless

    def rows(self, axis: Axis) -> int:
        return self.size(axis.length) * (self.values[G] if self.packed and axis.name in ("query", "head") else 1)

    def run(self, nest: Nest) -> None:
        """Execute all instances of every kernel."""
        batch = self.values[B]
        for kernel in nest:
            before, self.counters = self.counters, Counter()
            own = self.of(kernel)
            own.body(kernel, Here())
            heads = batch * (self.values[H_kv] if own.packed else self.values[H])
            of_keys = {"kv_head": batch * self.values[H_kv], "key_head": batch * self.values.get(H_k, 1)}
            instances = {"head": heads, **of_keys, "batch": batch, "call": 1}[kernel.per]
            self.counters = before + Counter({name: n * instances for name, n in self.counters.items()})
            own.hold(kernel, Here(), {})

    def of(self, kernel: Kernel) -> Machine:
        """The same counters, with one query head at a time in a kernel that packs none."""
        if not (self.packed and kernel.unpacked):
            return self
        group, sighted = self.values[G], self.sighted
        apart = None if sighted is None else lambda *given, **more: sighted(*given, **more)[::group]
        return replace(self, packed=False, seen=self.seen[::group], sighted=apart)

    def extent(self, axis: Axis, here: Here, paged: bool = False) -> int:
        """Rows of the current tile; of a paged tensor those that its last page has, of a head the one of the row."""
        if axis in here.tiles:
            start, stop = here.tiles[axis]
            if paged and axis.name == "key":
                page = self.values[p]
                stop = min(start + self.size(here.loops[axis].tile), -(-self.values[N_k] // page) * page)
            return stop - start
        if axis.name == "head" and self.packed:  # neighbouring rows are of different heads
            start, stop = next(
                (tile for walked, tile in here.tiles.items() if walked.name == "query"), (0, self.values[G])
            )
            return min(stop - start, self.values[G])
        return self.rows(axis)

    def shown(self, axis: Axis, tile: Extent, here: Here, sight: Sight = EXACT) -> np.ndarray:
        """Which rows of the tile the tile of the enclosing loop sees; masks bind queries and keys only."""
        other = {"query": "key", "key": "query"}.get(axis.name)
        outer = next((extent for walked, extent in here.tiles.items() if walked.name == other), None)
        if outer is None:
            return np.ones(max(0, tile[1] - tile[0]), dtype=bool)
        queries, keys = (tile, outer) if axis.name == "query" else (outer, tile)
        seen = self.seen
        if sight != EXACT:
            assert self.sighted is not None
            seen = self.sighted(sight.left)
        if sight.query_tile is not None:
            size = self.size(sight.query_tile)
            if queries[1] == self.rows(tensors.query):
                queries = queries[0], -(-queries[1] // size) * size
        return seen[slice(*queries), slice(*keys)].any(axis=int(axis.name == "query"))

    def sees(self, axis: Axis, tile: Extent, here: Here, sight: Sight = EXACT) -> bool:
        """Whether the tile of the enclosing loop sees anything of this tile."""
        return bool(self.shown(axis, tile, here, sight).any())

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
                starts = range(begin, end, tile)
                if statement.serpentine:
                    around = here.nearest
                    if here.tiles[around][0] // self.size(here.loops[around].tile) % 2:
                        starts = starts[::-1]
                ends: dict[int, Extent] = {}
                for start in starts:
                    at = start, min(start + tile, end)
                    if not masked or self.sees(axis, at, here, statement.sight):
                        turned = statement.serpentine and trip == 0 and here.ends.get(id(statement)) == at
                        self.body(statement, here.inside(statement, at, trip, ends, turned))
                        trip += 1
                        if statement.serpentine:
                            here.ends[id(statement)] = at
            case Live(axis=axis) | Idle(axis=axis):
                extent = self.whole(axis.of, here) if axis in here.tiles and axis.of else self.whole(axis, here)
                if self.sees(axis, extent, here, statement.sight) == isinstance(statement, Live):
                    self.body(statement, replace(here, turned=False))
            case When():
                if self.holds(statement):
                    self.body(statement, replace(here, turned=False))
            case Cut(pieces=pieces):
                for piece in pieces:
                    within = replace(self.within(piece), counters=Counter())
                    within.body(statement, here)
                    for name, count in within.counters.items():
                        self.counters[name] += self.size(piece.times) * count
            case Load(tensor=tensor):
                if self.in_turn(statement, here) and not self.stayed(tensor, here):
                    at = self.up_to_the_last_seen(tensor, here) if statement.clipped else here
                    paged = tensor.paged and not statement.clipped
                    count = self.elements(tensor.axes, at, paged, statement.padded)
                    self.counters[f"reads {tensor.name}"] += count
            case Lookup(tensor=tensor):
                self.counters[f"reads {tensor.name}"] += self.pages(here)
            case Store() if not self.in_turn(statement, here):
                pass
            case Store(tensor=tensor) | Fill(tensor=tensor):
                self.counters[f"writes {tensor.name}"] += self.elements(
                    tensor.axes, here, tensor.paged, statement.padded
                )
            case Accumulate(tensor=tensor, within=within, atomic=atomic):
                n = self.elements(tuple(axis for axis in tensor.axes if axis not in within), here, tensor.paged)
                for name in (f"reads {tensor.name}", f"writes {tensor.name}", *(["atomics"] if atomic else [])):
                    self.counters[name] += n
            case MatMul(m=m, n=n, k=k):
                self.counters["flops"] += 2 * self.elements((m, n, k), here)
            case Exp(axes=axes) | Tanh(axes=axes) | Random(axes=axes):
                self.counters[type(statement).__name__] += self.elements(axes, here)

    def in_turn(self, move: Load | Store, here: Here) -> bool:
        """Whether a move runs at this trip, of the loop over an axis or of this tile of the masked loop inside."""
        skipped, only = getattr(move, "after_first", None), move.only_first
        axis = skipped or only
        if axis is None:
            return True
        if axis in here.trips:
            earlier = here.trips[axis] > 0
        else:  # its loop is around the masked one
            start, size, inner = here.tiles[axis][0], self.size(here.loops[axis].tile), here.nearest
            sight = here.loops[inner].sight
            tiles = ((at, min(at + size, self.rows(axis))) for at in range(0, start, size))
            outside = (replace(here, tiles={axis: tile}) for tile in tiles)
            earlier = any(self.sees(inner, here.tiles[inner], one, sight) for one in outside)
        return earlier == (only is None)

    def stayed(self, tensor: Tensor, here: Here) -> bool:
        """Whether the tile of a tensor is that of the walk before, as no other tile chooses it."""
        if not here.turned or here.nearest not in tensor.axes:
            return False
        other = list(here.loops)[-2]
        by_row = self.packed and {other.name, here.nearest.name} & {"query"}
        return other not in tensor.axes and not (by_row and tensors.head in tensor.axes)

    def within(self, piece: Piece) -> Machine:
        """The same counters on a piece of the call."""
        values = {**self.values, **{symbol: self.size(size) for symbol, size in piece.sizes.items()}}
        q_len, kv_len = values[N_q], values[N_k]
        distance = np.arange(kv_len)[None, :] - np.arange(q_len)[:, None] - (kv_len - q_len)

        def seen(left: bool) -> np.ndarray:
            shown = np.ones(distance.shape, dtype=bool)
            if piece.mask != "full":
                shown &= distance <= 0
            if piece.mask == "window" and left:
                shown &= distance >= -values[W_l]
            return np.repeat(shown, values[G], axis=0) if self.packed else shown

        return replace(self, values=values, seen=seen(True), sighted=seen, known={})

    def elements(self, axes: tuple[Axis, ...], here: Here, paged: bool = False, padded: tuple[Axis, ...] = ()) -> int:
        count = 1
        for axis in axes:
            whole = axis in padded and axis in here.loops
            count *= self.size(here.loops[axis].tile) if whole else self.extent(axis, here, paged)
        return count

    def up_to_the_last_seen(self, tensor: Tensor, here: Here) -> Here:
        """The same tiles, that of the masked loop cut after the last row that the enclosing tile sees."""
        axis = next(axis for axis in here.trips if axis in tensor.axes)
        start, stop = here.tiles[axis]
        shown = np.flatnonzero(self.shown(axis, (start, self.rows(axis)), here, here.loops[axis].sight))
        last = start + int(shown[-1]) + 1 if len(shown) else start
        return replace(here, tiles={**here.tiles, axis: (start, min(stop, last))})

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

    def width(self, dtype: str) -> int | Fraction:
        sizes = {"io": self.values[e], "fp32": 4, "int32": 4, "int64": 8, "bool": 1}
        return Fraction(self.values[b_kv], 32) if dtype == "kv" else sizes[dtype]

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

    def moved(self, block: Any, around: Mapping[Axis, int] = {}) -> Iterator[tuple[Tensor, bool, dict[Axis, int]]]:
        """The tensors that a kernel moves, in order, whether each is written, and where whole tiles of it end."""
        for statement in self.declared(block):
            tiles = (getattr(statement, "padded", ()) and not getattr(statement, "wraps", False) and around) or {}
            ends = {
                axis: -(-self.rows(axis) // tile) * tile for axis, tile in tiles.items() if axis in statement.padded
            }
            match statement:
                case Loop():
                    yield from self.moved(statement, {**around, statement.axis: self.size(statement.tile)})
                case Cut():
                    yield from self.moved(statement, around)
                case Load(tensor=tensor) | Lookup(tensor=tensor):
                    yield tensor, False, ends
                case Store(tensor=tensor) | Fill(tensor=tensor) | Accumulate(tensor=tensor):
                    yield tensor, True, ends

    def peak_hbm(self, nest: Nest) -> tuple[int, int]:
        """Most elements and bytes allocated: inputs always, results from the first store, scratch to the last load."""
        uses: dict[Tensor, list[tuple[int, bool, dict[Axis, int]]]] = {}
        results = {leaf.tensor for leaf, _ in walk(nest) if isinstance(leaf, Store | Fill | Accumulate)}
        passes = [(list(self.of(kernel).moved(kernel)), kept(kernel)) for kernel in nest]
        whole = {use[0].name: use[0] for moved, after in passes for use in [*moved, *after] if not use[0].inside}
        every = []
        exist: set[Tensor] = set()
        for n, (moved, after) in enumerate(passes):
            exist |= {whole.get(tensor.name, tensor) if tensor.inside else tensor for tensor, _, _ in moved}
            # A kept result that only another condition stores is nowhere.
            left = [use for use in after if use[0] in exist or use[0] not in results]
            every += [(n, *use) for use in [*moved, *left]]
        for number, tensor, written, ends in every:
            owner = whole.get(tensor.name, tensor) if tensor.inside else tensor
            uses.setdefault(owner, []).append((number, written, ends))
        allocated: list[list[Any]] = [[0, 0] for _ in nest]
        for tensor, found in uses.items():
            if tensor.inside:
                continue
            size = max(
                self.allocated(tensor, {}),
                *(self.of(nest[number]).allocated(tensor, ends) for number, _, ends in found),
            )
            stores = [number for number, written, _ in found if written]
            scratch = bool(stores) and stores[-1] < found[-1][0]
            begin = found[0][0] if found[0][1] else 0
            for number in range(begin, found[-1][0] + 1 if scratch else len(nest)):
                allocated[number][0] += size
                allocated[number][1] += size * self.width(tensor.dtype)
        return max(n for n, _ in allocated), max(n for _, n in allocated)

    def allocated(self, tensor: Tensor, ends: Mapping[Axis, int]) -> int:
        """Elements of a tensor; where whole tiles of its rows are moved, rows follow each other program by program."""
        batch, page = self.values[B], self.values[p]
        heads = self.values[H_kv] if self.packed and tensors.query in ends else self.values[H]
        per = {"head": batch * heads, "kv_head": batch * self.values[H_kv], "heads": self.values[H]}
        per["key_head"] = batch * self.values.get(H_k, 1)
        size = {**per, "kv_heads": self.values[H_kv], "batch": batch, "call": 1}[tensor.per]
        for axis in tensor.axes:
            length = self.size(axis.length)
            pages = -(-length // page) * page if tensor.paged and axis.name == "key" else length
            size *= ends.get(axis, pages)
        return size


def kept(kernel: Kernel) -> list[tuple[Tensor, bool, dict[Axis, int]]]:
    """What a kernel leaves in HBM though it does not move it."""
    return [(tensor, False, {}) for tensor in kernel.keeps]
