"""Formulas as text to read: shared parts named once, in the papers' letters, every symbol explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sympy import Expr, Min, Symbol, ceiling, cse, factor_terms, numbered_symbols

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.floorsum import FloorSum
from iomodel.masks import Count
from iomodel.symbols import ALPHABET, B_c, B_r, G, N_k, N_q, s

if TYPE_CHECKING:
    from iomodel.expressions import Expressions

T_r, T_c = (Symbol(letter, integer=True, positive=True) for letter in ("T_r", "T_c"))
g, h = (Symbol(letter, integer=True, nonnegative=True) for letter in ("g", "h"))
KNOWN: dict[Expr, Symbol] = {ceiling(N_q / B_r): T_r, ceiling(N_k / B_c): T_c, Min(1, G - 1): g, Min(1, s - 1): h}
"""Trips of the two loops, as the papers call them; g is 1 where query heads share keys, h where keys are split."""
SHORT = 8
"""A shared part of at most so many operations is written out rather than named."""
UNITS = {"flops": "FLOP", "useful_flops": "FLOP", "exps": "-", "tanhs": "-", "randoms": "-"}
UNLESS_ZERO = ("atomics", "tanhs", "randoms")
"""What most algorithms have nothing of; no line says so."""
FUNCTIONS = {
    FloorSum: "FloorSum(n, m, a, b) = sum over i = 0 .. n-1 of floor((a*i + b)/m)",
    Count: "count(axis; u, v, n) = taken from the mask: tiles of u rows of the axis, of v of the other, n rows a query",
}
"""What a function that is none of everyday stands for."""


def readable(formulas: Expressions) -> str:
    """One line a quantity, then what the names in it stand for.

    The totals are the expressions themselves, not approximations: replacing every name by its definition gives back
    what :func:`iomodel.expressions` returned.

    >>> import iomodel
    >>> print(readable(iomodel.expressions("flash2")).splitlines()[3])
         reads K [elements] = B*H*N_k*T_r*d
    """
    totals = {
        **{f"reads {name}": expr for name, expr in formulas.reads.items()},
        **{f"writes {name}": expr for name, expr in formulas.writes.items()},
        **{name: expr for name, expr in formulas.quantities.items() if expr != 0 or name not in UNLESS_ZERO},
    }
    definitions, answers = shared(totals.values())
    lines = {f"{name} [{_unit(name)}]": expr for name, expr in zip(totals, answers, strict=True)}
    way = "" if formulas.direction == "forward" else f", {formulas.direction}"
    more = f", with {', '.join(formulas.features)}" if formulas.features else ""
    head = f"{find_algorithm(formulas.algorithm).title}{way}, mask {formulas.mask}{more}"
    used: set[Any] = set().union(*(expr.free_symbols for expr in [*answers, *definitions.values()]))
    letters = {str(entry.symbol): entry for entry in ALPHABET if entry.symbol in used}
    meaning = {letter: f"{entry.meaning} [{entry.unit}]" for letter, entry in letters.items()}
    blocks = [head, "", *_aligned(lines)]
    if definitions:
        blocks += ["", "where", *_aligned({str(name): expr for name, expr in definitions.items()})]
    parts = [*answers, *definitions.values()]
    blocks += [f"  {meant}" for function, meant in FUNCTIONS.items() if any(expr.has(function) for expr in parts)]
    return "\n".join([*blocks, "", "symbols", *_aligned(meaning, "  ")])


def shared(expressions: Iterable[Expr]) -> tuple[dict[Symbol, Expr], list[Expr]]:
    """The definitions of the parts that several expressions share, and the expressions in terms of them.

    Names are real, not integer, for a shared part may be a fraction: of an integer, sympy would drop the floor.
    """
    totals = list(expressions)
    counts = sorted(set().union(*(expr.atoms(Count) for expr in totals)), key=str)
    named = {count: Symbol(f"c_{i}", integer=True, nonnegative=True) for i, count in enumerate(counts, 1)} | KNOWN
    found, answers = cse(
        [factor_terms(expr).xreplace(named) for expr in totals], symbols=numbered_symbols("x", real=True)
    )
    inlined: dict[Symbol, Expr] = {}
    definitions: dict[Symbol, Expr] = {}
    for name, expr in found:
        part = expr.xreplace(inlined)
        if part.count_ops() <= SHORT:
            inlined[name] = part
            continue
        sign = -1 if part.could_extract_minus_sign() else 1
        letter = Symbol(f"x_{len(definitions) + 1}", real=True)
        definitions[letter] = sign * part
        inlined[name] = sign * letter
    answers = [factor_terms(expr.xreplace(inlined)) for expr in answers]
    used: set[Any] = set().union(*(expr.free_symbols for expr in [*answers, *definitions.values()]))
    return {**{letter: expr for expr, letter in named.items() if letter in used}, **definitions}, answers


def _unit(name: str) -> str:
    return "B" if name.endswith("_bytes") else UNITS.get(name, "elements")


def _aligned(rows: Mapping[str, Any], sign: str = " = ") -> list[str]:
    width = max(map(len, rows), default=0) + 2
    return [f"{name:>{width}}{sign}{value}" for name, value in rows.items()]
