"""Formulas as text to read: shared parts named once, in the papers' letters, every symbol explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sympy import Expr, Symbol, ceiling, cse, factor_terms, numbered_symbols

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.floorsum import FloorSum
from iomodel.symbols import ALPHABET, B_c, B_r, N_k, N_q

if TYPE_CHECKING:
    from iomodel.expressions import Expressions

T_r, T_c = (Symbol(letter, integer=True, positive=True) for letter in ("T_r", "T_c"))
TRIPS: dict[Expr, Symbol] = {ceiling(N_q / B_r): T_r, ceiling(N_k / B_c): T_c}
"""Trips of the two loops, which the papers call T_r and T_c."""
SHORT = 8
"""A shared part of at most so many operations is written out rather than named."""
UNITS = {"flops": "FLOP", "useful_flops": "FLOP", "exps": "-"}


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
        **formulas.quantities,
    }
    definitions, answers = shared(totals.values())
    lines = {f"{name} [{_unit(name)}]": expr for name, expr in zip(totals, answers, strict=True)}
    head = f"{find_algorithm(formulas.algorithm).title}, mask {formulas.mask}"
    used: set[Any] = set().union(*(expr.free_symbols for expr in [*answers, *definitions.values()]))
    letters = {str(entry.symbol): entry for entry in ALPHABET if entry.symbol in used}
    meaning = {letter: f"{entry.meaning} [{entry.unit}]" for letter, entry in letters.items()}
    blocks = [head, "", *_aligned(lines)]
    if definitions:
        blocks += ["", "where", *_aligned({str(name): expr for name, expr in definitions.items()})]
    if any(expr.has(FloorSum) for expr in [*answers, *definitions.values()]):
        blocks += ["  FloorSum(n, m, a, b) = sum over i = 0 .. n-1 of floor((a*i + b)/m)"]
    return "\n".join([*blocks, "", "symbols", *_aligned(meaning, "  ")])


def shared(expressions: Iterable[Expr]) -> tuple[dict[Symbol, Expr], list[Expr]]:
    """The definitions of the parts that several expressions share, and the expressions in terms of them.

    Names are real, not integer, for a shared part may be a fraction: of an integer, sympy would drop the floor.
    """
    given = [factor_terms(expr).xreplace(TRIPS) for expr in expressions]
    found, answers = cse(given, symbols=numbered_symbols("x", real=True))
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
    return {**{letter: expr for expr, letter in TRIPS.items() if letter in used}, **definitions}, answers


def _unit(name: str) -> str:
    return "B" if name.endswith("_bytes") else UNITS.get(name, "elements")


def _aligned(rows: Mapping[str, Any], sign: str = " = ") -> list[str]:
    width = max(map(len, rows), default=0) + 2
    return [f"{name:>{width}}{sign}{value}" for name, value in rows.items()]
