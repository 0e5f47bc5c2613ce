"""Off-chip memory that counts every element moved."""

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
    """Off-chip memory: named arrays, with every element moved in either direction counted.

    Attributes
    ----------
    arrays : dict of tensor name to array
        What is allocated now. To look at it counts nothing.
    widths : dict of tensor name to width
        Of every tensor that there was.
    reads, writes : Counter of tensor name to int
        What was moved [elements].
    atomics : int
        What was added atomically [elements]; each is one of the reads and one of the writes too.
    live : dict of width to int
        What is allocated now [elements].
    states : set of tuple of int
        Every allocation that was reached, by width [elements].

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
        """Allocate a tensor; without data it holds NaN, so what is never stored shows in the output.

        Parameters
        ----------
        name : str
            The tensor; best one of the names that `iomodel.cost` counts under.
        shape : tuple of int
            [elements] along each axis.
        data : array of that shape, optional
            Put there without being counted, as an input is.
        width : {"io", "kv", "fp32", "int32", "int64", "bool"}
            How wide an element is: "io" is the workload's dtype.

        Raises
        ------
        InputError
            The name is taken, or the data have another shape.
        UnknownNameError
            There is no such width.
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
        """Give a tensor's elements back; UnknownNameError where there is no such tensor."""
        size = self._array(name).size
        self.live[self.widths[name]] -= size
        del self.arrays[name]

    def load(self, name: str, index: Any, counted: str | None = None) -> FloatArray:
        """Copy a slice on chip; the slice's real size is counted.

        Parameters
        ----------
        name : str
            The tensor.
        index : whatever NumPy indexes with
            Which part; slices are clipped to the tensor.
        counted : str, optional
            Another name to count under.

        Raises
        ------
        UnknownNameError, InputError
            There is no such tensor, or the index is not inside it.
        """
        values: FloatArray = self._part(name, index).copy()
        self.reads[counted or name] += values.size
        self.widths.setdefault(counted or name, self.widths[name])
        return values

    def store(self, name: str, index: Any, values: ArrayLike) -> None:
        """Write a slice; its size in HBM is counted, even where the value is one broadcast constant.

        Raises
        ------
        UnknownNameError, InputError
            There is no such tensor, the index is not inside it, or the values do not have the shape of the slice.
        """
        size = self._part(name, index).size
        with _named(name):
            self.arrays[name][index] = values
        self.writes[name] += size

    def add(self, name: str, index: Any, values: ArrayLike, atomic: bool = True) -> None:
        """Add to a slice: one read and one write an element, and one atomic unless only one may add.

        An index may name an element once only. Raises what :meth:`store` raises.
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
    """Say which tensor it was whose values do not fit."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: {error}") from None
