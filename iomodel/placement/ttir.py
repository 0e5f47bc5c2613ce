"""Text of Triton's intermediate representation, read as operations with their operands, types and regions.

Only what the text says is read: nothing is evaluated, and a text that is cut, of another level of the compiler, or no
TTIR at all is refused in one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown

MOST_CHARACTERS = 2_000_000
"""Length of the longest text that is read; kernels with a hundred products take a fifth of it [characters]."""
LONGEST_LINE = 16_384
"""Length of the longest line that is read; the head of a function of eighty arguments takes half of it [characters]."""
MOST_ELEMENTS = 1 << 20
"""Elements of the largest tile of Triton's language [elements]."""
DEEPEST = 64
"""Regions within each other that are read [-]."""

ELEMENTS = FrozenDict({"bf16": 2, "index": 8, "ptr": 8, "tf32": 4})
"""Sizes of the types whose name does not end with the number of their bits [B]."""
OPERANDS = FrozenDict(
    {"tt.dot": 3, "tt.addptr": 2, "arith.addi": 2, "arith.subi": 2, "arith.muli": 2, "arith.remsi": 2, "tt.store": 2}
    | dict.fromkeys(("tt.load", "tt.trans", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reduce", "tt.scan"), 1)
)
"""The fewest operands of operations whose operands are looked at [-]."""
LOCATION = " loc("
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
BRACES = re.compile(r"<?\{[^{}]*\}>?")
VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
ARGUMENT = re.compile(r"(%[\w$.-]+)\s*:\s*([^,(){}\s]+(?:<[^()]*?>)?)\s*(\{[^{}]*\})?")
TYPE = re.compile(
    r"!tt\.tensordesc<(?:tensor<)?(?P<described>(?:\d+x)*\w+)[^<>]*>+|!tt\.ptr<tensor<(?P<block>(?:\d+x)*\w+)[^<>]*>+"
    r"|tensor<(?P<tensor>(?:\d+x)*(?:!tt\.ptr<\w+(?:, \d+)?>|\w+))(?P<layout>[^<>]*)>"
    r"|!tt\.ptr<\w+(?:, \d+)?>|\b(?:[iuf]\d+\w*|bf16|tf32|index)\b"
)
NAME = re.compile(r'(?:(?P<results>%[^=]*?)\s*=\s*)?(?:"(?P<quoted>[\w.]+)"|(?P<plain>[a-z_]\w*(?:\.\w+)*))')
LOOPED = re.compile(r"(%[\w$.-]+)\s*=\s*(%[\w$.-]+(?:#\d+)?)")
NUMBER = re.compile(r"(?:dense<)?(-?\d+)>?\s*(?::|$)")
HEADER = re.compile(r"@([\w.$\"-]+)\((.*)\)")


@dataclass(eq=False)
class Value:
    """A value: a tile of `shape`, or a number without one; `maker` is the operation, `number` its result.

    An argument that is a multiple of 16 is `aligned`.
    """

    shape: tuple[int, ...]
    element: int
    pointer: bool = False
    described: bool = False
    maker: Operation | None = None
    number: int = 0
    block: Block | None = None
    aligned: bool = False
    integer: bool = False


@dataclass(eq=False)
class Block:
    """Operations one after the other, with the arguments of their region."""

    parent: Operation | None
    arguments: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


@dataclass(eq=False)
class Operation:
    """An operation; `constant` is the integer of a constant, `attributes` the text between braces."""

    name: str
    line: int
    block: Block
    operands: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    attributes: str = ""
    constant: int | None = None
    blocks: list[Block] = field(default_factory=list)

    def attribute(self, name: str) -> int | None:
        """Return an integer attribute; None for one that is not set."""
        found = re.search(rf"\b{re.escape(name)}\s*=\s*(-?\d+)", self.attributes)
        return None if found is None else int(found[1])

    def walk(self) -> Iterator[Operation]:
        """Iterate over the operations of the regions, in the order of the text."""
        for block in self.blocks:
            for operation in block.operations:
                yield operation
                yield from operation.walk()


def read_ttir(text: str) -> Operation:
    """Read the kernel of a text; the operation has the arguments and operations of the kernel in its first block.

    Raises
    ------
    InputError
        The text is cut, is not TTIR, or has no kernel.
    """
    if not isinstance(text, str) or "tt.func" not in text[:MOST_CHARACTERS]:
        raise InputError(f"text: {shown(text)} given; allowed: the TTIR of a kernel, as compiled.asm['ttir'] has it")
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"text: {len(text):,} characters given; allowed: at most {MOST_CHARACTERS:,}")
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        reader.read(number, line)
    return reader.kernel()


class _Reader:
    """The state of reading: open regions, and the values known by name."""

    def __init__(self) -> None:
        self.module = Operation("module", 0, Block(None))
        self.module.blocks.append(self.module.block)
        self.block = self.module.block
        self.open: list[Operation] = []
        self.values: dict[str, Value] = {}
        self.line = 0

    def read(self, number: int, line: str) -> None:
        """Read one line."""
        self.line = number
        if len(line) > LONGEST_LINE:
            raise InputError(f"text: line {number} has {len(line):,} characters; allowed: at most {LONGEST_LINE:,}")
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "//")):
            return
        if stripped.startswith("^"):
            self._labelled(stripped)
        elif stripped.startswith("}"):
            self._close(stripped.partition(LOCATION)[0].rstrip())
        else:
            self._operation(stripped)

    def kernel(self) -> Operation:
        """Return the kernel once the text has ended."""
        if self.open:
            raise InputError(
                f"text: ends inside the {self.open[-1].name} of line {self.open[-1].line}; give the whole text"
            )
        functions = [each for each in self.module.walk() if each.name == "tt.func"]
        kernels = [each for each in functions if "public" in each.attributes] or functions
        if len(kernels) != 1:
            raise InputError(f"text: {len(kernels)} kernels given; allowed: one, as compiled.asm['ttir'] has it")
        return kernels[0]

    def _error(self, words: str) -> InputError:
        return InputError(f"text: line {self.line} {words}; allowed: TTIR, as compiled.asm['ttir'] has it")

    def _labelled(self, line: str) -> None:
        """Begin a block with a label; the first one of a region is already there."""
        if not self.open:
            raise self._error("begins a block outside of a kernel")
        if self.block.operations:
            self.block = Block(self.open[-1])
            self.open[-1].blocks.append(self.block)
        self._arguments(line, self.block)

    def _arguments(self, text: str, block: Block) -> None:
        """Read the arguments of a block, each with its type."""
        for name, kind, attributes in ARGUMENT.findall(re.sub(r"loc\([^()]*(?:\([^()]*\))*[^()]*\)", "", text)):
            types = self._types(kind)
            if types:
                types[0].block, types[0].aligned = block, "tt.divisibility = 16" in attributes
                block.arguments.append(types[0])
                self.values[name] = types[0]

    def _close(self, line: str) -> None:
        """End a region: one more begins behind `else` or `do`, or types follow."""
        if not self.open:
            raise self._error("ends a region that was not begun")
        operation = self.open[-1]
        if line.endswith("{"):
            self.block = Block(operation)
            operation.blocks.append(self.block)
            if operation.name == "scf.while":
                self._arguments(line, self.block)
            return
        self.open.pop()
        self.block = operation.block
        tail = line.lstrip("})")
        operation.attributes += " ".join(BRACES.findall(tail))
        types = self._types(BRACES.sub("", tail).rpartition("->")[2] if "->" in tail else "")
        if types and operation.results and not operation.results[0].shape and len(types) == len(operation.results):
            for result, known in zip(operation.results, types, strict=True):
                result.shape, result.element, result.pointer = known.shape, known.element, known.pointer

    def _operation(self, line: str) -> None:
        """Read an operation, and begin its region if it has one."""
        found = NAME.match(line)
        if found is None:
            raise self._error(f"is {shown(line[:60])}")
        name = found["quoted"] or found["plain"]
        operation = Operation(name, self.line, self.block)
        self.block.operations.append(operation)
        if name == "tt.func":
            self._function(operation, line)
            return
        rest = STRING.sub('""', line[found.end() :]).partition(LOCATION)[0].rstrip()
        begins = rest.endswith("{")
        rest = rest[:-1] if begins else rest
        operation.attributes = " ".join(BRACES.findall(rest))
        rest = BRACES.sub("", rest)
        if name == "arith.constant" and (number := NUMBER.search(rest)):
            operation.constant = int(number[1])
        values, _, types = rest.partition(" : ") if name != "scf.for" else (rest, "", rest.rpartition(" : ")[0])
        if name == "scf.for":
            self._loop(operation, values)
        else:
            operation.operands = self._operands(values)
        self._results(operation, found["results"] or "", types if name != "scf.if" else rest)
        if len(operation.operands) < OPERANDS.get(name, 0):
            raise self._error(f"gives {name} {len(operation.operands)} operands")
        if name == "tt.dot" and not _multiplies(operation):
            raise self._error("has a product of tiles that do not match")
        if begins:
            if len(self.open) >= DEEPEST:
                raise self._error(f"is within {DEEPEST} regions")
            if name != "scf.for":
                operation.blocks.append(Block(operation))
            self.open.append(operation)
            self.block = operation.blocks[-1]
            if name == "scf.while":
                for (inner, _), value in zip(LOOPED.findall(values), operation.operands, strict=False):
                    self.values[inner] = value

    def _function(self, operation: Operation, line: str) -> None:
        """Read the head of a function."""
        header = HEADER.search(line)
        if header is None or not line.split(" loc(", maxsplit=1)[0] or not line.rstrip().endswith("{"):
            raise self._error("has no whole head of a function")
        operation.attributes = line[: header.start()]
        operation.blocks.append(Block(operation))
        self._arguments(line, operation.blocks[0])
        self.open.append(operation)
        self.block = operation.blocks[0]

    def _loop(self, operation: Operation, text: str) -> None:
        """Read the head of a loop: its bounds, what it carries, and the arguments of its body."""
        head, _, carried = text.partition("iter_args(")
        names = VALUE.findall(head)
        if len(names) != 4:
            raise self._error("has no bounds of a loop")
        operation.operands = [self._value(each) for each in names[1:]]
        body = Block(operation)
        self._bind(names[0], Value((), 4, block=body), body)
        for inner, outer in LOOPED.findall(carried.partition(")")[0]):
            value = self._value(outer)
            operation.operands.append(value)
            self._bind(inner, Value(value.shape, value.element, value.pointer, value.described, block=body), body)
        operation.blocks.append(body)

    def _bind(self, name: str, value: Value, body: Block) -> None:
        body.arguments.append(value)
        self.values[name] = value

    def _value(self, name: str) -> Value:
        if name not in self.values:
            raise self._error(f"uses {name} before it is there")
        return self.values[name]

    def _operands(self, text: str) -> list[Value]:
        """List the values that an operation uses."""
        initial = dict(LOOPED.findall(text))
        return [self._value(each) for each in VALUE.findall(text) if each not in initial]

    def _results(self, operation: Operation, names: str, types: str) -> None:
        """Name the results of an operation by the types at its end."""
        if not names:
            return
        listed: list[str] = []
        for each in names.split(","):
            name, _, count = each.strip().partition(":")
            if count and not (count.isdecimal() and 0 < int(count[:9]) < 1000):
                raise self._error(f"has {count} results")
            listed += [f"{name}#{index}" for index in range(int(count))] if count else [name]
        known = self._types(types.rpartition("->")[2] if "->" in types else types)
        known = _results_of(operation, known, len(listed))
        if len(known) < len(listed):
            if operation.name not in ("tt.reduce", "tt.scan", "tt.map_elementwise"):
                raise self._error(f"gives {operation.name} no type")
            known = [Value((), 4) for _ in listed]  # the types are at the end of its region
        for index, (name, value) in enumerate(zip(listed, known[-len(listed) :], strict=True)):
            value.maker, value.number = operation, index
            operation.results.append(value)
            self.values[name] = value
            if index == 0 and name.endswith("#0"):
                self.values[name[:-2]] = value

    def _types(self, text: str) -> list[Value]:
        """List the types of a text as values without a maker."""
        return [self._type(found) for found in TYPE.finditer(text)]

    def _type(self, found: re.Match[str]) -> Value:
        if found["layout"]:
            raise self._error("has a layout, of a later level of the compiler")
        inside = found["tensor"] or found["block"] or found["described"]
        *extents, element = (inside or found[0]).split("x") if inside else ((), found[0])[1:]
        pointer = "!tt.ptr" in element or found["block"] is not None
        if not all(extent.isdecimal() for extent in extents):
            raise self._error(f"has a tile of {shown(inside)}")
        shape = tuple(int(extent[:9]) for extent in extents)
        if prod(shape) > MOST_ELEMENTS or any(extent < 1 or extent & (extent - 1) for extent in shape):
            raise self._error(f"has a tile of {' x '.join(map(str, shape))}, no powers of two")
        pointee = element.partition("<")[2].rstrip(">") if "!tt.ptr" in element else element
        whole = not pointer and re.fullmatch(r"i\d+", pointee) is not None
        return Value(shape, _size(pointee.partition(",")[0]), pointer, found["described"] is not None, integer=whole)


def _results_of(operation: Operation, types: list[Value], count: int) -> list[Value]:
    """Derive the types of results from those that an operation prints."""
    if operation.name == "tt.addptr":
        return types[:1]
    if operation.name == "arith.constant" and not types:  # true and false
        return [Value((), 1)]
    if operation.name in ("arith.cmpi", "arith.cmpf") and types:
        return [Value(types[0].shape, 1)]
    if operation.name == "tt.load" and types:
        return [Value(types[0].shape, types[0].element)]
    return types[-count:]


def _multiplies(operation: Operation) -> bool:
    """Check that the tiles of a product match: rows x sum, sum x columns, rows x columns."""
    left, right, added = (value.shape for value in operation.operands[:3])
    result = operation.results[0].shape if operation.results else ()
    if not len(left) == len(right) == len(result) >= 2:
        return False
    return left[-1] == right[-2] and result == added and result[-2:] == (left[-2], right[-1])


def _size(element: str) -> int:
    """Return the size of an element of a type, at least a byte [B]."""
    digits = re.match(r"[a-z]+(\d+)", element, re.IGNORECASE)
    return ELEMENTS.get(element) or max(1, int(digits[1]) // 8 if digits else 8)
