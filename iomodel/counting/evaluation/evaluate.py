"""Evaluation of formulas to exact integers of any size, or to NumPy arrays of integers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Add, Expr, Integer, Max, Min, Mul, Pow, Rational, Symbol, ceiling, floor, fraction, preorder_traversal

from iomodel.common.keywords import strict
from iomodel.common.validation import as_mapping
from iomodel.counting.bands import Count
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.nests.floor_sum_node import FloorSum
from iomodel.nests.symbols import BY_NAME, NAME_OF, by_name

KNOWN = (Symbol, Integer, Rational, Add, Mul, Pow, floor, ceiling, Max, Min, FloorSum)
"""Allowed nodes of a formula; no other node is written as Python."""


@strict
def evaluate(formula: Expr, values: Mapping[str | Symbol, Any]) -> Any:
    """Evaluate a formula exactly at integers, or at arrays of integers.

    Parameters
    ----------
    formula : sympy expression
        A count over the alphabet of :mod:`iomodel.nests.symbols`.
    values : mapping
        A positive integer or an integer array for every symbol of the formula, by Python name
        (``"block_q"``), letter (``"B_r"``) or symbol.

    Returns
    -------
    int or numpy.ndarray
        int64 if every value fits, else Python integers in an object array; floats if the formula is a ratio of counts,
        such as the intensity.

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
    >>> iomodel.theory.evaluate(trips, {**point, "block_q": [64, 128, 256]})
    array([16777216,  8388608,  4194304])
    """
    if not isinstance(formula, Expr):
        raise InputError(f"formula: {shown(formula)} given; allowed: a sympy expression of iomodel.expressions")
    if formula.has(Count):
        raise InputError("formula: has counts that depend on the data of a mask; allowed: iomodel.cost on a workload")
    values = by_name(as_mapping("values", values, "{'q_len': 4096}"))
    numbers = {_symbol(key): _integers(_symbol(key), value) for key, value in values.items()}
    numerator, denominator = fraction(formula)
    if denominator.free_symbols:  # a ratio of counts, such as intensity
        below = evaluate(denominator, values)
        if not np.all(below):
            raise InputError(f"formula: {shown(formula)} divides by 0 at these values; allowed: other values")
        return evaluate(numerator, values) / below
    compiled = _compiled(formula)
    for symbol in compiled.inputs:
        if symbol not in numbers:
            raise InputError(f"{NAME_OF.get(symbol, symbol)}: no value given for {symbol}; the formula needs it")
    point = [numbers[symbol] for symbol in compiled.inputs]
    try:
        if all(isinstance(value, int) for value in point):
            return compiled.scalars(*point)[0]
        return compiled.arrays(*point)[0]
    except ArithmeticError as error:  # the value is no count
        raise InputError(f"formula: {shown(formula)} at these values: {error}; allowed: counts") from None


@lru_cache(maxsize=256)
def _compiled(formula: Expr) -> Compiled:
    for node in preorder_traversal(formula):
        if not isinstance(node, KNOWN):
            allowed = "symbols, integers, sums, products, powers, floor, ceiling, Min, Max"
            raise InputError(f"formula: {shown(node)} in it; allowed: {allowed}")
    return Compiled([formula])


def _symbol(key: str | Symbol) -> Symbol:
    if isinstance(key, Symbol):
        return key
    if key not in BY_NAME:
        raise UnknownNameError("symbol", key, BY_NAME)
    return BY_NAME[key]


def _integers(symbol: Symbol, value: Any) -> Any:
    name = NAME_OF.get(symbol, str(symbol))
    try:
        array = np.asarray(value)
    except (ValueError, MemoryError):  # ragged; nested too deep; a long range
        raise InputError(f"{name}: {shown(value)} given; allowed: integers, or arrays of them") from None
    whole = array.dtype.kind in "iu" or (
        array.dtype == object and all(isinstance(x, int) and not isinstance(x, bool) for x in array.flat)
    )
    least = 0 if symbol.is_positive is not True else 1
    if not whole or (array.size and array.min() < least):
        raise InputError(f"{name}: {shown(value)} given; allowed: integers from {least} up, or arrays of them")
    return int(array) if array.ndim == 0 else array
