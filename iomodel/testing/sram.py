"""On-chip memory that tracks its use."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from iomodel.errors import InputError, IOModelError, UnknownNameError
from iomodel.testing.widths import WIDTHS, Elements, FloatArray, Width, known_shape, known_width


class SRAMOverflowError(IOModelError, MemoryError):
    """More elements are live on chip than the capacity allows."""


class SRAM:
    """On-chip memory of one thread block; buffers are static, with the size of a full tile.

    Parameters
    ----------
    capacity : int, optional
        Capacity [elements]; None for no limit.

    Attributes
    ----------
    buffers : dict of name to (int, width)
        Size [elements] and width of every buffer on chip.
    live : dict of width to int
        Current use [elements].
    states : set of tuple of int
        Every allocation state reached, by width [elements].

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
        """Reserve a buffer filled with NaN, so that use of data never loaded shows in the output.

        Parameters
        ----------
        name : str
            Name of the buffer.
        shape : tuple of int
            Shape of a full tile [elements], even for a ragged last tile.
        width : {"io", "kv", "fp32", "int32", "int64", "bool"}
            Width of an element; accumulators and statistics are "fp32".

        Raises
        ------
        InputError
            The name is in use.
        SRAMOverflowError
            The buffer does not fit.
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
        """Free the named buffers, or all buffers at the end of a thread block.

        Raises UnknownNameError if a buffer is not on chip.
        """
        for name in names:
            if name not in self.buffers:
                raise UnknownNameError("buffer on chip", name, self.buffers)
        for name in names or tuple(self.buffers):
            size, width = self.buffers.pop(name)
            self.live[width] -= size
