"""What runs a formula on a block of an array, by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iomodel.arithmetic import ARRAY, NeedsExactError
from iomodel.arrays.blocks import BLOCK
from iomodel.generated import function

if TYPE_CHECKING:
    from iomodel.compiled import Compiled

Array = NDArray[Any]


class Runner:
    """NumPy on blocks."""

    block = BLOCK

    def __init__(self, compiled: Compiled, varying: Sequence[int]) -> None:
        self.compiled, self.varying = compiled, tuple(varying)

    @cached_property
    def _function(self) -> Callable[..., tuple[Any, ...]]:
        arrays = [self.compiled.inputs[i] for i in self.varying]
        return function(self.compiled.formulas, self.compiled.inputs, ARRAY, arrays)

    @property
    def plain(self) -> Runner:
        """NumPy for the same arrays."""
        return self

    def extremes(self, array: Array) -> tuple[int, int]:
        """The least and the greatest."""
        return int(array.min()), int(array.max())

    def divides(self, divisor: Array, number: Array, most: int) -> bool:  # noqa: ARG002
        """Whether all of these divisors, from 1 up, divide their numbers, which are `most` at most."""
        return not np.any(number % divisor)

    def run(self, inputs: Sequence[Any], small: bool, wanted: Sequence[Array]) -> Sequence[Array]:  # noqa: ARG002
        """The values where all is known to fit."""
        given = list(inputs)
        for i in self.varying:
            if given[i].dtype == object:
                raise NeedsExactError
            given[i] = given[i].astype(np.int64, copy=False)
        return [np.asarray(value) for value in self._function(*given)]
