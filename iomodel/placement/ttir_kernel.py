"""Declaration of a kernel read from its TTIR: the tiles and products of each loop, by the numbers of their extents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from iomodel.errors import InputError
from iomodel.placement.triton_kernel import Order, PassedTile, Tile, TileProduct, TritonKernel
from iomodel.placement.ttir import Block, Operation, Value
from iomodel.placement.ttir_flow import LOADS, PRODUCTS, Extents, Neighbours, following, trans_order

MOST_STEPS = 256
"""Loads, products and stores of the largest kernel that is described [-]."""
MOST_OPERATIONS = 10_000
"""Operations of the largest kernel that is described; one with a hundred products has a third of them [-]."""
STORES = frozenset({"tt.store", "tt.atomic_rmw", "tt.descriptor_store", "tt.descriptor_reduce"})
REFUSED = ("tt.call", "tt.dot_scaled")
"""Operations without rules."""


@dataclass
class Numbered:
    """Extents in the order in which they are met: the sides that stand for them, and their sizes."""

    extents: Extents
    sizes: list[int] = field(default_factory=list)
    numbers: dict[object, int] = field(default_factory=dict)

    def of(self, value: Value, axis: int) -> int:
        """Return the number of the extent of a side."""
        axis %= len(value.shape)
        size = value.shape[axis]
        side = self.extents.of(value, axis) if size > 1 else None
        if side not in self.numbers:
            self.numbers[side] = len(self.sizes)
            self.sizes.append(size)
        return self.numbers[side]


@dataclass
class Segment:
    """Operations that are described together: the body of an innermost loop with products, or products off a loop."""

    operations: list[Operation]
    block: Block | None = None
    stored: list[Operation] = field(default_factory=list)

    @property
    def stages(self) -> int | None:
        """`num_stages` of the loop, where it has its own."""
        loop = None if self.block is None else self.block.parent
        return None if loop is None else loop.attribute("tt.num_stages")

    @cached_property
    def own(self) -> set[Operation]:
        """The operations as a set."""
        return set(self.operations)


class KernelReader:
    """A kernel's TTIR with what is known of its values."""

    def __init__(self, kernel: Operation) -> None:
        self.kernel = kernel
        names = Counter(each.name for each in kernel.walk())
        for words, size, most in (
            ("operations", names.total(), MOST_OPERATIONS),
            ("loads, products and stores", sum(names[name] for name in LOADS | PRODUCTS | STORES), MOST_STEPS),
        ):
            if size > most:
                raise InputError(f"text: {size:,} {words} given; allowed: at most {most:,}")
        refused = next((each for each in kernel.walk() if each.name in REFUSED), None)
        if refused is not None:
            raise InputError(f"text: {refused.name} in line {refused.line}; allowed: kernels of tt.dot alone")
        self.extents = Numbered(Extents(kernel))
        self.neighbours = Neighbours()
        self.results = following(kernel, PRODUCTS, LOADS)
        self.residents: dict[Value, str] = {}
        self.products: dict[Operation, str] = {}
        self.chained: dict[Operation, bool] = {}

    def described(self) -> TritonKernel:
        """Return the kernel whose extents are numbers of :class:`Numbered`."""
        programs: list[TritonKernel] = []
        for segment in self._segments():
            programs.append(self._program(segment))
        if not programs:
            raise InputError("text: a kernel without tt.dot given; allowed: a kernel with matrix products")
        return replace(programs[0], branches=tuple(programs[1:]))

    def _segments(self) -> list[Segment]:
        """Divide the kernel into loops and what is between them, each with the stores behind it."""
        segments: list[Segment] = []
        straight: Segment | None = None
        for operation in chain.from_iterable(map(self._flat, self.kernel.blocks)):
            if _is_loop(operation):
                straight = None
                body = [*self._flat(operation.blocks[-1])]
                segments.append(Segment(body, operation.blocks[-1]))
                continue
            if operation.name in PRODUCTS and straight is None:
                straight = Segment([])
                segments.append(straight)
            if operation.name in PRODUCTS and straight is not None:
                straight.operations.append(operation)
            elif operation.name in STORES and segments:
                segments[-1].stored.append(operation)
        return segments

    def _flat(self, block: Block) -> Iterator[Operation]:
        """Iterate over operations, and over those of conditions and outer loops; an inner loop is one operation."""
        for operation in block.operations:
            yield operation
            if operation.name.startswith("scf.") and not _is_loop(operation):
                for inner in operation.blocks:
                    yield from self._flat(inner)

    def _program(self, segment: Segment) -> TritonKernel:
        """Describe a segment."""
        reader = SegmentReader(self, segment)
        loop = tuple(reader.steps())
        stored = tuple(self._stored(operation) for operation in segment.stored if self._is_result(operation))
        carried = segment.block.arguments[1:] if segment.block is not None else []
        positions = any(value.shape and not value.pointer and self._whole(value) for value in carried)
        described = any(operation.name.startswith("tt.descriptor") for operation in reader.loads)
        looped = any(product.block is segment.block for product in reader.products)
        blocks = {product.block for product in reader.products}
        conditional = segment.block is not None and not any(load.block in blocks for load in reader.loads)
        integers = any(product.results[0].integer for product in reader.products)
        return TritonKernel(
            tuple(reader.resident), loop, stored, 1, described, positions, looped=looped, conditional=conditional,
            integers=integers, outside=tuple(reader.outside), results=tuple(reader.earlier),
            stages=segment.stages,
        )  # fmt: skip

    def _whole(self, value: Value) -> bool:
        """Check that a carried tile has integers, as positions."""
        return value not in self.extents.extents.tiles

    def _is_result(self, operation: Operation) -> bool:
        value = _stored_value(operation)
        return value is not None and len(value.shape) > 1 and value in self.results

    def _stored(self, operation: Operation) -> Tile:
        value = _stored_value(operation)
        assert value is not None
        return self.tile(f"stored {operation.line}"[:6], value, True)

    def tile(self, name: str, value: Value, by_rows: bool, chain: int = 0, scattered: bool = False) -> Tile:
        """Describe a tile whose rows are contiguous in memory, or whose columns are."""
        if not value.shape:
            return Tile(name, self.one, self.one, value.element, chain)
        if len(value.shape) == 1:
            return Tile(name, self.extents.of(value, 0), self.one, value.element, chain, scattered)
        rows, columns = (-2, -1) if by_rows else (-1, -2)
        return Tile(
            name, self.extents.of(value, rows), self.extents.of(value, columns), value.element, chain, scattered
        )

    @cached_property
    def one(self) -> int:
        """The number of the extent of one element."""
        self.extents.numbers[None] = self.extents.numbers.get(None, len(self.extents.sizes))
        if self.extents.numbers[None] == len(self.extents.sizes):
            self.extents.sizes.append(1)
        return self.extents.numbers[None]


def _stored_value(operation: Operation) -> Value | None:
    """Return the tile that an operation stores."""
    position = 0 if operation.name.startswith("tt.descriptor") else 1
    tiles = [value for value in operation.operands if value.shape and not value.described]
    return tiles[min(position, len(tiles) - 1)] if tiles else None


def _is_loop(operation: Operation) -> bool:
    """Check whether an operation is an innermost loop with products."""
    if operation.name not in ("scf.for", "scf.while"):
        return False
    inside = [*operation.walk()]
    if not any(each.name in PRODUCTS for each in inside):
        return False
    return not any(_is_loop(each) for each in inside if each.name in ("scf.for", "scf.while"))


class SegmentReader:
    """The steps of one segment."""

    def __init__(self, reader: KernelReader, segment: Segment) -> None:
        self.reader, self.segment = reader, segment
        self.products = [each for each in segment.operations if each.name in PRODUCTS]
        for product in self.products:
            reader.chained[product] = len(self.products) > 1
            reader.products[product] = f"product {self.products.index(product) + 1}"
        self.reached = self._reached()
        self.loads: list[Operation] = [each for each in self._operations() if each in self.reached]
        self.names = {each: f"load {number}" for number, each in enumerate(self.loads, 1)}
        self.resident: list[Tile] = []
        self.earlier: list[Tile] = []
        self.outside: list[Tile] = []
        self.made: dict[Value, str] = {}
        self.read_by: dict[str, Order] = {}

    def _operations(self) -> Iterable[Operation]:
        """Iterate over the operations of the loop; off a loop, over the loads of products in their order."""
        if self.segment.block is not None:
            return self.segment.operations
        return sorted(self.reached, key=lambda each: each.line)

    def _inside(self, operation: Operation) -> bool:
        return self.segment.block is None or operation in self.segment.own

    def _reached(self) -> set[Operation]:
        """Collect the loads of tiles from which an operand of a product comes."""
        loads: set[Operation] = set()
        seen: set[Value] = set()
        pending = [value for product in self.products for value in product.operands[:2]]
        while pending:
            value = pending.pop()
            if value in seen or value.maker is None:
                continue
            seen.add(value)
            maker = value.maker
            if not self._inside(maker) or maker in self.products or maker.blocks:
                continue
            if maker.name in LOADS:
                if not value.shape and (self.segment.block is None or value.element < 4):
                    continue
                loads.add(maker)
                if self.segment.block is None:
                    continue
            pending += maker.operands
        return loads

    def steps(self) -> Iterator[Tile | TileProduct | PassedTile]:
        """Iterate over the loads, products and stores in their order."""
        if self.segment.block is None:
            events = sorted([*self.loads, *self.products], key=lambda each: each.line)
        else:
            events = self.segment.operations
        for operation in events:
            if operation in self.reached:
                yield self._load(operation)
            elif operation in self.products:
                yield from self._product(operation)
            elif operation.name in LOADS and self._meets_result(operation):
                tile = self.reader.tile("beside", operation.results[0], self._by_rows(operation))
                yield PassedTile("loaded", tile.rows, tile.columns, tile.element)
            elif operation.name == "tt.reduce" and not operation.results[0].shape and operation.operands[0].shape:
                number = self.reader.one
                yield PassedTile("summed", number, number, operation.operands[0].element)
            elif operation.name in STORES and self.reader._is_result(operation):
                tile = self.reader._stored(operation)
                yield PassedTile("stored", tile.rows, tile.columns, tile.element)

    def _load(self, operation: Operation) -> Tile:
        """Describe a load."""
        value = operation.results[0]
        by_rows = self._by_rows(operation)
        return self.reader.tile(
            self.names[operation], value, by_rows, self._chain(operation), self._scattered(operation)
        )

    def _meets_result(self, operation: Operation) -> bool:
        """Check that a loaded tile that no operand comes from is used with a result."""
        seen = {*operation.results}
        for each in self.segment.operations:
            if any(value in seen for value in each.operands) and each.name not in LOADS:
                tiles = [value for value in each.results if value.shape]
                if any(value in self.reader.results for value in tiles):
                    return bool(operation.results[0].shape)
                seen.update(tiles)
        return False

    def _pointer_steps(self, operation: Operation) -> tuple[int | None, ...]:
        pointer = operation.operands[0]
        if operation.name != "tt.load" or len(pointer.shape) != len(operation.results[0].shape):
            return (None,) * (len(operation.results[0].shape) - 1) + (1,)
        return self.reader.neighbours.steps(pointer)

    def _by_rows(self, operation: Operation) -> bool:
        """Check that the last axis of a loaded tile is contiguous, or none is."""
        steps = self._pointer_steps(operation)
        return len(steps) < 2 or steps[-1] == 1 or steps[-2] != 1

    def _scattered(self, operation: Operation) -> bool:
        """Check that no elements of a tile are next to each other in memory."""
        return 1 not in self._pointer_steps(operation)

    def _chain(self, operation: Operation) -> int:
        """Count the loads of tiles in the loop that an address waits for."""
        seen: set[Value] = set()
        pending, chain = [*operation.operands[:1]], 0
        while pending:
            value = pending.pop()
            if value in seen or value.maker is None or not self._inside(value.maker):
                continue
            seen.add(value)
            if value.maker in self.reached and self.segment.block is not None:
                chain = max(chain, 1 + self._chain(value.maker))
            else:
                pending += value.maker.operands
        return chain

    def _product(self, operation: Operation) -> Iterator[Tile | TileProduct]:
        """Describe a product, and before it the operands that arithmetic makes."""
        left, right = operation.operands[:2]
        result = operation.results[0]
        if len(result.shape) != 2:
            raise InputError(f"text: a product of {len(result.shape)} axes in line {operation.line}; allowed: two")
        sides: list[tuple[str, Order]] = []
        for value in (right, left):
            name, order, made = self._operand(value)
            if made is not None:
                yield made
            sides.insert(0, (name, order))
        before = self._nearest(operation.operands[2]) if self.segment.block is None else None
        if before is not None and before not in self.products and self.reader.chained.get(before, False):
            self.earlier.append(self.reader.tile(f"{self.reader.products[operation]} before", result, True))
        first = self._summed(operation)
        into = self.reader.products[first] if first is not operation else ""
        number = self.reader.extents.of
        yield TileProduct(
            self.reader.products[operation], sides[0][0], sides[1][0], number(result, -2), number(result, -1),
            number(left, -1), self._taken(operation), sides[1][1], self._carried(operation), self._reduced(operation),
            into, sides[0][1] == "turned",
        )  # fmt: skip

    def _summed(self, operation: Operation) -> Operation:
        """Find the first of the products that one accumulator sums."""
        added = operation.operands[2].maker if len(operation.operands) > 2 else None
        return self._summed(added) if added is not None and added in self.products else operation

    def _operand(self, value: Value) -> tuple[str, Order, Tile | None]:
        """Name the tile that an operand is, with the order in which it comes from memory."""
        source, turned = value, False
        while source.maker is not None and source.maker.name == "tt.trans" and len(source.shape) == 2:
            turned = turned != (trans_order(source.maker, 2) == [1, 0])
            source = source.maker.operands[0]
        maker = source.maker
        inside = maker is not None and self._inside(maker)
        if maker is not None and maker in self.names:
            order: Order = "turned" if turned else "rows" if self._by_rows(maker) else "columns"
            return self.names[maker], order, None
        order = "turned" if turned else "rows"
        if source in self.reader.results:
            product = self._nearest(source)
            if product is not None and product in self.products:
                return self.reader.products[self._summed(product)], order, None
            if self.segment.block is None:
                name = f"result {len(self.earlier) + 1}"
                self.earlier.append(self.reader.tile(name, source, True))
                return name, order, None
        argument = source.maker is None and source.block is self.segment.block
        if self.segment.block is not None and not inside and not argument:
            name = self.reader.residents.setdefault(source, f"resident {len(self.reader.residents) + 1}")
            if name not in {tile.name for tile in self.resident}:
                self.resident.append(self.reader.tile(name, source, True))
                self.earlier += self.resident[-1:] if source in self.reader.results else []
            return name, order, None
        if source in self.made:
            return self.made[source], order, None
        self.made[source] = f"made {len(self.made) + 1}"
        made = replace(self.reader.tile(self.made[source], source, True), made=self._sources(source))
        return self.made[source], order, made

    def _sources(self, value: Value) -> tuple[str, ...]:
        """List the loads of tiles of which arithmetic makes one, those of tiles from before the loop too.

        Its own name is among them if it comes from a tile that is not loaded.
        """
        seen: set[Value] = set()
        pending, names = [value], set()
        tiles = self.reader.extents.extents.tiles
        while pending:
            each = pending.pop()
            if each in seen or (each not in tiles and each.shape):
                continue
            seen.add(each)
            if each.maker in self.names:
                names |= {self.names[each.maker]} if each.shape else set()
            elif each.maker is None:
                names |= {self.made[value]} if each in tiles else set()
            elif each.maker.name in LOADS and each.shape:
                self.outside.append(self.reader.tile(f"outside {len(self.outside) + 1}", each, True))
                names.add(self.outside[-1].name)
            elif each.maker.blocks or each.maker.name in PRODUCTS:
                names.add(self.made[value])
            else:
                pending += each.maker.operands
        return tuple(sorted(names)) or (self.made[value],)

    def _nearest(self, value: Value) -> Operation | None:
        """Find the product that a result comes from: the first on the way back, of the same shape if there is one."""
        seen: set[Value] = set()
        pending, first = [value], None
        while pending:
            each = pending.pop(0)
            if each in seen:
                continue
            seen.add(each)
            maker = each.maker
            if maker is not None and maker.name in PRODUCTS:
                if each.shape == value.shape:
                    return maker
                first = first or maker
            elif maker is not None and maker.name in ("scf.for", "scf.while", "scf.if"):
                blocks = maker.blocks if maker.name == "scf.if" else maker.blocks[-1:]
                ends = [block.operations[-1].operands for block in blocks if block.operations]
                pending += [end[each.number] for end in ends if each.number < len(end)]
            elif maker is not None and maker.name not in LOADS:
                pending += maker.operands
            elif maker is None and each.block is not None and each.block.parent is not None:
                position = each.block.arguments.index(each) - 1
                last = each.block.operations[-1] if each.block.operations else None
                if last is not None and 0 <= position < len(last.operands):
                    pending.append(last.operands[position])
        return first

    def _taken(self, operation: Operation) -> int:
        """Return the size of an element in the operand or the store that takes the result [B]."""
        takers = [
            value for product in self.products for value in product.operands[:2]
            if value in self.reader.results and self._takes(value, operation)
        ]  # fmt: skip
        stored = [_stored_value(each) for each in self.segment.stored if self.reader._is_result(each)]
        same = [each for each in stored if each is not None and each.shape == operation.results[0].shape]
        return next((value.element for value in (*takers, *same) if value is not None), 4)

    def _takes(self, value: Value, operation: Operation) -> bool:
        """Check that an operand comes from a product, or from the accumulator that it adds to."""
        product = self._nearest(value)
        return product is not None and product in self.products and self._summed(product) is operation

    def _carried(self, operation: Operation) -> bool:
        """Check that a product adds to an accumulator that the loop carries."""
        block = self.segment.block
        if block is None:  # off a loop, to the accumulator of one
            return operation.operands[2] in self.reader.results
        seen: set[Value] = set()
        pending = [operation.operands[2]]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if value.maker is None:
                if value in block.arguments[1:] and value.shape == operation.results[0].shape:
                    return True
            elif self._inside(value.maker) and value.shape == operation.results[0].shape:
                pending += value.maker.operands
        return False

    def _reduced(self, operation: Operation) -> bool:
        """Check that the rows of a result are reduced."""
        shape = operation.results[0].shape
        seen = set(operation.results)
        if self._summed(operation) is not operation:
            return False
        for each in self.segment.operations:
            if each.name == "tt.reduce" and each.operands and each.operands[0] in seen:
                return (each.attribute("axis") or 0) == len(shape) - 1
            taken = each.operands[2:] if each.name in PRODUCTS else each.operands
            if any(value in seen for value in taken):
                seen.update(value for value in each.results if value.shape == shape)
        return False
