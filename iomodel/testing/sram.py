"""On-chip memory that knows how full it is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from iomodel.errors import InputError, IOModelError, UnknownNameError
from iomodel.testing.widths import WIDTHS, Elements, FloatArray, Width, known_shape, known_width


class SRAMOverflowError(IOModelError, MemoryError):
    """More elements are live on chip than the capacity allows."""


class SRAM:
    """On-chip memory of one thread block; buffers are static, so each has its full tile's size.

    Parameters
    ----------
    capacity : int, optional
        How much fits [elements]; None is no limit.

    Attributes
    ----------
    buffers : dict of name to (int, width)
        The size [elements] and width of what is on chip now.
    live : dict of width to int
        What is on chip now [elements].
    states : set of tuple of int
        Every filling that was reached, by width [elements].

    Examples
    --------
    >>> sram = SRAM(capacity=100)
    >>> tile = sram.alloc("K", (16, 4))
    >>> sram.alloc("V", (16, 4))
    Traceback (most recent call last):
    ...
    iomodel.testing.sram.SRAMOverflowError: V: brings 128 elements on chip; allowed: up to the capacity of 100
    """

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.buffers: dict[str, tuple[int, Width]] = {}
        self.live = dict.fromkeys(WIDTHS, 0)
        self.states: set[Elements] = set()

    def alloc(self, name: str, shape: Sequence[int], width: Width = "io") -> FloatArray:
        """Reserve a buffer and return it, full of NaN so that computing on what was not loaded shows.

        Parameters
        ----------
        name : str
            What to call it.
        shape : tuple of int
            The full tile [elements], where the last one is ragged too.
        width : {"io", "kv", "fp32", "int32", "int64", "bool"}
            How wide an element is: accumulators and statistics are "fp32".

        Raises
        ------
        InputError
            The name is taken.
        SRAMOverflowError
            It does not fit.
        """
        if name in self.buffers:
            raise InputError(f"{name} is already on chip; allowed: another name, or free({name!r}) first")
        shape, width = known_shape(name, shape), known_width(width)
        size = math.prod(shape)
        live = sum(self.live.values()) + size
        if self.capacity is not None and live > self.capacity:
            raise SRAMOverflowError(
                f"{name}: brings {live} elements on chip; allowed: up to the capacity of {self.capacity}"
            )
        self.buffers[name] = size, width
        self.live[width] += size
        self.states.add(tuple(self.live.values()))
        return np.full(shape, np.nan)

    def free(self, *names: str) -> None:
        """Give the named buffers back, or all of them when none is named: the thread block is over.

        UnknownNameError where one is not on chip.
        """
        for name in names:
            if name not in self.buffers:
                raise UnknownNameError("buffer on chip", name, self.buffers)
        for name in names or tuple(self.buffers):
            size, width = self.buffers.pop(name)
            self.live[width] -= size
