"""Formulas to numbers: exact integers of any size, or NumPy arrays of them.

A formula is compiled once to plain Python (`//` for floors, so nothing is ever rounded) and called many times.
Arrays run in int64 where the result provably fits, and on Python integers where it does not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np
from sympy import Expr, Function, Max, Min, Symbol, ceiling, cse, floor, fraction, lambdify, numbered_symbols, together
from sympy.printing.pycode import PythonCodePrinter

from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.floorsum import FloorSum, floor_sum
from iomodel.symbols import BY_NAME, NAME_OF
from iomodel.validation import LARGEST, index

_INT64_SAFE = 2**62


class FloorDiv(Function):  # type: ignore[misc]
    """floor(a / b) as one node, so that no fraction is left for the printer."""


class CeilDiv(Function):  # type: ignore[misc]
    """ceiling(a / b) as one node."""


class Ratio(Function):  # type: ignore[misc]
    """a / b where the whole formula is an integer, though a part of it may not be."""


class Maximum(Function):  # type: ignore[misc]
    """Max as an opaque node: sympy's own compares its arguments anew whenever it is rebuilt, at great length."""


class Minimum(Function):  # type: ignore[misc]
    """Min as an opaque node."""


class SumOfFloors(Function):  # type: ignore[misc]
    """FloorSum as an opaque node: rebuilt around other nodes it would simplify, to floors that no rule here sees."""


class _Printer(PythonCodePrinter):  # type: ignore[misc]
    def _print_FloorDiv(self, expr: Expr) -> str:
        return "(({})//({}))".format(*map(self._print, expr.args))

    def _print_CeilDiv(self, expr: Expr) -> str:
        return "(-(-({})//({})))".format(*map(self._print, expr.args))

    def _print_Maximum(self, expr: Expr) -> str:
        return f"maximum({', '.join(map(self._print, expr.args))})"

    def _print_Minimum(self, expr: Expr) -> str:
        return f"minimum({', '.join(map(self._print, expr.args))})"


OPAQUE = {floor: FloorDiv, ceiling: CeilDiv, Max: Maximum, Min: Minimum, FloorSum: SumOfFloors}


def _integral(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    """Rewrite floors, ceilings, extrema and fractions to opaque nodes that act on integers."""
    found = known.get(expr)
    if found is None:
        found = known[expr] = _rewritten(expr, known)
    return found


def _rewritten(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    if expr.func in (floor, ceiling):
        numerator, denominator = fraction(together(expr.args[0]))
        return OPAQUE[expr.func](_integral(numerator, known), _integral(denominator, known))
    if expr.is_Rational or expr.is_Mul or expr.is_Pow:
        numerator, denominator = fraction(expr)
        if denominator != 1:
            return Ratio(_integral(numerator, known), _integral(denominator, known))
    node = OPAQUE.get(expr.func, expr.func)
    return node(*(_integral(arg, known) for arg in expr.args)) if expr.args else expr


def _ratio(a: int, b: int) -> int | Fraction:
    quotient, rest = divmod(a, b)
    return quotient if not rest else Fraction(a, b)


def _floor_sum_array(n: Any, m: Any, a: Any, b: Any) -> Any:
    """`floor_sum` elementwise on int64 arrays."""
    n, m, a, b = (np.array(x, dtype=np.int64) for x in np.broadcast_arrays(n, m, a, b))
    total = np.zeros_like(n)
    live = n > 0
    while live.any():
        n, m = np.where(live, n, 0), np.where(live, m, 1)
        quotient, a = np.divmod(a, m)
        offset, b = np.divmod(b, m)
        total += np.where(live, quotient * (n * (n - 1) // 2) + offset * n, 0)
        top = a * n + b
        live &= top >= m
        n, b = np.divmod(top, m)
        m, a = a, m
    return total


def _ratio_array(a: Any, b: Any) -> Any:
    quotient, rest = np.divmod(a, b)
    if np.any(rest):
        raise _NeedsExactError
    return quotient


class _NeedsExactError(ArithmeticError):
    """A part of the formula does not fit int64."""


class _Size:
    """Bounds on the magnitude of an integer; running a formula on them shows whether int64 will do.

    Sums and products may wrap around, for they are exact modulo 2**64 and the bound of the final value is checked;
    only operations that compare or divide need operands that fit. Terms add up in magnitude, so that no cancellation
    hides a large value. The bounds are floats, rounded by far less than the factor of two up to int64.
    """

    __slots__ = ("bound", "least")

    def __init__(self, bound: Any, least: Any = 0.0) -> None:
        self.bound, self.least = bound, least

    def __add__(self, other: Any) -> _Size:
        return _Size(self.bound + _size(other).bound)

    def __mul__(self, other: Any) -> _Size:
        size = _size(other)
        return _Size(self.bound * size.bound, self.least * size.least)

    def __pow__(self, other: int) -> _Size:
        return _Size(self.bound**other, self.least**other)

    def __neg__(self) -> _Size:
        return self

    def __floordiv__(self, other: Any) -> _Size:
        return _Size(self.over(other) + 1)

    def __rfloordiv__(self, other: int) -> _Size:
        return _size(other) // self

    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__ = __mul__

    def over(self, divisor: Any) -> Any:
        """The bound of a quotient; both must fit, and the divisor is no 0."""
        size = _size(divisor)
        self.fit()
        size.fit()
        return self.bound / np.maximum(size.least, 1)

    def fit(self) -> None:
        """Raise unless the value fits int64 everywhere."""
        if not np.all(self.bound < _INT64_SAFE):
            raise _NeedsExactError


def _size(value: Any) -> _Size:
    return value if isinstance(value, _Size) else _Size(float(abs(value)), float(abs(value)))


def _size_floor_sum(n: Any, m: Any, a: Any, b: Any) -> _Size:
    terms, divisor, slope, offset = map(_size, (n, m, a, b))
    (terms * terms + slope * terms + offset + divisor).fit()  # whatever `_floor_sum_array` forms on its way
    return terms * ((slope * terms + offset) // divisor)


def _size_extreme(*values: Any) -> _Size:
    sizes = [_size(value) for value in values]
    for size in sizes:
        size.fit()
    return _Size(reduce(np.maximum, [size.bound for size in sizes]))


_SCALAR = {"maximum": max, "minimum": min, "SumOfFloors": floor_sum, "Ratio": _ratio}
_ARRAY = {
    "maximum": lambda *xs: reduce(np.maximum, xs),
    "minimum": lambda *xs: reduce(np.minimum, xs),
    "SumOfFloors": _floor_sum_array,
    "Ratio": _ratio_array,
}
_SIZES: dict[str, Any] = {
    "maximum": _size_extreme,
    "minimum": _size_extreme,
    "SumOfFloors": _size_floor_sum,
    "Ratio": lambda a, b: _Size(_size(a).over(b)),
}


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
    >>> from iomodel.symbols import B_r, N_q
    >>> Compiled([ceiling(N_q / B_r)]).scalars(10**12, 7)  # (N_q, B_r) after sorting: B_r, N_q
    (1,)
    """

    def __init__(self, formulas: Sequence[Expr], inputs: Sequence[Symbol] | None = None) -> None:
        known: dict[Expr, Expr] = {}
        self.formulas = [_integral(formula, known) for formula in formulas]
        found = set().union(*(formula.free_symbols for formula in self.formulas), ())
        self.inputs = tuple(inputs) if inputs is not None else tuple(sorted(found, key=str))

    def _build(self, functions: Mapping[str, Any]) -> Callable[..., list[Any]]:
        printer = _Printer({"fully_qualified_modules": False, "allow_unknown_functions": True})
        compiled: Callable[..., list[Any]] = lambdify(
            self.inputs, self.formulas, modules=[dict(functions)], printer=printer, cse=_cse
        )
        return compiled

    @cached_property
    def _scalar(self) -> Callable[..., list[Any]]:
        return self._build(_SCALAR)

    @cached_property
    def _arrays(self) -> tuple[Callable[..., list[Any]], ...]:
        return self._build(_ARRAY), self._build(_SIZES)

    def scalars(self, *values: int) -> tuple[int, ...]:
        """The exact integers at one point."""
        return tuple(map(_whole, self._scalar(*values)))

    def arrays(self, *values: Any) -> tuple[Any, ...]:
        """Integers at many points at once: the inputs broadcast; int64 if it fits, else Python integers."""
        arrays = [np.asarray(value) for value in values]
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        try:
            if any(array.dtype == object for array in arrays):
                raise _NeedsExactError
            results = self._in_int64(arrays)
        except _NeedsExactError:
            exact = np.frompyfunc(lambda *point: self.scalars(*map(int, point)), len(arrays), 1)
            rows = np.broadcast_to(np.asarray(exact(*arrays), dtype=object), shape)
            results = [np.frompyfunc(operator.itemgetter(i), 1, 1)(rows) for i in range(len(self.formulas))]
        return tuple(np.broadcast_to(np.asarray(result), shape) for result in results)

    def _in_int64(self, arrays: list[Any]) -> list[Any]:
        fast, sizes = self._arrays
        magnitudes = [np.abs(array.astype(np.float64)) for array in arrays]
        with np.errstate(over="ignore"):  # an infinite bound does not fit either
            for size in sizes(*(_Size(magnitude, magnitude) for magnitude in magnitudes)):
                _size(size).fit()
        return fast(*(array.astype(np.int64) for array in arrays))


def _cse(formulas: Any) -> Any:
    # Integer symbols: every node left by _integral is an integer (or a Ratio, which is opaque).
    return cse(formulas, symbols=numbered_symbols("t", integer=True), list=True)


def _whole(value: int | Fraction) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    raise ArithmeticError(f"a count is not an integer: {value}")  # a wrong formula, never a user's input


def evaluate(formula: Expr, values: Mapping[str | Symbol, Any]) -> Any:
    """The exact value of a formula at integers, or at arrays of integers.

    Parameters
    ----------
    formula : sympy expression
        A count over the alphabet of :mod:`iomodel.symbols`.
    values : mapping
        A positive integer or an integer array for every symbol of the formula, by Python name
        (``"block_q"``) or by symbol.

    Returns
    -------
    int or numpy.ndarray
        int64 if every value fits, else Python integers in an object array.

    Raises
    ------
    InputError
        A symbol has no value, or a value is not an integer.
    UnknownNameError
        A name is not in the alphabet.

    Examples
    --------
    >>> import iomodel
    >>> trips = iomodel.expressions("flash2").reads["K"]
    >>> point = {"batch": 1, "heads": 1, "q_len": 4096, "kv_len": 4096, "head_dim": 64}
    >>> iomodel.evaluate(trips, {**point, "block_q": [64, 128, 256]})
    array([16777216,  8388608,  4194304])
    """
    given = {_symbol(key): _integers(_symbol(key), value) for key, value in values.items()}
    compiled = _compiled(formula)
    for symbol in compiled.inputs:
        if symbol not in given:
            raise InputError(f"{NAME_OF.get(symbol, symbol)}: no value given for {symbol}; the formula needs it")
    point = [given[symbol] for symbol in compiled.inputs]
    if all(isinstance(value, int) for value in point):
        return compiled.scalars(*point)[0]
    return compiled.arrays(*point)[0]


@lru_cache(maxsize=256)
def _compiled(formula: Expr) -> Compiled:
    return Compiled([formula])


def _symbol(key: str | Symbol) -> Symbol:
    if isinstance(key, Symbol):
        return key
    if key not in BY_NAME:
        raise UnknownNameError("symbol", key, BY_NAME)
    return BY_NAME[key]


def as_integer(name: str, value: object, least: int = 1) -> int:
    """A whole number in least .. LARGEST, or InputError with the name of the field.

    >>> as_integer("block_q", 128)
    128
    >>> as_integer("block_q", 12.5)
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: block_q: 12.5 given; allowed: an integer from 1 to 1000000000000000000
    """
    whole = index(value)
    if isinstance(whole, bool) or not isinstance(whole, int) or not least <= whole <= LARGEST:
        raise InputError(f"{name}: {shown(value)} given; allowed: an integer from {least} to {LARGEST}")
    return whole


def _integers(symbol: Symbol, value: Any) -> Any:
    name = NAME_OF.get(symbol, str(symbol))
    array = np.asarray(value)
    whole = array.dtype.kind in "iu" or (
        array.dtype == object and all(isinstance(x, int) and not isinstance(x, bool) for x in array.flat)
    )
    least = 0 if symbol.is_positive is not True else 1
    if not whole or (array.size and array.min() < least):
        raise InputError(f"{name}: {shown(value)} given; allowed: integers from {least} up, or arrays of them")
    return int(array) if array.ndim == 0 else array
