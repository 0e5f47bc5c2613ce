"""Integer expressions of the numbers of a call, written in Python and C++ and evaluated on arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Columns = Mapping[str, Any]
"""Numbers of calls by name, single or arrays."""


@dataclass(frozen=True)
class Term:
    """An expression without negative intermediate values, so that both languages divide alike."""

    text: str
    value: Callable[[Columns], Any]
    atomic: bool = True

    def __add__(self, other: Term | int) -> Term:
        return _joined(self, "+", other, operator.add)

    def __sub__(self, other: Term | int) -> Term:
        return _joined(self, "-", other, operator.sub)

    def __mul__(self, other: Term | int) -> Term:
        return _joined(self, "*", other, operator.mul)

    def __floordiv__(self, other: Term | int) -> Term:
        return _joined(self, "//", other, operator.floordiv)

    def __mod__(self, other: Term | int) -> Term:
        return _joined(self, "%", other, operator.mod)

    def tiles(self, size: Term | int) -> Term:
        """Count the tiles of a size that cover as many rows."""
        return (self + (size - 1)) // size

    @property
    def cpp(self) -> str:
        """The expression in C++."""
        return self.text.replace("//", "/")


def _joined(left: Term, sign: str, right: Term | int, join: Callable[[Any, Any], Any]) -> Term:
    other = right if isinstance(right, Term) else Term(str(right), lambda _: right)
    words = (part.text if part.atomic else f"({part.text})" for part in (left, other))
    return Term(sign.join(words), lambda columns: join(left.value(columns), other.value(columns)), atomic=False)


def variable(letter: str) -> Term:
    """Return a number of the call."""
    return Term(letter, lambda columns: columns[letter])


q, k, d, g, r, n, m, c = map(variable, "qkdgrnmc")
LETTERS: Mapping[str, str] = {
    "q": "q_len",
    "k": "kv_len",
    "d": "head_dim",
    "g": "heads // kv_heads",
    "r": "q_len * g",
    "n": "batch * heads",
    "m": "batch * kv_heads",
    "c": "causal",
}
"""Letters of the written functions, with what they stand for."""


def blocks(rows: int) -> Term:
    """Count the query tiles of all heads."""
    return Term(f"B{rows}", (n * q.tiles(rows)).value)


def packed_blocks(rows: int) -> Term:
    """Count the query tiles of heads that share keys and a tile."""
    return Term(f"P{rows}", (m * r.tiles(rows)).value)


def counted(features: Iterable[tuple[str, tuple[int, ...]]]) -> dict[str, Term]:
    """Return the counts of blocks that features name, which a written function computes once."""
    found = {}
    for name, numbers in sorted({*features}):
        if name in ("blocks", "last wave"):
            found[blocks(numbers[0]).text] = n * q.tiles(numbers[0])
        elif name in ("packed blocks", "packed last wave"):
            found[packed_blocks(numbers[0]).text] = m * r.tiles(numbers[0])
    return found


FEATURES: Mapping[str, Callable[..., Term]] = {
    "queries": lambda: q,
    "keys": lambda: k,
    "head_dim": lambda: d,
    "group": lambda: g,
    "packed rows": lambda: r,
    "heads": lambda: n,
    "key heads": lambda: m,
    "causal": lambda: c,
    "past": lambda: k - q,
    "all keys": lambda: m * k,
    "all queries": lambda: n * q,
    "packing": lambda: (r * 9 * q.tiles(128) - 1) // (q * 10 * r.tiles(128)),
    "blocks": blocks,
    "packed blocks": packed_blocks,
    "last wave": lambda rows, places: blocks(rows) % places,
    "packed last wave": lambda rows, places: packed_blocks(rows) % places,
    "last keys": lambda rows: (k + (rows - 1)) % rows,
}
"""Quantities that a rule compares with a number. `packing` is positive where packed rows fill tiles of 128 better by a
tenth, the rule of :func:`iomodel.solving.question.underfilled` for what packs."""


def letters_of(calls: Columns) -> dict[str, Any]:
    """Return the values of the letters for calls."""
    group = calls["heads"] // calls["kv_heads"]
    return {
        "q": calls["q_len"], "k": calls["kv_len"], "d": calls["head_dim"], "g": group, "r": calls["q_len"] * group,
        "n": calls["batch"] * calls["heads"], "m": calls["batch"] * calls["kv_heads"], "c": calls["causal"] * 1,
    }  # fmt: skip


def candidates(rows: Sequence[int], keys: Sequence[int], units: int) -> list[tuple[str, tuple[int, ...]]]:
    """List the features that a tree may ask, for tiles of these sizes on so many SMs."""
    plain = [(name, ()) for name in FEATURES if not FEATURES[name].__code__.co_argcount]
    waves = [(size, units * many) for size in rows for many in (1, 2, 3)]
    return [
        *plain,
        *((name, (size,)) for name in ("blocks", "packed blocks") for size in rows),
        *((name, wave) for name in ("last wave", "packed last wave") for wave in waves),
        *(("last keys", (size,)) for size in keys),
    ]
