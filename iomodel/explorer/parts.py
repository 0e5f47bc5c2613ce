"""Parts of the page by algorithm, and its plans: kept until the sources that they follow from change.

A part names its formulas, its typeset lines and its functions by their numbers in tables of its own, as the texts
``~3``, ``@3`` and ``$3``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import combinations, product
from typing import Any

import sympy
from sympy import Expr

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import discovered
from iomodel.common import derived
from iomodel.common.yaml_files import specs_folder
from iomodel.counting.coverage import View
from iomodel.errors import IOModelError
from iomodel.explorer.built import sources_digest
from iomodel.explorer.call_kinds import SHOWN, Answer, CallKind, TilePair, answer, kinds
from iomodel.explorer.clock_data import ClockData
from iomodel.explorer.javascript import Nodes
from iomodel.explorer.typeset import Typeset
from iomodel.nests import language
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import NUMBERS
from iomodel.nests.symbols import BY_NAME

Add = Callable[[Expr], Any]
MOVES: dict[type, str] = {
    **dict.fromkeys((language.Load, language.Lookup), "load"),
    **dict.fromkeys((language.Store, language.Fill), "store"),
    language.Accumulate: "add",
}
PACKED = View(packed=True)


class Drawn:
    """The kernels of a nest with their axes and tensors, as plain data."""

    def __init__(self, nest: language.Nest, add: Add) -> None:
        self.add = add
        self.axes: dict[str, Any] = {}
        self.tensors: dict[str, Any] = {}
        self.kernels = [
            {"title": k.title, "per": k.per, "unpacked": k.unpacked, "body": self._body(k.body)} for k in nest
        ]

    def plain(self) -> dict[str, Any]:
        """Return everything as plain data; formulas are the results of `add`."""
        return {"axes": self.axes, "tensors": self.tensors, "kernels": self.kernels}

    def _axis(self, axis: language.Axis) -> str:
        if axis.name not in self.axes:
            data: dict[str, Any] = {"rows": self.add(axis.length), "packed": self.add(PACKED.rows(axis))}
            data["symbol"] = str(axis.length) if axis.length.is_Symbol else None
            self.axes[axis.name] = data
            if axis.of is not None and axis.chunk is not None:
                data |= {"of": self._axis(axis.of), "chunk": self.add(axis.chunk)}
        return axis.name

    def _tensor(self, tensor: language.Tensor) -> str:
        if tensor.name not in self.tensors:
            self.tensors[tensor.name] = list(map(self._axis, tensor.axes))
        return tensor.name

    def _body(self, body: Iterable[language.Statement]) -> list[dict[str, Any]]:
        return [plain for statement in body if (plain := self._statement(statement)) is not None]

    def _statement(self, statement: language.Statement) -> dict[str, Any] | None:
        if isinstance(statement, language.Compound):
            return self._block(statement)
        if isinstance(statement, tuple(MOVES)):
            name = self._tensor(statement.tensor)  # type: ignore[union-attr]
            waits = getattr(statement, "after_first", None)
            return {"do": MOVES[type(statement)], "tensor": name, **({"after": waits.name} if waits else {})}
        if isinstance(statement, language.MatMul):
            return {"do": "multiply", "axes": [self._axis(axis) for axis in (statement.m, statement.n, statement.k)]}
        if isinstance(statement, language.Exp):
            return {"do": "exp", "axes": list(map(self._axis, statement.axes))}
        return None  # held buffers, and marks of absent features, move and compute nothing

    def _block(self, block: Any) -> dict[str, Any]:
        body = self._body(block.body)
        if isinstance(block, language.Loop):
            tile, name = self.add(block.tile), self._axis(block.axis)
            return {"do": "loop", "axis": name, "tile": tile, "masked": block.masked, "body": body}
        if isinstance(block, language.When):
            return {"do": "when", "holds": self.add(block.holds), "body": body}
        if isinstance(block, language.Cut):
            pieces = [
                {"times": self.add(piece.times), "sizes": {str(s): self.add(size) for s, size in piece.sizes.items()},
                 "mask": piece.mask}
                for piece in block.pieces
            ]  # fmt: skip
            return {"do": "cut", "pieces": pieces, "body": body}
        assert isinstance(block, language.Live | language.Idle)
        return {
            "do": "live" if isinstance(block, language.Live) else "idle",
            "axis": self._axis(block.axis),
            "body": body,
        }


NODE, LINE, FUNCTION = "~", "@", "$"
REFERENCE = re.compile(r"([~@$])([0-9]+)")
FORMULAS = (
    *("common", "counting", "errors", "nests", "placement", "solving", "timing", "workloads"),
    *(f"explorer/{name}.py" for name in ("call_kinds", "clock_data", "javascript", "parts", "typeset")),
)
"""Sources of the formulas of every algorithm, beside its own."""
PLANS = ("common", "counting", "devices", "errors", "models", "nests", "placement", "planning", "solving", "studies",
         "timing", "workloads", "explorer/parts.py", "explorer/serving.py")  # fmt: skip
"""Sources of the plans, beside the declarations of the algorithms that plans ask."""
UNPLANNED = frozenset({"declare", "backward", "published", "cite", "title"})
"""Fields of declarations that no plan depends on, or whose nests stand for them."""
TYPESET = ("flops", "exps", "atomics", "footprint", "footprint_bytes")
"""Totals with displayed formulas."""
Named = Callable[[Expr], str]
"""A table of formulas, which names those that it is given."""


def part(name: str, only: Sequence[CallKind] | None = None) -> dict[str, Any]:
    """Return the part of an algorithm, of all its kinds of call or of `only` some; that of all is kept."""
    if only is not None:
        return _made(name, only)
    return dict(kept(f"part-{name}", state_of(name), lambda: _made(name, list(kinds([name])))))


def kept(name: str, state: str, make: Callable[[], Any]) -> Any:
    """Return data that were kept for a state of the sources; else make them, and keep them where a command does."""
    data = derived.read(name, state)
    if data is None:
        data = make()
        if derived.pending is not None:
            derived.pending[name] = lambda: data
            derived.made_of[name] = state
    return data


def _made(name: str, call_kinds: Sequence[CallKind]) -> dict[str, Any]:
    nodes, typeset, clock = Nodes(), Typeset(), ClockData(FUNCTION)

    def node(formula: Expr) -> str:
        return f"{NODE}{nodes.add(formula)}"

    def line(formula: Expr) -> str:
        return f"{LINE}{typeset.line(formula)}"

    calls: dict[str, Any] = {}
    nests: dict[str, Any] = {}
    for kind in call_kinds:
        try:
            call_answer = answer(kind)
        except IOModelError as error:
            calls[kind.place] = str(error).replace("'another'", "'window'")  # the page's name for those masks
        else:
            calls[kind.place] = _call(call_answer, node, line)
            if kind.nest_place not in nests:
                nests[kind.nest_place] = Drawn(call_answer.nest, node).plain()
    for kind in kinds([name]):
        clock.add(kind)
    data = {"calls": calls, "nests": nests, "clock": clock.calls, "functions": list(clock.functions)}
    return {**data, "lines": typeset.lines, "entries": nodes.entries, "roots": list(nodes.roots)}


def _call(call_answer: Answer, node: Named, line: Named) -> dict[str, Any]:
    """Return the formulas of a kind of call, by the names that `node` and `line` give them."""
    expressions = call_answer.expressions

    def row(formula: Expr) -> list[Any]:
        return [node(formula), line(formula)]

    return {
        "tiles": list(expressions.tiles),
        "reads": {name: row(expr) for name, expr in expressions.reads.items()},
        "writes": {name: row(expr) for name, expr in expressions.writes.items()},
        "counts": {
            name: row(formula) if name in TYPESET else [node(formula)]
            for name in SHOWN
            for formula in [getattr(expressions, name)]
        },
        "parts": [_pair(pair, node) for pair in call_answer.parts],
        "rest": node(call_answer.rest),
        "refused": call_answer.refused,
    }


def _pair(pair: TilePair, node: Named) -> dict[str, Any]:
    return {name: node(value) if isinstance(value, Expr) else value for name, value in vars(pair).items()}


class Merged:
    """The parts of a page as one, with every formula, line and function once."""

    def __init__(self) -> None:
        self.nodes = Nodes()
        self.lines: dict[str, int] = {}
        self.functions: dict[str, int] = {}
        self._parts: list[tuple[Mapping[str, Any], dict[str, list[int]]]] = []

    def add(self, one: Mapping[str, Any]) -> None:
        """Add a part."""
        lines: list[int] = []
        for text in one["lines"]:
            own = re.sub(r"@(\d+)@", lambda hole: f"@{lines[int(hole[1])]}@", text)
            lines.append(self.lines.setdefault(own, len(self.lines)))
        functions = [self.functions.setdefault(text, len(self.functions)) for text in one["functions"]]
        numbers = self.nodes.merge(one["entries"], one["roots"])
        self._parts.append((one, {NODE: numbers, LINE: lines, FUNCTION: functions}))

    def node(self, formula: Expr) -> str:
        """Add a formula that belongs to no part, and return its name."""
        return f"{NODE}{self.nodes.add(formula)}"

    def collected(self, field: str) -> dict[str, Any]:
        """Join a field of all parts, once the nodes are printed."""
        found: dict[str, Any] = {}
        for one, maps in self._parts:
            numbers = {**maps, NODE: [self.nodes.places.get(number, -1) for number in maps[NODE]]}
            found |= numbered(one[field], numbers)
        return found


def numbered(data: Any, numbers: Mapping[str, Mapping[int, int] | Sequence[int]]) -> Any:
    """Replace references by their numbers.

    >>> numbered({"a": ["~1", "x"]}, {"~": [5, 7]})
    {'a': [7, 'x']}
    """
    if isinstance(data, str):
        name = REFERENCE.fullmatch(data)
        return data if name is None else numbers[name[1]][int(name[2])]
    if isinstance(data, dict):
        return {key: numbered(value, numbers) for key, value in data.items()}
    return [numbered(value, numbers) for value in data] if isinstance(data, list | tuple) else data


@lru_cache(maxsize=256)
def state_of(name: str) -> str:
    """Return the state of the sources that the part of an algorithm follows from."""
    return f"{sympy.__version__} {derived.digest(*FORMULAS, *find_algorithm(name).sources)}"


@lru_cache(maxsize=8)
def state_of_plans(names: tuple[str, ...]) -> str:
    """Return the state of the sources of the plans, and of the declarations of the algorithms that plans ask."""
    text = "".join(
        path.read_text(encoding="utf-8")
        for room in ("planning", "models")
        for path in (derived.PACKAGE / room).rglob("*.py")
    )
    asked = [
        known for name, known in discovered().items()
        if name not in names or known.preference is not None or f'"{name}"' in text
    ]  # fmt: skip
    meaning = sha256("".join(map(meaning_of, asked)).encode()).hexdigest()
    return f"{derived.digest(*PLANS)} {meaning} {sources_digest(specs_folder(), 'specs')}"


def meaning_of(algorithm: Algorithm) -> str:
    """Return what plans take from a declaration, as a text: its facts and the nests of its forward pass.

    A comment, a citation or a backward pass is no part of it.
    """
    declaration = getattr(algorithm, "declaration", algorithm)
    facts = {part.name: getattr(declaration, part.name) for part in fields(declaration) if part.name not in UNPLANNED}
    options = {name for name, default in declaration.takes().items() if isinstance(default, bool)}
    options |= {*declaration.features} if declaration.answers != "attention" else set()
    numbers = {name: BY_NAME[name] for name in NUMBERS & declaration.options.keys()}
    masks = ((False, False), (True, True), (False, True)) if declaration.answers == "attention" else ((False, False),)
    nests = []
    for (causal, masked), many in product(masks, range(len(options) + 1)):
        for on in combinations(sorted(options), many):
            if len({*on} & {*declaration.exclusive}) <= 1:
                chosen: dict[str, Any] = {**numbers, **{name: name in on for name in options}}
                nests.append(declaration.nest("forward", causal, masked, **chosen))
    return text_of([facts, declaration.implementations, nests])


def text_of(value: Any) -> str:
    """Write data of declarations in a fixed order.

    >>> text_of({"tiles": frozenset({"b", "a"}), "steps": (1, None)})
    "{'tiles': {'a', 'b'}, 'steps': [1, None]}"
    """
    if is_dataclass(value) and not isinstance(value, type):
        values = [text_of(getattr(value, part.name)) for part in fields(value) if part.name not in UNPLANNED]
        return f"{type(value).__name__}({', '.join(values)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{text_of(name)}: {text_of(part)}' for name, part in value.items())}}}"
    if isinstance(value, frozenset | set):
        return f"{{{', '.join(sorted(map(text_of, value)))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(text_of, value))}]"
    return getattr(value, "__qualname__", None) or repr(value)
