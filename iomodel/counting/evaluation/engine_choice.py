"""Engines that run formulas on blocks of arrays: NumPy, or machine code once its compilation pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iomodel.counting.evaluation.arithmetic import ARRAY, FLOAT_SAFE, NeedsExactError
from iomodel.counting.evaluation.blocks import BLOCK, blocks, part_of
from iomodel.errors import InputError

if TYPE_CHECKING:
    from iomodel.counting.evaluation.compiled import Compiled

Array = NDArray[Any]
BACKENDS = ("auto", "numpy", "numba")
WORTH = 2**19
"""Points asked of a formula, with those of earlier calls, from which it is compiled.

Operations per point raise the gain and the price alike, so that points alone decide. Measured on formulas of traffic
(`benchmarks/arrays.py`): 0.2 to 0.6 s of compilation against 10 to 70 ns a point, even after some ten million points.
A call of a twentieth of that is seldom the last one, and its compilation hardly noticed."""
WARM = 2**14
"""Least points of a call that machine code takes."""
TUNED = 2**20
"""Least points of a call for which NumPy gets a formula rewritten for the arrays at hand, by sympy."""
IN_L1 = 2**13
"""Elements of which some arrays of floats fit the nearest cache of a core: three times as fast as a block."""
_CHOOSING = Lock()


class Runner:
    """A runner of formulas on blocks of arrays with NumPy."""

    block = BLOCK

    def __init__(self, compiled: Compiled, varying: Sequence[int], tuned: bool = False) -> None:
        self.compiled, self.varying, self.tuned = compiled, tuple(varying), tuned

    @cached_property
    def _function(self) -> Callable[..., tuple[Any, ...]]:
        return (self.compiled.tuned if self.tuned else self.compiled.function)(ARRAY, self.varying)

    @property
    def plain(self) -> Runner:
        """The NumPy runner for the same arrays."""
        return self

    def divides(self, divisor: Array, number: Array, most: int) -> bool:
        """Check that all divisors, from 1 up, divide their numbers, which are at most `most`."""
        if most >= FLOAT_SAFE:
            return not np.any(number % divisor)
        for part in blocks(np.broadcast_shapes(divisor.shape, number.shape), IN_L1):
            quotient = part_of(number, part) / part_of(divisor, part)  # in floats, exactly: none rounds to an integer
            if np.any(quotient != np.rint(quotient)):
                return False
        return True

    def ahead(self, inputs: Sequence[Any], wanted: Sequence[Array]) -> list[tuple[int, int]] | None:  # noqa: ARG002
        """Write values before their bounds are known, and return the ends of each array input; None if it cannot."""
        return None

    def run(self, inputs: Sequence[Any], small: bool, wanted: Sequence[Array]) -> Sequence[Array]:  # noqa: ARG002
        """Return the values of a block whose intermediate values are known to fit."""
        arguments = list(inputs)
        for i in self.varying:
            if arguments[i].dtype == object:
                raise NeedsExactError
            arguments[i] = arguments[i].astype(np.int64, copy=False)
        return [np.asarray(value) for value in self._function(*arguments)]


def runner_for(compiled: Compiled, varying: tuple[int, ...], points: int, engine: str) -> Runner:
    """Return the requested engine, or the faster one; it is built once for each choice of array inputs."""
    if engine == "numba" and not numba_is_there():
        raise InputError("engine: 'numba' given, which is not installed; try: pip install 'iomodel[fast]'")
    with _CHOOSING:
        asked = compiled.memo[varying] = compiled.memo.get(varying, 0) + points
        wanted = engine == "numba" or (engine == "auto" and points >= WARM and asked >= WORTH and numba_is_there())
        machine = wanted and "Ratio" not in compiled.text  # a quotient that is no integer needs Python's
        key = machine, points >= TUNED and not machine, varying
        runner: Runner | None = compiled.memo.get(key)
        if runner is None:
            runner = compiled.memo[key] = _made(compiled, *key)
    return runner


def _made(compiled: Compiled, machine: bool, tuned: bool, varying: tuple[int, ...]) -> Runner:
    if not machine:
        return Runner(compiled, varying, tuned)
    from iomodel.counting.evaluation.numba_runner import MachineCode

    return MachineCode(compiled, varying)


@cache
def numba_is_there() -> bool:
    """Check that the extra `fast` is installed."""
    return find_spec("numba") is not None
