"""Formulas as machine code, made by Numba: one loop over a block, without arrays on the way.

Needs the extra `fast`. Quotients of operands that are exact in double precision are taken there, which runs several at
a time; integer division does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from iomodel.arithmetic import FLOAT_SAFE
from iomodel.arrays.runners import Array, Runner
from iomodel.generated import defined, function

if TYPE_CHECKING:
    pass

compiled_function: Callable[[Callable[..., Any]], Any] = numba.njit(error_model="numpy", nogil=True)


@compiled_function
def _extremes(array: Any) -> Any:
    low = high = array[0]
    for i in range(array.size):
        low = min(low, array[i])
        high = max(high, array[i])
    return low, high


@compiled_function
def _divides(divisor: Any, number: Any) -> Any:
    rest = 0
    for i in range(number.size):
        rest |= number[i] - _floor_div_in_floats(number[i], divisor[i]) * divisor[i]
    return rest == 0


@compiled_function
def _floor_sum(n: int, m: int, a: int, b: int) -> int:
    """:func:`iomodel.floorsum.floor_sum` in 64 bits."""
    total = 0
    while n > 0:
        quotient = a // m
        offset = b // m
        a -= quotient * m
        b -= offset * m
        total += quotient * (n * (n - 1) // 2) + offset * n
        top = a * n + b
        if top < m:
            break
        n = top // m
        b = top - n * m
        m, a = a, m
    return total


@compiled_function
def _floor_div(a: int, b: int) -> int:
    return a // b


@compiled_function
def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


@compiled_function
def _floor_div_in_floats(a: int, b: int) -> Any:
    return np.int64(np.floor(np.float64(a) / np.float64(b)))


@compiled_function
def _ceil_div_in_floats(a: int, b: int) -> Any:
    return np.int64(np.ceil(np.float64(a) / np.float64(b)))


class MachineCode(Runner):
    """One formula as a loop over the elements of a block."""

    block = 2**17

    @cached_property
    def plain(self) -> Runner:
        """NumPy for the same arrays."""
        return Runner(self.compiled, self.varying)

    @cached_property
    def _exact(self) -> Callable[..., None]:
        return self._kernel(_floor_div, _ceil_div)

    @cached_property
    def _in_floats(self) -> Callable[..., None]:
        return self._kernel(_floor_div_in_floats, _ceil_div_in_floats)

    def _kernel(self, floor_div: Any, ceil_div: Any) -> Callable[..., None]:
        calls = {"FloorDiv": floor_div, "CeilDiv": ceil_div, "Maximum": max, "Minimum": min, "SumOfFloors": _floor_sum}
        arrays = [self.compiled.inputs[i] for i in self.varying]
        formulas = compiled_function(function(self.compiled.formulas, self.compiled.inputs, calls, arrays, True))
        names = [f"x{i}" for i in range(len(self.compiled.inputs))]
        elements = ", ".join(f"{name}[i]" if n in self.varying else name for n, name in enumerate(names))
        text = f"""def kernel({", ".join(["out", *names])}):
    for i in range(out.size):
        out[i] = formulas({elements})[0]"""
        made: Callable[..., None] = compiled_function(defined(text, {"formulas": formulas}))
        return made

    def extremes(self, array: Array) -> tuple[int, int]:
        """The least and the greatest."""
        if array.dtype != np.int64 or not array.flags.c_contiguous:
            return super().extremes(array)
        low, high = _extremes(array.reshape(-1))
        return int(low), int(high)

    def divides(self, divisor: Array, number: Array, most: int) -> bool:
        """Whether all of these divisors divide their numbers, which are `most` at most."""
        alike = number.shape == divisor.shape and number.dtype == divisor.dtype == np.int64
        if not alike or not (number.flags.c_contiguous and divisor.flags.c_contiguous) or most >= FLOAT_SAFE:
            return super().divides(divisor, number, most)
        return bool(_divides(divisor.reshape(-1), number.reshape(-1)))

    def run(self, inputs: Sequence[Any], small: bool, wanted: Sequence[Array]) -> Sequence[Array]:
        """The values where all is known to fit."""
        (out,) = wanted
        if out.dtype != np.int64:
            out = np.empty(out.shape, dtype=np.int64)
        given = list(inputs)
        for i in self.varying:
            whole = given[i] if given[i].shape == out.shape else np.broadcast_to(given[i], out.shape)
            given[i] = np.ascontiguousarray(whole, dtype=np.int64).reshape(-1)
        kernel = self._in_floats if small else self._exact
        kernel(out.reshape(-1), *given)
        return [out]
