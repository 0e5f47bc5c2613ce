"""Flow of values through a kernel's TTIR: the sides of tiles that are one extent, and the elements next to each other.

Two sides are one extent where an operation on loaded data needs them equal, as a product does of its sum. Index
arithmetic joins no sides: a compiler shares one range among all that are as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from iomodel.placement.ttir import Operation, Value

LOADS = frozenset({"tt.load", "tt.descriptor_load", "tt.descriptor_gather"})
PRODUCTS = frozenset({"tt.dot"})
SEPARATE = frozenset({"tt.splat", "tt.cat", "tt.join", "tt.split", "tt.gather", "tt.histogram", "tt.descriptor_load"})
"""Operations whose operands and results need not have one side in common."""
ORDER = re.compile(r"order\s*=\s*array<i32:\s*([\d, ]+)>")
Side = tuple[Value, int]
DEEPEST = 10_000
"""Values that wait for their sources, from which on the steps of one are unknown [-]."""


def moves(kernel: Operation) -> Iterator[tuple[Value, Value]]:
    """Iterate over pairs of values of which the second takes the first's place: carried, yielded and returned ones."""
    for operation in kernel.walk():
        yields = [block.operations[-1].operands for block in operation.blocks if block.operations]
        if operation.name == "scf.for":
            body = operation.blocks[0].arguments[1:]
            for carried in (operation.operands[3:], *yields):
                yield from zip(carried, body, strict=False)
                yield from zip(carried, operation.results, strict=False)
        elif operation.name == "scf.if":
            for returned in yields:
                yield from zip(returned, operation.results, strict=False)
        elif operation.name == "scf.while" and len(yields) == 2:
            for carried in (operation.operands, yields[1]):
                yield from zip(carried, operation.blocks[0].arguments, strict=False)
            for after in (operation.blocks[1].arguments, operation.results):
                yield from zip(yields[0][1:], after, strict=False)


def following(kernel: Operation, sources: frozenset[str], barred: frozenset[str] = frozenset()) -> set[Value]:
    """Collect the tiles that depend on operations of some names, not by way of operations that are barred."""
    tiles: set[Value] = set()
    pairs, size = list(moves(kernel)), -1
    while size != len(tiles):
        size = len(tiles)
        for operation in kernel.walk():
            if operation.name in barred or operation.name.startswith("scf."):  # which `moves` follows
                continue
            if operation.name in sources or any(value in tiles for value in operation.operands):
                tiles.update(value for value in operation.results if value.shape)
        tiles.update(after for before, after in pairs if before in tiles and after.shape)
    return tiles


class Extents:
    """The sides of tiles, those that are one extent joined."""

    def __init__(self, kernel: Operation) -> None:
        self.tiles = following(kernel, LOADS | PRODUCTS)
        self.parents: dict[Side, Side] = {}
        for before, after in moves(kernel):
            self._join_all(before, after)
        for operation in kernel.walk():
            self._join_by(operation)

    def of(self, value: Value, axis: int) -> Side:
        """Return the side that stands for all that are one extent with this one."""
        side = value, axis
        while side in self.parents:
            side = self.parents[side]
        return side

    def _join(self, one: Value, axis: int, other: Value, side: int) -> None:
        if one not in self.tiles or other not in self.tiles or axis >= len(one.shape) or side >= len(other.shape):
            return
        if one.shape[axis] == other.shape[side] > 1:
            first, second = self.of(one, axis % len(one.shape)), self.of(other, side % len(other.shape))
            if first != second:
                self.parents[second] = first

    def _join_all(self, one: Value, other: Value) -> None:
        if len(one.shape) == len(other.shape):
            for axis in range(len(one.shape)):
                self._join(one, axis, other, axis)

    def _join_by(self, operation: Operation) -> None:
        """Join the sides that an operation needs equal."""
        if not operation.operands or not operation.results:
            if operation.name == "tt.store" and len(operation.operands) > 1:
                self._join_all(*operation.operands[:2])
            return
        first, result = operation.operands[0], operation.results[0]
        if operation.name in PRODUCTS and len(operation.operands) >= 3:
            left, right, added = operation.operands[:3]
            self._join(left, -1, right, -2)
            self._join(left, -2, result, -2)
            self._join(right, -1, result, -1)
            self._join_all(added, result)
        elif operation.name == "tt.trans":
            for axis, place in enumerate(trans_order(operation, len(first.shape))):
                self._join(first, place, result, axis)
        elif operation.name in ("tt.expand_dims", "tt.reduce"):
            axis = operation.attribute("axis") or 0
            for value in operation.results if operation.name == "tt.reduce" else (first,):
                source, short = (first, value) if operation.name == "tt.reduce" else (result, value)
                for place in range(len(short.shape)):
                    self._join(source, place + (place >= axis), short, place)
        elif operation.name == "tt.reshape":
            wide = [axis for axis, extent in enumerate(first.shape) if extent > 1]
            kept = [axis for axis, extent in enumerate(result.shape) if extent > 1]
            if [first.shape[axis] for axis in wide] == [result.shape[axis] for axis in kept]:
                for axis, side in zip(wide, kept, strict=True):
                    self._join(first, axis, result, side)
        elif operation.name not in SEPARATE and not operation.name.startswith("scf."):
            values = [*operation.operands, *operation.results]
            for before, after in pairwise(values):
                self._join_all(before, after)
            for value in operation.operands:
                self._join_all(value, result)


def trans_order(operation: Operation, rank: int) -> list[int]:
    """Return the order of the axes of a transposition."""
    found = ORDER.search(operation.attributes)
    order = [int(each) for each in found[1].split(",")] if found else []
    return order if sorted(order) == list(range(rank)) else list(range(rank))[::-1]


Steps = tuple[int | None, ...]
"""Distance of neighbours in memory by axis: 0 along which a value is constant, 1 for the next, None for others."""


class Neighbours:
    """The distances of neighbours in memory of the pointers of a kernel."""

    def __init__(self) -> None:
        self.known: dict[Value, Steps] = {}

    def steps(self, value: Value) -> Steps:
        """Return the distance of neighbours of a value, along each axis."""
        if not value.shape:
            return ()
        pending = [value]
        while pending:
            each = pending[-1]
            sources = [source for source in self._sources(each) if source.shape and source not in self.known]
            if each in self.known or not sources:
                pending.pop()
                self.known.setdefault(each, self._steps(each) if each.shape else ())
                continue
            if len(pending) > DEEPEST:
                self.known.setdefault(each, (None,) * len(each.shape))
            pending += sources
        return self.known[value]

    def _sources(self, value: Value) -> list[Value]:
        """List the values that the steps of a value follow from; for a carried one, its first."""
        if value.maker is None:
            loop = value.block.parent if value.block is not None else None
            if loop is None or loop.name != "scf.for":
                return []
            position = loop.blocks[0].arguments.index(value)
            return loop.operands[2 + position : 3 + position]
        return [] if value.maker.name in LOADS or value.maker.blocks else value.maker.operands

    def _steps(self, value: Value) -> Steps:
        sources = self._sources(value)
        unknown: Steps = (None,) * len(value.shape)
        maker = value.maker
        if maker is None:
            return self.known.get(sources[0], unknown) if sources else unknown
        own = [self.known.get(source, ()) for source in sources]
        steps: Steps
        if maker.name == "tt.make_range":
            steps = (1,)
        elif maker.name in ("tt.splat", "arith.constant"):
            steps = (0,) * len(value.shape)
        elif maker.name == "tt.load":
            steps = tuple(0 if step == 0 else None for step in self.steps(maker.operands[0]))
        elif maker.name == "tt.expand_dims":
            axis = maker.attribute("axis") or 0
            steps = (*own[0][:axis], 0, *own[0][axis:])
        elif maker.name == "tt.broadcast":
            steps = own[0]
        elif maker.name == "tt.trans":
            steps = tuple(own[0][axis] for axis in trans_order(maker, len(value.shape)))
        elif maker.name in ("arith.addi", "tt.addptr", "arith.subi", "arith.ori", "arith.muli", "arith.extsi",
                            "arith.extui", "arith.trunci", "arith.index_cast", "tt.bitcast"):  # fmt: skip
            steps = tuple(self._combined(maker, axis, own) for axis in range(len(value.shape)))
        elif maker.name == "arith.remsi" and _aligned(maker.operands[1]):  # whole accesses stay together
            steps = own[0]
        elif own and all(len(each) == len(value.shape) for each in own):
            steps = tuple(0 if all(each[axis] == 0 for each in own) else None for axis in range(len(value.shape)))
        else:
            steps = unknown
        if "tt.contiguity" in maker.attributes and len(value.shape) == 1:
            steps = (1,)
        return steps

    def _combined(self, maker: Operation, axis: int, own: list[Steps]) -> int | None:
        """Combine the steps of operands along an axis."""
        given = [each[axis] if len(each) > axis else 0 for each in own]
        if all(step == 0 for step in given):
            return 0
        if maker.name == "arith.muli":
            factors = [value.maker.constant for value in maker.operands if value.maker is not None]
            return 1 if 1 in factors and sorted(map(str, given)) == ["0", "1"] else None
        if maker.name == "arith.subi" and given[1] != 0:
            return None
        return 1 if sorted(map(str, given)) in (["0", "1"], ["1"]) else None


def _aligned(value: Value) -> bool:
    """Check that a number, or the one number of a tile, is a multiple of 16 by its argument or constant."""
    while value.maker is not None and value.maker.name in ("tt.splat", "arith.extsi", "tt.broadcast"):
        value = value.maker.operands[0]
    return value.aligned if value.maker is None else bool(value.maker.constant) and not (value.maker.constant or 1) % 16
