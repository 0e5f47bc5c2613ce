"""Machine code for formulas, compiled by Numba: one loop over a block, without intermediate arrays.

Needs the extra `fast`. Operands that are exact in double precision are divided in floats, since processors vectorise
float division and not integer division.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from threading import Lock
from typing import Any

import numba
import numpy as np
from numba import types

from iomodel.counting.evaluation.arithmetic import FLOAT_SAFE
from iomodel.counting.evaluation.definitions import defined
from iomodel.counting.evaluation.engine_choice import Array, Runner
from iomodel.counting.evaluation.outputs import body_of

OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
compiled_function: Callable[[Callable[..., Any]], Any] = numba.njit(**OPTIONS)
_COMPILING = Lock()
"""Two threads that ask one formula at once compile it once."""


def _sum_of_floors(n: Any, m: Any, a: Any, b: Any) -> Any:
    """Sum floors as `floor_sum`; after one step no number is negative, so that division may be unsigned."""
    if n <= 0:
        return 0
    quotient, offset = a // m, b // m
    total = quotient * ((n * (n - 1)) >> 1) + offset * n
    n, m, a, b = np.uint64(n), np.uint64(m), np.uint64(a - quotient * m), np.uint64(b - offset * m)
    while True:
        top = a * n + b
        if top < m:
            return total
        n = top // m
        m, a, b = a, m, top - n * m
        quotient, offset = a // m, b // m
        a, b = a - quotient * m, b - offset * m
        total += np.int64(quotient * ((n * (n - np.uint64(1))) >> np.uint64(1)) + offset * n)


@cache
def _floor_sum() -> Any:
    return numba.njit(types.int64(*[types.int64] * 4), **OPTIONS)(_sum_of_floors)


@cache
def _divides() -> Any:
    def divides(divisor: Any, number: Any) -> Any:
        rest = 0
        for place in range(number.size):
            rest |= number[place] - math.floor(number[place] / divisor[place]) * divisor[place]
        return rest == 0

    column = types.Array(types.int64, 1, "C", readonly=True)
    return numba.njit(types.boolean(column, column), **OPTIONS)(divides)


class _InFloats(ast.NodeTransformer):
    """Divisions of integers as floors and ceilings of divisions of floats."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        match node:  # -(-a // b)
            case ast.UnaryOp(ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), over), ast.FloorDiv(), under)):
                return self._rounded("ceil", over, under)
        self.generic_visit(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.FloorDiv):
            return self._rounded("floor", node.left, node.right)
        self.generic_visit(node)
        return node

    def _rounded(self, name: str, over: ast.expr, under: ast.expr) -> ast.expr:
        return ast.Call(ast.Name(name), [ast.BinOp(self.visit(over), ast.Div(), self.visit(under))], [])


class MachineCode(Runner):
    """A runner of formulas as one compiled loop over the elements of a block."""

    block = 2**17

    @cached_property
    def plain(self) -> Runner:
        """The NumPy runner for the same arrays."""
        return Runner(self.compiled, self.varying)

    @cached_property
    def _exact(self) -> Callable[..., None]:
        return self._kernel(lambda node: node)

    @cached_property
    def _in_floats(self) -> Callable[..., None]:
        return self._kernel(_InFloats().visit)

    def _kernel(self, divided: Callable[[ast.AST], ast.AST]) -> Callable[..., None]:
        """Compile the loop that writes the outputs of a block, and the least and the greatest of each array input."""
        names, lines, results = body_of(self.compiled.text)
        text = "\n".join(
            self._loop(names, *([ast.unparse(divided(node)) for node in part] for part in (lines, results)))
        )
        columns = [
            types.Array(types.int64, 1, "C", readonly=True) if i in self.varying else types.int64
            for i in range(len(names))
        ]
        outputs = [types.int64[::1]] * len(results)
        with _COMPILING:
            calls = {"Maximum": max, "Minimum": min, "floor": math.floor, "ceil": math.ceil}
            if "SumOfFloors" in text:
                calls["SumOfFloors"] = _floor_sum()
            made: Callable[..., None] = numba.njit(types.void(types.int64[:, ::1], *outputs, *columns), **OPTIONS)(
                defined(text, calls)
            )
        return made

    def _loop(self, names: Sequence[str], lines: Sequence[str], results: Sequence[str]) -> Iterator[str]:
        arrays = [names[i] for i in self.varying]
        inputs = [f"{name}_all" if name in arrays else name for name in names]
        yield f"def kernel({', '.join(['ends', *(f'out_{k}' for k in range(len(results))), *inputs])}):"
        yield from (f"    {name}_low = {name}_high = {name}_all[0]" for name in arrays)
        yield "    for place in range(out_0.size):"
        yield from (f"        {name} = {name}_all[place]" for name in arrays)
        yield from (f"        {line}" for line in lines)
        yield from (f"        out_{k}[place] = {result}" for k, result in enumerate(results))
        yield from (f"        {name}_low = min({name}_low, {name})" for name in arrays)
        yield from (f"        {name}_high = max({name}_high, {name})" for name in arrays)
        yield from (f"    ends[{k}] = {name}_low, {name}_high" for k, name in enumerate(arrays))

    def divides(self, divisor: Array, number: Array, most: int) -> bool:
        """Check that all divisors, from 1 up, divide their numbers, which are at most `most`."""
        columns = [np.ascontiguousarray(array).reshape(-1) for array in (divisor, number)]
        if most >= FLOAT_SAFE or divisor.shape != number.shape or any(array.dtype != np.int64 for array in columns):
            return super().divides(divisor, number, most)
        with _COMPILING:
            divides = _divides()
        return bool(divides(*columns))

    @cached_property
    def _without_harm(self) -> bool:
        """True if any inputs can be run: a division in floats never traps, a sum of floors may never end."""
        return "SumOfFloors" not in self.compiled.text

    def ahead(self, inputs: Sequence[Any], wanted: Sequence[Array]) -> list[tuple[int, int]] | None:
        """Write values before their bounds are known, and return the ends of each array input; None if it cannot."""
        whole = all(
            inputs[i].shape == wanted[0].shape and inputs[i].dtype == np.int64 and inputs[i].flags.c_contiguous
            for i in self.varying
        )
        if not (self._without_harm and whole and all(out.dtype == np.int64 for out in wanted)):
            return None
        return [(int(low), int(high)) for low, high in self._filled(self._in_floats, inputs, wanted)]

    def run(self, inputs: Sequence[Any], small: bool, wanted: Sequence[Array]) -> Sequence[Array]:
        """Return the values of a block whose intermediate values are known to fit."""
        outputs = [out if out.dtype == np.int64 else np.empty(out.shape, dtype=np.int64) for out in wanted]
        self._filled(self._in_floats if small else self._exact, inputs, outputs)
        return outputs

    def _filled(self, kernel: Callable[..., None], inputs: Sequence[Any], outputs: Sequence[Array]) -> Array:
        """Write the outputs of a block, and return the ends of each array input."""
        shape, ends, arguments = outputs[0].shape, np.empty((len(self.varying), 2), dtype=np.int64), list(inputs)
        for i in self.varying:
            whole = inputs[i] if inputs[i].shape == shape else np.broadcast_to(inputs[i], shape)
            arguments[i] = np.ascontiguousarray(whole, dtype=np.int64).reshape(-1)
        kernel(ends, *(out.reshape(-1) for out in outputs), *arguments)
        return ends
