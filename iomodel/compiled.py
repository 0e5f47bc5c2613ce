"""Formulas compiled once to plain Python, and called many times.

Floors become `//`, so nothing is ever rounded. Arrays run in int64 where the result provably fits, and on Python
integers where it does not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Expr, Symbol, cse, lambdify, numbered_symbols

from iomodel.arithmetic import ARRAY, SCALAR, SIZES, NeedsExactError, Size, as_size
from iomodel.integral import Printer, integral


class Compiled:
    """Formulas over the alphabet, compiled once; call `scalars` or `arrays` as often as needed.

    Parameters
    ----------
    formulas : sequence of sympy expressions
        Formulas whose values are integers.
    inputs : sequence of Symbol, optional
        The order of the positional arguments; by default all symbols that occur, by name.

    Examples
    --------
    >>> from sympy import ceiling
    >>> from iomodel.symbols import B_r, N_q
    >>> Compiled([ceiling(N_q / B_r)]).scalars(10**12, 7)  # (N_q, B_r) after sorting: B_r, N_q
    (1,)
    """

    def __init__(self, formulas: Sequence[Expr], inputs: Sequence[Symbol] | None = None) -> None:
        known: dict[Expr, Expr] = {}
        self.formulas = [integral(formula, known) for formula in formulas]
        found = set().union(*(formula.free_symbols for formula in self.formulas), ())
        self.inputs = tuple(inputs) if inputs is not None else tuple(sorted(found, key=str))

    def _build(self, functions: Mapping[str, Any]) -> Callable[..., list[Any]]:
        printer = Printer({"fully_qualified_modules": False, "allow_unknown_functions": True})
        compiled: Callable[..., list[Any]] = lambdify(
            self.inputs, self.formulas, modules=[dict(functions)], printer=printer, cse=_cse
        )
        return compiled

    @cached_property
    def _scalar(self) -> Callable[..., list[Any]]:
        return self._build(SCALAR)

    @cached_property
    def _arrays(self) -> tuple[Callable[..., list[Any]], ...]:
        return self._build(ARRAY), self._build(SIZES)

    def scalars(self, *values: int) -> tuple[int, ...]:
        """The exact integers at one point."""
        return tuple(map(_whole, self._scalar(*values)))

    def arrays(self, *values: Any) -> tuple[Any, ...]:
        """Integers at many points at once: the inputs broadcast; int64 if it fits, else Python integers."""
        arrays = [np.asarray(value) for value in values]
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        try:
            if any(array.dtype == object for array in arrays):
                raise NeedsExactError
            results = self._in_int64(arrays)
        except NeedsExactError:
            exact = np.frompyfunc(lambda *point: self.scalars(*map(int, point)), len(arrays), 1)
            rows = np.broadcast_to(np.asarray(exact(*arrays), dtype=object), shape)
            results = [np.frompyfunc(operator.itemgetter(i), 1, 1)(rows) for i in range(len(self.formulas))]
        return tuple(np.broadcast_to(np.asarray(result), shape) for result in results)

    def _in_int64(self, arrays: list[Any]) -> list[Any]:
        fast, _ = self._arrays
        magnitudes = [np.abs(array.astype(np.float64)) for array in arrays]
        try:  # the largest of each input at once is a bound that costs next to nothing
            self._fit([magnitude.max(initial=0.0) for magnitude in magnitudes])
        except NeedsExactError:
            self._fit(magnitudes)
        return fast(*(array.astype(np.int64) for array in arrays))

    def _fit(self, magnitudes: list[Any]) -> None:
        """Raise NeedsExactError unless every result, and all on the way to it, fits into int64."""
        with np.errstate(over="ignore"):  # an infinite bound does not fit either
            for size in self._arrays[1](*(Size(magnitude, magnitude) for magnitude in magnitudes)):
                as_size(size).fit()


def _cse(formulas: Any) -> Any:
    # Integer symbols: every node left by `integral` is an integer (or a Ratio, which is opaque).
    return cse(formulas, symbols=numbered_symbols("t", integer=True), list=True)


def _whole(value: int | Fraction) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    raise ArithmeticError(f"a count is not an integer: {value}")  # a wrong formula, never a user's input
