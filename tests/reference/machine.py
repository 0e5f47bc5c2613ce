"""The two-level memory the reference kernels run on: it counts what is moved, held and computed.

The model is that of FlashAttention (Dao et al. 2022, arXiv:2205.14135, section 2.1): a large HBM, a small
on-chip SRAM, and kernels that move every operand explicitly between the two. Counts are in elements.
"""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Width = Literal["io", "fp32"]


class SRAMOverflow(MemoryError):  # noqa: N818
    """More elements are live on chip than the capacity allows."""


class HBM:
    """Off-chip memory: named arrays, with every element moved in either direction counted."""

    def __init__(self) -> None:
        self.arrays: dict[str, FloatArray] = {}
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.live = 0
        self.peak = 0

    def alloc(self, name: str, shape: tuple[int, ...], data: FloatArray | None = None) -> None:
        """Allocate a tensor; without data it holds NaN, so what is never stored shows in the output."""
        if name in self.arrays:
            raise ValueError(f"{name} is already in HBM")
        self.arrays[name] = np.full(shape, np.nan) if data is None else np.array(data, dtype=np.float64)
        self.live += self.arrays[name].size
        self.peak = max(self.peak, self.live)

    def free(self, name: str) -> None:
        """Give a tensor's elements back."""
        self.live -= self.arrays.pop(name).size

    def load(self, name: str, index: Any) -> FloatArray:
        """Copy a slice on chip; the slice's real size is counted."""
        values: FloatArray = self.arrays[name][index].copy()
        self.reads[name] += values.size
        return values

    def store(self, name: str, index: Any, values: FloatArray | float) -> None:
        """Write a slice; its size in HBM is counted, even where the value is one broadcast constant."""
        array = self.arrays[name]
        self.writes[name] += array[index].size
        array[index] = values


class SRAM:
    """On-chip memory of one thread block; buffers are static, so each has its full tile's size."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.buffers: dict[str, tuple[int, Width]] = {}
        self.io = 0
        self.fp32 = 0
        self.states: set[tuple[int, int]] = set()

    def alloc(self, name: str, shape: tuple[int, ...], width: Width) -> FloatArray:
        """Reserve a buffer and return it, full of NaN so that computing on what was not loaded shows."""
        if name in self.buffers:
            raise ValueError(f"{name} is already on chip")
        size = math.prod(shape)
        live = self.io + self.fp32 + size
        if self.capacity is not None and live > self.capacity:
            raise SRAMOverflow(f"{name} brings {live} elements on chip, over {self.capacity}")
        self.buffers[name] = size, width
        self._add(size, width)
        self.states.add((self.io, self.fp32))
        return np.full(shape, np.nan)

    def free(self, *names: str) -> None:
        """Give the named buffers back, or all of them when none is named: the thread block is over."""
        for name in names or tuple(self.buffers):
            size, width = self.buffers.pop(name)
            self._add(-size, width)

    def _add(self, size: int, width: Width) -> None:
        if width == "io":
            self.io += size
        else:
            self.fp32 += size


@dataclass(frozen=True)
class Run:
    """What one run computed and what it cost, over all batches and heads."""

    O: FloatArray  # [batch, heads, q_len, value_dim]
    LSE: FloatArray | None  # [batch, heads, q_len]
    reads: Counter[str]  # elements from HBM, by tensor; a tensor never read counts 0
    writes: Counter[str]  # elements to HBM, by tensor
    flops: int  # of the matrix products: 2 m n k each
    exps: int
    sram_states: frozenset[tuple[int, int]]  # distinct (io, fp32) live elements reached on chip
    hbm_peak: int  # most elements allocated at once

    @property
    def sram_peak(self) -> int:
        """Most elements live on chip at once."""
        return max(io + fp32 for io, fp32 in self.sram_states)

    def sram_bytes(self, io_size: int) -> int:
        """Most bytes live on chip at once, when an element of the workload's type has io_size bytes."""
        return max(io * io_size + fp32 * 4 for io, fp32 in self.sram_states)


class Machine:
    """HBM with the inputs in it, an empty SRAM, and the counters of arithmetic."""

    def __init__(self, Q: FloatArray, K: FloatArray, V: FloatArray, capacity: int | None) -> None:
        self.hbm = HBM()
        self.sram = SRAM(capacity)
        self.flops = 0
        self.exps = 0
        for name, data in (("Q", Q), ("K", K), ("V", V)):
            self.hbm.alloc(name, data.shape, data)

    def matmul(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """The product a b, at 2 m n k operations."""
        self.flops += 2 * a.shape[0] * a.shape[1] * b.shape[1]
        return a @ b

    def exp(self, x: FloatArray) -> FloatArray:
        """Exponential of each element; masked ones count, for the hardware evaluates them too."""
        self.exps += x.size
        return np.exp(x)

    def result(self, LSE: FloatArray | None = None) -> Run:
        """Collect the counts, and O from HBM."""
        hbm, sram = self.hbm, self.sram
        if sram.buffers:
            raise ValueError(f"still on chip at the end: {sorted(sram.buffers)}")
        return Run(
            O=hbm.arrays["O"],
            LSE=LSE,
            reads=hbm.reads,
            writes=hbm.writes,
            flops=self.flops,
            exps=self.exps,
            sram_states=frozenset(sram.states),
            hbm_peak=hbm.peak,
        )
