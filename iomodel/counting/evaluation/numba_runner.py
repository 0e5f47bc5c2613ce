"""Machine code for formulas, compiled by Numba: one loop over a block, without intermediate arrays.

Needs the extra `fast`. Operands that are exact in double precision are divided in floats, since processors vectorise
float division and not integer division.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numba
import numpy as np

from iomodel.common.arithmetic import floor_sum
from iomodel.counting.evaluation.arithmetic import FLOAT_SAFE
from iomodel.counting.evaluation.codegen import function
from iomodel.counting.evaluation.definitions import defined
from iomodel.counting.evaluation.integral import SumOfFloors
from iomodel.counting.evaluation.numpy_runner import Array, Runner

compiled_function: Callable[[Callable[..., Any]], Any] = numba.njit(error_model="numpy", nogil=True)
_floor_sum = compiled_function(floor_sum)


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
    """A runner of one formula as a compiled loop over the elements of a block."""

    block = 2**17

    @cached_property
    def plain(self) -> Runner:
        """The NumPy runner for the same arrays."""
        return Runner(self.compiled, self.varying)

    @cached_property
    def _exact(self) -> Callable[..., None]:
        return self._kernel(_floor_div, _ceil_div)

    @cached_property
    def _in_floats(self) -> Callable[..., None]:
        return self._kernel(_floor_div_in_floats, _ceil_div_in_floats)

    @cached_property
    def _with_ends(self) -> Callable[..., None]:
        return self._kernel(_floor_div_in_floats, _ceil_div_in_floats, ends=True)

    def _kernel(self, floor_div: Any, ceil_div: Any, ends: bool = False) -> Callable[..., None]:
        calls = {"FloorDiv": floor_div, "CeilDiv": ceil_div, "Maximum": max, "Minimum": min, "SumOfFloors": _floor_sum}
        arrays = [self.compiled.inputs[i] for i in self.varying]
        formulas = compiled_function(function(self.compiled.formulas, self.compiled.inputs, calls, arrays, True))
        names = [f"x{i}" for i in range(len(self.compiled.inputs))]
        elements = ", ".join(f"{name}[i]" if n in self.varying else name for n, name in enumerate(names))
        lines = [f"def kernel({', '.join([*['ends'] * ends, 'out', *names])}):"]
        seen = [names[i] for i in self.varying] if ends else []
        lines += [f"    low_{name} = high_{name} = {name}[0]" for name in seen]
        lines += ["    for i in range(out.size):", f"        out[i] = formulas({elements})[0]"]
        for name in seen:
            lines += [
                f"        low_{name} = min(low_{name}, {name}[i])",
                f"        high_{name} = max(high_{name}, {name}[i])",
            ]
        lines += [f"    ends[{place}] = low_{name}, high_{name}" for place, name in enumerate(seen)]
        text = "\n".join(lines)
        made: Callable[..., None] = compiled_function(defined(text, {"formulas": formulas}))
        return made

    def extremes(self, array: Array) -> tuple[int, int]:
        """Return the least and the greatest element."""
        if array.dtype != np.int64 or not array.flags.c_contiguous:
            return super().extremes(array)
        low, high = _extremes(array.reshape(-1))
        return int(low), int(high)

    def divides(self, divisor: Array, number: Array, most: int) -> bool:
        """Check that all divisors divide their numbers, which are at most `most`."""
        alike = number.shape == divisor.shape and number.dtype == divisor.dtype == np.int64
        if not alike or not (number.flags.c_contiguous and divisor.flags.c_contiguous) or most >= FLOAT_SAFE:
            return super().divides(divisor, number, most)
        return bool(_divides(divisor.reshape(-1), number.reshape(-1)))

    @cached_property
    def _without_harm(self) -> bool:
        """True if any inputs can be run: a division in floats never traps, a sum of floors may never end."""
        return not self.compiled.formulas[0].has(SumOfFloors)

    def ahead(self, inputs: Sequence[Any], wanted: Sequence[Array]) -> list[tuple[int, int]] | None:
        """Write values before their bounds are known, and return the ends of each varying input; None if it cannot."""
        (out,) = wanted
        alike = all(
            inputs[i].shape == out.shape and inputs[i].dtype == np.int64 and inputs[i].flags.c_contiguous
            for i in self.varying
        )
        if not (self._without_harm and alike and out.dtype == np.int64):
            return None
        ends = np.empty((len(self.varying), 2), dtype=np.int64)
        arguments = [value.reshape(-1) if i in self.varying else value for i, value in enumerate(inputs)]
        self._with_ends(ends, out.reshape(-1), *arguments)
        return [(int(low), int(high)) for low, high in ends]

    def run(self, inputs: Sequence[Any], small: bool, wanted: Sequence[Array]) -> Sequence[Array]:
        """Return the values of a block whose intermediate values are known to fit."""
        (out,) = wanted
        if out.dtype != np.int64:
            out = np.empty(out.shape, dtype=np.int64)
        arguments = list(inputs)
        for i in self.varying:
            whole = arguments[i] if arguments[i].shape == out.shape else np.broadcast_to(arguments[i], out.shape)
            arguments[i] = np.ascontiguousarray(whole, dtype=np.int64).reshape(-1)
        kernel = self._in_floats if small else self._exact
        kernel(out.reshape(-1), *arguments)
        return [out]
