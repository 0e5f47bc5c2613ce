"""Integer expressions of the numbers of a call, written in Python and C++ and evaluated on arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import combinations
from typing import Any

RESIDENT = (1, 2, 3)
"""Blocks of an SM whose waves are features [-]."""
MOST_KEYS = 8
"""Key tiles that are compared with each other [-]."""
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
        for rows in numbers[::2] if name.endswith("waves") else numbers[:1]:
            if name in ("blocks", "last wave", "waves"):
                found[blocks(rows).text] = n * q.tiles(rows)
            elif name in ("packed blocks", "packed last wave", "packed waves"):
                found[packed_blocks(rows).text] = m * r.tiles(rows)
    return found


def _percent(part: Term, whole: Term) -> Term:
    return (part * 100) // whole


def _waves(count: Callable[[int], Term], rows: int, places: int, others: int, other_places: int) -> Term:
    """Compare the waves of two tiles on so many places, each as long as its rows, in per cent."""
    return _percent(count(rows).tiles(places) * rows, count(others).tiles(other_places) * others)


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
    "last rows": lambda rows: (q + (rows - 1)) % rows,
    "packed last rows": lambda rows: (r + (rows - 1)) % rows,
    "filled rows": lambda rows, others: _percent(q.tiles(rows) * rows, q.tiles(others) * others),
    "filled keys": lambda rows, others: _percent(k.tiles(rows) * rows, k.tiles(others) * others),
    "packed filled rows": lambda rows, others: _percent(r.tiles(rows) * rows, r.tiles(others) * others),
    "waves": lambda *tiles: _waves(blocks, *tiles),
    "packed waves": lambda *tiles: _waves(packed_blocks, *tiles),
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
    plain = [(name, ()) for name in FEATURES if not signature(FEATURES[name]).parameters]
    waves = [(size, units * many) for size in rows for many in RESIDENT]
    pairs, key_pairs = ([*combinations(sorted(sizes), 2)] for sizes in (rows, keys[:MOST_KEYS]))
    against = [
        (size, units * many, other, units * fewer) for size, other in pairs for many in RESIDENT for fewer in RESIDENT
        if fewer <= many
    ]  # fmt: skip
    return [
        *plain,
        *((name, (size,)) for name in ("blocks", "packed blocks") for size in rows),
        *((name, wave) for name in ("last wave", "packed last wave") for wave in waves),
        *(("last keys", (size,)) for size in keys),
        *((name, (size,)) for name in ("last rows", "packed last rows") for size in rows),
        *((name, pair) for name in ("filled rows", "packed filled rows") for pair in pairs),
        *(("filled keys", pair) for pair in key_pairs),
        *((name, both) for name in ("waves", "packed waves") for both in against),
    ]
