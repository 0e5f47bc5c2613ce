"""Evaluation of a formula on a block of an array with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iomodel.counting.evaluation.arithmetic import ARRAY, NeedsExactError
from iomodel.counting.evaluation.blocks import BLOCK

if TYPE_CHECKING:
    from iomodel.counting.evaluation.compiled import Compiled

Array = NDArray[Any]


class Runner:
    """A runner of formulas on blocks of arrays with NumPy."""

    block = BLOCK

    def __init__(self, compiled: Compiled, varying: Sequence[int]) -> None:
        self.compiled, self.varying = compiled, tuple(varying)

    @cached_property
    def _function(self) -> Callable[..., tuple[Any, ...]]:
        return self.compiled.function(ARRAY, self.varying)

    @property
    def plain(self) -> Runner:
        """The NumPy runner for the same arrays."""
        return self

    def extremes(self, array: Array) -> tuple[int, int]:
        """Return the least and the greatest element."""
        return int(array.min()), int(array.max())

    def divides(self, divisor: Array, number: Array, most: int) -> bool:  # noqa: ARG002
        """Check that all divisors, from 1 up, divide their numbers, which are at most `most`."""
        return not np.any(number % divisor)

    def ahead(self, inputs: Sequence[Any], wanted: Sequence[Array]) -> list[tuple[int, int]] | None:  # noqa: ARG002
        """Write values before their bounds are known, and return the ends of each varying input; None if it cannot."""
        return None

    def run(self, inputs: Sequence[Any], small: bool, wanted: Sequence[Array]) -> Sequence[Array]:  # noqa: ARG002
        """Return the values of a block whose intermediate values are known to fit."""
        arguments = list(inputs)
        for i in self.varying:
            if arguments[i].dtype == object:
                raise NeedsExactError
            arguments[i] = arguments[i].astype(np.int64, copy=False)
        return [np.asarray(value) for value in self._function(*arguments)]
