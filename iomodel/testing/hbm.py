"""Off-chip memory that counts every moved element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.testing.widths import WIDTHS, Elements, FloatArray, Width, known_shape, known_width


class HBM:
    """Off-chip memory of named arrays, with every element moved in either direction counted.

    Attributes
    ----------
    arrays : dict of tensor name to array
        Current allocations; direct access is not counted.
    widths : dict of tensor name to width
        Width of every tensor ever allocated.
    reads, writes : Counter of tensor name to int
        Moved elements [elements].
    atomics : int
        Atomic additions [elements]; each is also counted as a read and a write.
    live : dict of width to int
        Current allocation [elements].
    states : set of tuple of int
        Every allocation state reached, by width [elements].

    Examples
    --------
    >>> hbm = HBM()
    >>> hbm.alloc("K", (8, 2), [[1.0, 2.0]] * 8)
    >>> hbm.load("K", slice(6, 9)).shape  # a ragged tile has its real size
    (2, 2)
    >>> hbm.alloc("O", (4,))
    >>> hbm.store("O", slice(None), 0.0)
    >>> dict(hbm.reads), dict(hbm.writes)
    ({'K': 4}, {'O': 4})
    """

    def __init__(self) -> None:
        self.arrays: dict[str, FloatArray] = {}
        self.widths: dict[str, Width] = {}
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.atomics = 0
        self.live = dict.fromkeys(WIDTHS, 0)
        self.states: set[Elements] = set()

    def alloc(self, name: str, shape: Sequence[int], data: ArrayLike | None = None, width: Width = "io") -> None:
        """Allocate a tensor, filled with NaN by default so that elements never stored show in the output.

        Parameters
        ----------
        name : str
            Name of the tensor, preferably one used by `iomodel.cost`.
        shape : tuple of int
            Size of each axis [elements].
        data : array of that shape, optional
            Initial content, not counted, such as an input.
        width : {"io", "kv", "fp32", "int32", "int64", "bool"}
            Width of an element; "io" is the workload's dtype.

        Raises
        ------
        InputError
            The name is in use, or the data have another shape.
        UnknownNameError
            The width does not exist.
        """
        if name in self.arrays:
            raise InputError(f"{name} is already in HBM; allowed: another name, or free({name!r}) first")
        shape, width = known_shape(name, shape), known_width(width)
        with _named(name):
            array = np.full(shape, np.nan) if data is None else np.array(data, dtype=np.float64)
        if array.shape != shape:
            raise InputError(f"{name}: data of shape {array.shape} given; allowed: {shape}, the shape of the tensor")
        self.arrays[name], self.widths[name] = array, width
        self.live[width] += array.size
        self.states.add(tuple(self.live.values()))

    def free(self, name: str) -> None:
        """Free a tensor; raise UnknownNameError if it does not exist."""
        size = self._array(name).size
        self.live[self.widths[name]] -= size
        del self.arrays[name]

    def load(self, name: str, index: Any, counted: str | None = None) -> FloatArray:
        """Copy a slice on chip and count its actual size.

        Parameters
        ----------
        name : str
            The tensor.
        index : NumPy index
            Part to load; slices are clipped to the tensor.
        counted : str, optional
            Name to count under, if different.

        Raises
        ------
        UnknownNameError, InputError
            The tensor does not exist, or the index is out of bounds.
        """
        values: FloatArray = self._part(name, index).copy()
        self.reads[counted or name] += values.size
        self.widths.setdefault(counted or name, self.widths[name])
        return values

    def store(self, name: str, index: Any, values: ArrayLike) -> None:
        """Write a slice and count its size in HBM, even for a broadcast constant.

        Raises
        ------
        UnknownNameError, InputError
            The tensor does not exist, the index is out of bounds, or the values have another shape than the slice.
        """
        size = self._part(name, index).size
        with _named(name):
            self.arrays[name][index] = values
        self.writes[name] += size

    def add(self, name: str, index: Any, values: ArrayLike, atomic: bool = True) -> None:
        """Add to a slice: one read and one write per element, and one atomic addition if `atomic`.

        An index may name each element only once. Raises the same errors as :meth:`store`.
        """
        size = self._part(name, index).size
        with _named(name):
            self.arrays[name][index] += values
        for counter in (self.reads, self.writes):
            counter[name] += size
        self.atomics += size if atomic else 0

    def _array(self, name: str) -> FloatArray:
        if name not in self.arrays:
            raise UnknownNameError("tensor in HBM", name, self.arrays)
        return self.arrays[name]

    def _part(self, name: str, index: Any) -> Any:
        array = self._array(name)
        try:
            return array[index]
        except IndexError as error:
            raise InputError(f"{name}: shape {array.shape}, and {shown(index)} given as an index: {error}") from None


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the tensor in errors about its values."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: {error}") from None
