"""First picture of the page: standard attention beside FlashAttention-2, by their declarations and their traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.cost import cost
from iomodel.nests import language
from iomodel.nests.language import walk
from iomodel.nests.symbols import BY_NAME
from iomodel.studies.trace.events import Event
from iomodel.studies.trace.trace import trace
from iomodel.workloads.attention import Attention

ROWS, TILES, WIDTH = 1024, 8, 64
"""Tokens, tiles along each axis, and the width of a head, of the picture."""
TILE = ROWS // TILES
SIDES: tuple[tuple[str, str, dict[str, int], dict[str, Any]], ...] = (
    ("standard", "Standard attention", {"gemm1_m": TILE, "gemm1_n": TILE, "gemm2_m": TILE, "gemm2_n": WIDTH},
     {"tiled": True}),
    ("flash2", "FlashAttention-2", {"block_q": TILE, "block_kv": TILE}, {}),
)  # fmt: skip
"""Algorithm, title, tiles and options of the left and of the right half."""
AXIS_ROWS = {
    "query": ("query", "queries"),
    "key": ("key", "keys"),
    "depth": ("column of Q", "columns of Q"),
    "value": ("column of V", "columns of V"),
}
"""An axis in the singular and in the plural."""
WORDS: dict[type, str] = {
    language.Lookup: "look up",
    language.Store: "store",
    language.Fill: "fill",
    language.Exp: "exponentials",
    language.Tanh: "hyperbolic tangents",
    language.Random: "random numbers",
}
"""Text for each statement: its action, or its result."""


@lru_cache(maxsize=1)
def scene() -> dict[str, Any]:
    """Collect both halves of the picture, with the exact traffic of :func:`iomodel.cost`.

    >>> left, right = scene()["sides"]
    >>> left["total"], right["total"]
    (11665408, 2363392)
    """
    call = Attention(q_len=ROWS, head_dim=WIDTH)
    sides = [_side(name, title, call, tiles, options) for name, title, tiles, options in SIDES]
    return {"rows": ROWS, "tiles": TILES, "width": WIDTH, "dtype": call.dtype, "sides": sides}


def _side(
    name: str, title: str, call: Attention, tiles: Mapping[str, int], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Collect one half: its tensors in HBM, the lines of its declaration, and its steps."""
    counted = cost(name, call, tiles, **options)
    nest = tuple(find_algorithm(name).nest(**options))
    listed = {kernel.title: lines(kernel) for kernel in nest}
    numbers = {str(BY_NAME[tile]): size for tile, size in tiles.items()}
    tensors = dict.fromkeys((*counted.reads, *counted.writes))
    held = {
        kernel.title: {s.tensor.name for s, _ in walk((kernel,)) if isinstance(s, language.Hold)} for kernel in nest
    }
    return {
        "title": title,
        "lines": [line for kernel in nest for line in _numbered(kernel, listed[kernel.title], numbers)],
        "tensors": {tensor: _axes(nest, tensor) for tensor in tensors},
        "total": counted.hbm_bytes,
        "footprint": counted.footprint_bytes,
        "steps": _steps(trace(name, call, tiles=tiles, **options).events, listed, held),
    }


def _numbered(kernel: language.Kernel, own: Iterable[DeclaredLine], numbers: Mapping[str, int]) -> Iterator[list[Any]]:
    """List the lines of a kernel below its title, with the sizes of the tiles."""
    yield [0, f"kernel {kernel.title}"]
    for line in own:
        words = (f"{numbers[word]:,}" if word in numbers else word for word in line.text.split(" "))
        yield [1 + line.depth, " ".join(words)]


def _axes(nest: Iterable[language.Kernel], name: str) -> list[str]:
    """Return the axes of a tensor among queries and keys."""
    moved = (s.tensor for s, _ in walk(tuple(nest)) if isinstance(s, language.Load | language.Store))
    tensor = next(tensor for tensor in moved if tensor.name == name)
    return [axis.name for axis in tensor.axes if axis.name in ("query", "key")]


def _steps(
    events: Iterable[Event], listed: Mapping[str, list[DeclaredLine]], held: Mapping[str, set[str]]
) -> list[list[Any]]:
    """Add up the events of each line on each pair of tiles of the picture.

    A step is [line, tensor or "", first and last query tile or -1, first and last key tile or -1, bytes moved, loaded
    buffers, held buffers]; a buffer is [tensor, bytes].
    """
    steps: dict[tuple[str, int, int, int], list[Any]] = {}
    starts = dict(zip(listed, accumulate((1 + len(own) for own in listed.values()), initial=1), strict=False))
    at: dict[str, int] = {}
    for event in events:
        spans = {axis: (start // TILE, (stop - 1) // TILE) for axis, start, stop in event.tile}
        at |= {axis: first for axis, (first, _) in spans.items()}
        line = _line(event, listed[event.kernel])
        key = event.kernel, line, at.get("query", 0), at.get("key", 0)
        if key in steps:
            steps[key][6] += event.hbm_bytes
            continue
        parts: list[list[list[Any]]] = [[], []]
        for name, size in event.buffers:
            parts[name in held[event.kernel]].append([name, size])
        tiles = [*spans.get("query", (-1, -1)), *spans.get("key", (-1, -1))]
        steps[key] = [starts[event.kernel] + line, event.tensor, *tiles, event.hbm_bytes, *parts]
    return list(steps.values())


def _line(event: Event, own: Iterable[DeclaredLine]) -> int:
    """Find the statement of an event among the lines of its kernel."""
    axes = {axis for axis, _, _ in event.tile}

    def same(statement: Any) -> bool:
        if type(statement).__name__ != event.op:
            return False
        if event.tensor:
            return bool(statement.tensor.name == event.tensor)
        on = (statement.m, statement.n, statement.k) if isinstance(statement, language.MatMul) else statement.axes
        return {axis.name for axis in on} == axes

    return next(number for number, line in enumerate(own) if same(line.statement))


class DeclaredLine(NamedTuple):
    """One line of a declaration: its indentation, its text, and its statement."""

    depth: int
    text: str
    statement: language.Statement


def rows(axis: language.Axis, many: bool = True) -> str:
    """Name the rows of an axis.

    >>> from iomodel.nests.tensors import key, query
    >>> rows(key), rows(query, many=False)
    ('keys', 'query')
    """
    single, several = AXIS_ROWS.get(axis.name, (f"row of {axis.name}", f"rows of {axis.name}"))
    return several if many else single


def lines(kernel: language.Kernel) -> list[DeclaredLine]:
    """List the statements of a kernel in order, each with its line.

    >>> from iomodel.algorithms import algorithm
    >>> for line in lines(next(iter(algorithm("tiled_query").nest())))[:3]:
    ...     print("  " * line.depth + line.text)
    for each tile of B_r queries
      keep S on chip
      keep O on chip
    """
    return list(_lines(kernel.body, 0))


def _lines(body: Any, depth: int) -> Iterator[DeclaredLine]:
    for statement in body:
        text = _text(statement)
        if text:
            yield DeclaredLine(depth, text, statement)
        if isinstance(statement, language.Compound):
            yield from _lines(statement.body, depth + bool(text))  # type: ignore[attr-defined]


def _text(statement: language.Statement) -> str:
    if isinstance(statement, language.Loop):
        seen = "visible " if statement.masked else ""
        if statement.tile == 1:
            return f"for each {seen}{rows(statement.axis, many=False)}"
        return f"for each tile of {statement.tile} {seen}{rows(statement.axis)}"
    if isinstance(statement, language.Live | language.Idle):
        seen = "any" if isinstance(statement, language.Live) else "no"
        return f"if the tile sees {seen} {rows(statement.axis, many=False)}"
    if isinstance(statement, language.When):
        return "if the option is set"
    if isinstance(statement, language.Cut):
        return "for each piece of the call"
    if isinstance(statement, language.MatMul):
        m, n, k = (rows(axis) for axis in (statement.m, statement.n, statement.k))
        return f"multiply {m} x {n} over {k}"
    if isinstance(statement, language.Exp | language.Tanh | language.Random):
        return f"{WORDS[type(statement)]} of {' x '.join(rows(axis) for axis in statement.axes)}"
    if isinstance(statement, language.Load):
        later = "" if statement.after_first is None else ", but not for the first"
        return f"load {statement.tensor.name}{later}"
    if isinstance(statement, language.Accumulate):
        return f"add to {statement.tensor.name} in HBM"
    if isinstance(statement, language.Hold):
        return f"keep {statement.tensor.name} on chip"
    if isinstance(statement, language.Lookup | language.Store | language.Fill):
        return f"{WORDS[type(statement)]} {statement.tensor.name}"
    return ""  # a mark of a feature that the call lacks
