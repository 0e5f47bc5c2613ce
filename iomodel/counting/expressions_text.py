"""Formulas as readable text in the letters of the papers, with named shared parts and a legend of the symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sympy import Expr, Max, Min, Symbol, ceiling, cse, factor_terms, numbered_symbols

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.bands import Count
from iomodel.counting.quantities import QUANTITIES, unit_of
from iomodel.nests.alphabet import ALPHABET
from iomodel.nests.floor_sum_node import FloorSum
from iomodel.nests.symbols import B_c, B_r, G, N_k, N_q, s

if TYPE_CHECKING:
    from iomodel.counting.expressions import Expressions

T_r, T_c = (Symbol(letter, integer=True, positive=True) for letter in ("T_r", "T_c"))
g, h = (Symbol(letter, integer=True, nonnegative=True) for letter in ("g", "h"))
SHORT = 8
"""Most operations of a shared part that is written out instead of named."""


class Quick:
    """An extremum of a formula to be printed: it compares numbers alone, where sympy compares all arguments."""

    @classmethod
    def _is_connected(cls, x: Expr, y: Expr) -> Any:
        if not (x.is_number and y.is_number):
            return False
        larger = super()._is_connected(x, y)  # type: ignore[misc]
        return EXTREMA.get(larger, larger)


EXTREMA: dict[type, type] = {kind: type(kind.__name__, (Quick, kind), {}) for kind in (Max, Min)}
"""Names of the classes are printed."""
Few = EXTREMA[Min]
KNOWN: dict[Expr, Symbol] = {ceiling(N_q / B_r): T_r, ceiling(N_k / B_c): T_c, Few(1, G - 1): g, Few(1, s - 1): h}
"""Trips of the two loops in the letters of the papers; g is 1 where query heads share keys, h where keys are split."""
RARE = tuple(name for name, entry in QUANTITIES.items() if entry.listed == "nonzero")
FUNCTIONS = {
    FloorSum: "FloorSum(n, m, a, b) = sum over i = 0 .. n-1 of floor((a*i + b)/m)",
    Count: "count(axis; u, v, n) = taken from the mask: tiles of u rows of the axis, of v of the other, n rows a query",
}
"""Definitions of the uncommon functions."""


def readable(formulas: Expressions) -> str:
    """Write one line per quantity, then the definitions of the names in these lines.

    The totals are the expressions themselves, not approximations: replacing every name by its definition gives back
    what :func:`iomodel.expressions` returned.

    >>> import iomodel
    >>> print(readable(iomodel.expressions("flash2")).splitlines()[3])
         reads K [elements] = B*H*N_k*T_r*d
    """
    totals = {
        **{f"reads {name}": expr for name, expr in formulas.reads.items()},
        **{f"writes {name}": expr for name, expr in formulas.writes.items()},
        **{name: expr for name, expr in formulas.quantities.items() if expr != 0 or name not in RARE},
    }
    definitions, reduced = shared(totals.values())
    lines = {f"{name} [{unit_of(name)}]": expr for name, expr in zip(totals, reduced, strict=True)}
    direction = "" if formulas.direction == "forward" else f", {formulas.direction}"
    more = f", with {', '.join(formulas.features)}" if formulas.features else ""
    algorithm = find_algorithm(formulas.algorithm)
    seen = formulas.mask if isinstance(formulas.mask, str) else repr(formulas.mask)
    mask = f", mask {seen}" if algorithm.answers == "attention" else ""
    head = f"{algorithm.title}{direction}{mask}{more}"
    used: set[Any] = set().union(*(expr.free_symbols for expr in [*reduced, *definitions.values()]))
    letters = {str(entry.symbol): entry for entry in ALPHABET if entry.symbol in used}
    meaning = {letter: f"{entry.meaning} [{entry.unit}]" for letter, entry in letters.items()}
    blocks = [head, "", *_aligned(lines)]
    if definitions:
        blocks += ["", "where", *_aligned({str(name): expr for name, expr in definitions.items()})]
    parts = [*reduced, *definitions.values()]
    blocks += [
        f"  {definition}" for function, definition in FUNCTIONS.items() if any(expr.has(function) for expr in parts)
    ]
    return "\n".join([*blocks, "", "symbols", *_aligned(meaning, "  ")])


def factored_text(expr: Expr) -> str:
    """Write a formula with the common factors of its terms in front."""
    return str(factor_terms(quick(expr)))


def shared(expressions: Iterable[Expr]) -> tuple[dict[Symbol, Expr], list[Expr]]:
    """Return definitions for the parts that several expressions share, and the expressions in terms of these names.

    Names are real, not integer, since a shared part may be a fraction: sympy would drop the floor of an integer.
    """
    totals = [quick(expr) for expr in expressions]
    counts = sorted(set().union(*(expr.atoms(Count) for expr in totals)), key=str)
    named = {count: Symbol(f"c_{i}", integer=True, nonnegative=True) for i, count in enumerate(counts, 1)} | KNOWN
    parts, reduced = cse(
        [factor_terms(expr).xreplace(named) for expr in totals], symbols=numbered_symbols("x", real=True)
    )
    inlined: dict[Symbol, Expr] = {}
    definitions: dict[Symbol, Expr] = {}
    for name, expr in parts:
        part = expr.xreplace(inlined)
        if part.count_ops() <= SHORT:
            inlined[name] = part
            continue
        sign = -1 if part.could_extract_minus_sign() else 1
        letter = Symbol(f"x_{len(definitions) + 1}", real=True)
        definitions[letter] = sign * part
        inlined[name] = sign * letter
    reduced = [factor_terms(expr.xreplace(inlined)) for expr in reduced]
    used: set[Any] = set().union(*(expr.free_symbols for expr in [*reduced, *definitions.values()]))
    return {**{letter: expr for expr, letter in named.items() if letter in used}, **definitions}, reduced


@lru_cache(maxsize=16_384)
def quick(expr: Expr) -> Expr:
    """Replace the extrema of a formula by those of :class:`Quick`."""
    args = tuple(map(quick, expr.args))
    if expr.func in EXTREMA:
        return EXTREMA[expr.func](*args)
    return expr if all(new is old for new, old in zip(args, expr.args, strict=True)) else expr.func(*args)


def _aligned(rows: Mapping[str, Any], sign: str = " = ") -> list[str]:
    width = max(map(len, rows), default=0) + 2
    return [f"{name:>{width}}{sign}{value}" for name, value in rows.items()]
