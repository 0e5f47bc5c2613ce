"""Exact evaluation of formulas at many points, in blocks, with 64-bit integers where these provably suffice.

A bound of every result, and of all on the way to a division or comparison, follows from the least and the greatest of
each input (:class:`~iomodel.arithmetic.Size`). Blocks within bounds that are known to do run at once; another has its
own looked at; where that does not do, it goes element by element, and the few that do not fit are counted one by one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.counting.evaluation.arithmetic import NeedsExactError, Size, as_size
from iomodel.counting.evaluation.blocks import Part, aligned, blocks, part_of
from iomodel.counting.evaluation.engine_choice import Array, Runner, runner_for

if TYPE_CHECKING:
    from iomodel.counting.evaluation.compiled import Compiled

Ends = tuple[int, int]
"""The least and the greatest value."""
Seen = Callable[[Part, Mapping[int, Ends], Runner], None]
"""A callback before the use of a part, with the ends of each array input and the runner for other arrays."""


def evaluated(
    compiled: Compiled, values: Sequence[Any], engine: str, seen: Seen | None, constants: bool = False
) -> list[Array]:
    """Evaluate formulas at broadcast integers: int64 where every value fits, else Python integers in object arrays.

    With `constants`, a formula that no array enters may remain a number.
    """
    arrays = [np.asarray(value) for value in values]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    varying = tuple(i for i, array in enumerate(arrays) if array.size != 1)
    if not varying:
        exact = compiled.scalars(*(int(array.item()) for array in arrays))
        return [narrowed(np.full(shape, value, dtype=object)) for value in exact]
    operands: list[Any] = [
        aligned(array, len(shape)) if i in varying else int(array.item()) for i, array in enumerate(arrays)
    ]
    runner = runner_for(compiled, varying, prod(shape), engine)
    bounds = compiled.memo.setdefault(InputBounds, InputBounds(compiled))
    if constants and prod(shape) <= runner.block:
        pairs = {i: extremes(operands[i]) for i in varying}
        low, high = ([pairs[i][side] if i in pairs else value for i, value in enumerate(operands)] for side in (0, 1))
        numbers = _at_once(runner.plain, operands, bounds.known(low, high), ())
        if numbers is not None:
            return [value.item() if value.ndim == 0 else value for value in numbers]
    results: list[Array] = [np.empty(shape, dtype=np.int64) for _ in range(compiled.outputs)]
    fixed = {i: operand for i, operand in enumerate(operands) if i not in varying}
    for part in blocks(shape, runner.block):
        inputs, low, high = list(operands), list(operands), list(operands)
        for i in varying:
            inputs[i] = part_of(operands[i], part)
        wanted = [result[part] for result in results]
        # One pass over the memory where the bounds of earlier blocks are likely to hold; else the values are discarded.
        ends = runner.ahead(inputs, wanted) if bounds.small and bounds.hold(fixed, fixed) else None
        written = ends is not None
        ends = ends or [extremes(inputs[i]) for i in varying]
        for i, pair in zip(varying, ends, strict=True):
            low[i], high[i] = pair
        if seen is not None:
            seen(part, dict(zip(varying, ends, strict=True)), runner)
        if written and bounds.hold(dict(enumerate(low)), dict(enumerate(high))):
            continue
        outputs = _at_once(runner, inputs, bounds.known(low, high), wanted)
        if outputs is None:
            outputs = _one_by_one(compiled, runner, inputs, wanted)
        for i, values_there in enumerate(outputs):
            if values_there is wanted[i]:
                continue
            if values_there.dtype == object and results[i].dtype != object:
                results[i] = results[i].astype(object)
            results[i][part] = values_there
    return [narrowed(result) for result in results]


def extremes(array: Array) -> Ends:
    """Return the least and the greatest element."""
    return int(array.min()), int(array.max())


class InputBounds:
    """Bounds of the inputs of a formula within which 64 bits suffice; the bounds widen with each block."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.widest: tuple[list[int], list[int], bool] | None = None

    @property
    def small(self) -> bool:
        """True if values within the bounds may be divided in floats."""
        return self.widest is not None and self.widest[2]

    def hold(self, low: Mapping[int, int], high: Mapping[int, int]) -> bool:
        """Check that these inputs, by place, are within the bounds."""
        if self.widest is None:
            return False
        least, most, _ = self.widest
        return all(least[i] <= low[i] and high[i] <= most[i] for i in low)

    def known(self, low: list[int], high: list[int]) -> tuple[bool, bool]:
        """Check that all values within these bounds fit, and that they may be divided in floats."""
        if self.widest is None:
            wide = low, high
        else:
            if self.hold(dict(enumerate(low)), dict(enumerate(high))):
                return True, self.small
            least, most, _ = self.widest
            # Powers of two as bounds, so that later blocks of similar sizes need no new bounds.
            ends = zip(most, high, strict=True)
            wide = list(map(min, least, low)), [old if new <= old else 1 << new.bit_length() for old, new in ends]
        fits, small = self._fit(*wide)
        if fits and (self.widest is None or small >= self.widest[2]):
            self.widest = *wide, small
            return True, small
        return (fits, small) if wide == (low, high) else self._fit(low, high)

    def _fit(self, low: list[int], high: list[int]) -> tuple[bool, bool]:
        fits, small = _fitting(self.compiled, low, high)
        return bool(fits), bool(small)


def _fitting(compiled: Compiled, low: Sequence[Any], high: Sequence[Any]) -> tuple[Any, Any]:
    """Mark the elements whose results and intermediate values fit, and whose dividends are exact in floats."""
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite bound does not fit either
        ends = [(_real(least), _real(most)) for least, most in zip(low, high, strict=True)]
        inputs = [
            Size(
                np.maximum(np.abs(least), np.abs(most)),
                np.maximum(least, 0.0),
                sign=int(np.min(least, initial=0.0) >= 0),
            )
            for least, most in ends
        ]
        sizes = [as_size(size).fitting() for size in compiled.sizes(*inputs)]
    fits, small = True, True
    for size in sizes:
        fits, small = fits & size.fits, small & size.small
    return fits, small


def _real(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value.astype(np.float64)


def _at_once(
    runner: Runner, inputs: Sequence[Any], known: tuple[bool, bool], wanted: Sequence[Array]
) -> Sequence[Array] | None:
    """Return the values of a block if 64 bits suffice, else None."""
    fits, small = known
    try:
        return runner.run(inputs, small, wanted) if fits else None
    except (NeedsExactError, OverflowError):  # a part of the formula is no integer; a number beyond 64 bits
        return None


def _one_by_one(compiled: Compiled, runner: Runner, inputs: Sequence[Any], wanted: Sequence[Array]) -> Sequence[Array]:
    """Return the values of a block, with separate bounds for each element."""
    shape = wanted[0].shape
    fits: Any = False
    if all(isinstance(operand, int) or operand.dtype != object for operand in inputs):
        fits, small = _fitting(compiled, inputs, inputs)
        if np.all(fits) and (outputs := _at_once(runner, inputs, (True, bool(np.all(small))), wanted)) is not None:
            return outputs
    columns = [np.broadcast_to(np.asarray(operand), shape).ravel() for operand in inputs]
    chosen = np.broadcast_to(fits, shape).ravel()
    results = [np.empty(chosen.size, dtype=object) for _ in wanted]
    outputs = _at_once(runner.plain, [column[chosen] for column in columns], (bool(chosen.any()), False), results)
    for i in np.flatnonzero(~chosen) if outputs is not None else range(chosen.size):
        for result, value in zip(results, compiled.scalars(*(int(column[i]) for column in columns)), strict=True):
            result[i] = value
    for result, values in zip(results, outputs or (), strict=False):
        result[chosen] = values
    return [narrowed(result).reshape(shape) for result in results]


def narrowed(array: Array) -> Array:
    """Convert an array to int64 if every value fits."""
    if array.dtype != object:
        return array
    fits = all(-(2**63) <= value < 2**63 for value in array.flat)
    return array.astype(np.int64) if fits else array


def exact_ratio(over: Array, under: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the quotients of counts, each rounded to the nearest float."""
    for array in (over, under):
        if array.dtype == object or (array.size and array.max() >= 2**53):  # the float would be rounded already
            return np.asarray(
                np.frompyfunc(operator.truediv, 2, 1)(over.astype(object), under.astype(object)), dtype=float
            )
    return np.asarray(over / under, dtype=float)
