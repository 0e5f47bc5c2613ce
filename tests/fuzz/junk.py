"""Values that no function wants: of the wrong type, out of every range, or hostile."""

from __future__ import annotations

import datetime
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, NoReturn
from unittest.mock import MagicMock

import numpy as np
import sympy

import iomodel


class Hostile:
    """Raises whatever is asked of it."""

    def _no(self, *_: object) -> NoReturn:
        raise RuntimeError("hostile")

    __repr__ = __str__ = __index__ = __int__ = __float__ = __len__ = __iter__ = __bool__ = _no
    __getitem__ = __contains__ = __array__ = __fspath__ = __call__ = __lt__ = __le__ = _no


class HostileEq:
    """Cannot be compared or hashed."""

    def __eq__(self, other: object) -> NoReturn:
        raise RuntimeError("hostile")

    __hash__ = None


class Liar(dict[str, Any]):
    """Says that it is empty, and is not."""

    def __len__(self) -> int:
        return 0


class Broken(Mapping[str, Any]):
    """A mapping whose values cannot be had."""

    def __getitem__(self, key: str) -> NoReturn:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(["block_q"])

    def __len__(self) -> int:
        return 1


class Lines(str):
    """A text that shows itself in two lines."""

    def __repr__(self) -> str:
        return "a\nb\x1b[31m"


class Int(int):
    """An integer that does not show itself."""

    def __repr__(self) -> str:
        raise ValueError("hostile")


def _cyclic() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def _deep(depth: int) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = [made]
    return made


INTEGERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 255, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**18, 10**18 + 1, 10**30),
    *(10**400, -(10**400), 10**5000, True, False),
)
FLOATS: tuple[Any, ...] = (
    *(0.0, -0.0, 0.5, 1.0, 1.5, -1.0, 8.0, 1e-320, 1e-9, 1e18, 1e300, 1.7976931348623157e308),
    *(math.nan, math.inf, -math.inf),
)
TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\0",
    "\n",
    "a\nb",
    "\r",
    "\x1b[31mred\x1b[0m",
    "\x07",
    "\x7f",
    "\x85",
    "\u2028",
    "\u202e",
    "\ufeff",
    "\ud800",
    "🙂",
    "٣",
    "½",
    "é" * 300,
    "a" * 20_000,
    "{0}",
    "{}",
    "{",
    "%s",
    "%(x)d",
    "[bold]",
    "[/]",
    "[red",
    "$HOME",
    "`id`",
    *("nan", "inf", "1e999", "-1", "0x10", "1_000", "8k", "None", "true", "null", "0", "1", "3.5"),
    "flash2 ",
    "FLASH2",
    "flash",
    "caus\u0430l",
    "../..",
    "/",
    ".",
    "..",
    "~",
    "/dev/null",
    "/dev/zero",
    "./no.yaml",
    "x\0.yaml",
    "a/" * 3000 + "x.yaml",
    "C:\\x.yaml",
    "x.npy",
    "@",
    "@/dev/null",
    "-",
    "--",
    "--help",
    "=",
    ",",
    "1,,2",
    ";",
    "'",
    '"',
    *("__class__", "__import__('os').system('false')", "lambda: 0", "10**10**10", "q_len", "block_q", "causal", "full"),
)
BYTES: tuple[Any, ...] = (b"", b"x", b"\xff\xfe", bytearray(b"x"), memoryview(b"x"))
CONTAINERS: tuple[Callable[[], Any], ...] = (
    *(list, tuple, dict, set, frozenset, deque, _cyclic, lambda: _deep(50), lambda: _deep(5000), Liar, Broken),
    lambda: [None],
    lambda: [1, 2],
    lambda: [0],
    lambda: [1.5],
    lambda: ["a"],
    lambda: [[1], [2, 3]],
    lambda: (1, "x"),
    lambda: {"block_q": 0},
    lambda: {1: 2},
    lambda: {None: None},
    lambda: {"\n": 1},
    lambda: {"a": {"b": []}},
    lambda: {(): 1},
    lambda: range(3),
    lambda: range(0),
    lambda: range(10**12),
    lambda: iter([1, 2]),
    lambda: (x for x in "ab"),
    {}.keys,
    lambda: [10**400, 1],
    lambda: [2**63],
    lambda: [True, False],
    lambda: [math.nan],
    lambda: [Hostile()],
    lambda: {"x": Hostile()},
)
ARRAYS: tuple[Callable[[], Any], ...] = (
    lambda: np.int8(5),
    lambda: np.uint64(2**64 - 1),
    lambda: np.int64(-1),
    lambda: np.int64(16),
    lambda: np.float32("nan"),
    lambda: np.float64(4.0),
    lambda: np.bool_(True),
    lambda: np.datetime64("2020"),
    lambda: np.timedelta64(3),
    lambda: np.str_("x"),
    lambda: np.array(3),
    lambda: np.array([]),
    lambda: np.array([1, 2]),
    lambda: np.array([[1, 2]]),
    lambda: np.zeros((0, 3), int),
    lambda: np.array([1, None]),
    lambda: np.array(["a"]),
    lambda: np.array([1j]),
    lambda: np.array([1.5]),
    lambda: np.array([np.nan]),
    lambda: np.array([2**63], np.uint64),
    lambda: np.array([True]),
    lambda: np.array([1], np.int8),
    lambda: np.array([1], ">i4"),
    lambda: np.zeros(2, [("a", "i4")]),
    lambda: np.array([10**400]),
    lambda: np.ma.masked_array([1, 2], [True, False]),
    lambda: np.array([b"x"]),
    *(lambda: np.array([1, 2], np.float16), lambda: np.ones((1,) * 20, int), lambda: np.array([Fraction(1, 2)])),
)
OBJECTS: tuple[Callable[[], Any], ...] = (
    object,
    Hostile,
    HostileEq,
    lambda: Lines("x"),
    lambda: Lines("flash2"),
    lambda: Int(8),
    MagicMock,
    lambda: int,
    lambda: len,
    lambda: iomodel,
    lambda: iomodel.cost,
    lambda: ValueError("x\ny"),
    lambda: NotImplemented,
    lambda: ...,
    Path,
    lambda: Path("x\0"),
    lambda: Path("no.yaml"),
    lambda: Decimal("nan"),
    lambda: Decimal(8),
    lambda: Fraction(1, 3),
    lambda: 1j,
    lambda: datetime.date(2020, 1, 1),
    lambda: sympy.Symbol("x"),
    lambda: sympy.Integer(8),
    lambda: sympy.oo,
    lambda: sympy.nan,
    lambda: sympy.Rational(1, 2),
    lambda: sympy.Float(8),
    lambda: slice(1),
    lambda: iomodel.Window(left=2),
    lambda: type("T", (), {}),
    lambda: iomodel.Attention(q_len=4, head_dim=4),
    lambda: iomodel.Documents([3]),
    lambda: iomodel.BlockMask([[1]], 4, 4),
    lambda: iomodel.VarlenAttention(q_lens=[4, 5], head_dim=4),
    lambda: iomodel.hardware("sim-a100"),
    iomodel.Layout,
)


def junk(rng: Random) -> Any:
    """One of all of these."""
    kind = rng.random()
    if kind < 0.06:
        return None
    if kind < 0.32:
        return rng.choice(INTEGERS)
    if kind < 0.46:
        return rng.choice(FLOATS)
    if kind < 0.66:
        return rng.choice(TEXTS) if rng.random() < 0.85 else scribble(rng)
    if kind < 0.68:
        return rng.choice(BYTES)
    return rng.choice(rng.choice((CONTAINERS, ARRAYS, OBJECTS)))()


def scribble(rng: Random, most: int = 12) -> str:
    """A text of any characters."""
    ranges = ((32, 126), (0, 31), (160, 0x24F), (0x4E00, 0x4E80), (0x1F600, 0x1F640), (0xD800, 0xDFFF))
    weights = (12, 2, 2, 1, 1, 1)
    spans = rng.choices(ranges, weights, k=rng.randint(0, most))
    return "".join(chr(rng.randint(*span)) for span in spans)
