"""Formulas compiled once to plain Python, and called many times.

Floors become `//`, so nothing is ever rounded. Arrays run in int64 where the result provably fits, and on Python
integers where it does not (:mod:`iomodel.arrays.engine`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from sympy import Expr, Symbol

from iomodel.arithmetic import SCALAR, SIZES, Size
from iomodel.arrays.engine import Seen, evaluated
from iomodel.generated import function
from iomodel.integral import integral


class Compiled:
    """Formulas over the alphabet, compiled once; call `scalars` or `arrays` as often as needed.

    Parameters
    ----------
    formulas : sequence of sympy expressions
        Formulas whose values are integers.
    inputs : sequence of Symbol, optional
        The order of the positional arguments; by default all symbols that occur, by name.
    same : mapping of Symbol to Symbol, optional
        Symbols that have the value of another, which stands for both.

    Examples
    --------
    >>> from sympy import ceiling
    >>> from iomodel.symbols import B_r, N_q
    >>> Compiled([ceiling(N_q / B_r)]).scalars(10**12, 7)  # (N_q, B_r) after sorting: B_r, N_q
    (1,)
    """

    def __init__(
        self,
        formulas: Sequence[Expr],
        inputs: Sequence[Symbol] | None = None,
        same: Mapping[Symbol, Symbol] | None = None,
    ) -> None:
        known: dict[Expr, Expr] = {}
        self.formulas = [integral(formula, known).xreplace(dict(same or {})) for formula in formulas]
        found = set().union(*(formula.free_symbols for formula in self.formulas), ())
        self.inputs = tuple(inputs) if inputs is not None else tuple(sorted(found, key=str))

    @cached_property
    def _scalar(self) -> Callable[..., tuple[int | Fraction, ...]]:
        return function(self.formulas, self.inputs, SCALAR)

    @cached_property
    def sizes(self) -> Callable[..., tuple[int | Size, ...]]:
        """The formulas on bounds of magnitude."""
        return function(self.formulas, self.inputs, SIZES)

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Room for what is compiled for arrays."""
        return {}

    def scalars(self, *values: int) -> tuple[int, ...]:
        """The exact integers at one point."""
        return tuple(map(_whole, self._scalar(*values)))

    def arrays(self, *values: Any, engine: str = "auto", seen: Seen | None = None) -> tuple[Any, ...]:
        """Integers at many points at once: the inputs broadcast; int64 if it fits, else Python integers."""
        return tuple(evaluated(self, values, engine, seen))


def _whole(value: int | Fraction) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    raise ArithmeticError(f"a count is not an integer: {value}")  # a wrong formula, never a user's input
