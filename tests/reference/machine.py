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
Width = Literal["io", "kv", "fp32", "int32", "int64", "bool"]
WIDTHS: tuple[Width, ...] = ("io", "kv", "fp32", "int32", "int64", "bool")
Elements = tuple[int, ...]  # how many of each width, in the order of WIDTHS


def in_bytes(elements: Elements, io_size: int, kv_size: int | None = None) -> int:
    """Bytes of so many elements of each width, at the sizes of the workload's type and of the cache's."""
    sizes = (io_size, io_size if kv_size is None else kv_size, 4, 4, 8, 1)
    return sum(count * size for count, size in zip(elements, sizes, strict=True))


class SRAMOverflow(MemoryError):  # noqa: N818
    """More elements are live on chip than the capacity allows."""


class HBM:
    """Off-chip memory: named arrays, with every element moved in either direction counted."""

    def __init__(self) -> None:
        self.arrays: dict[str, FloatArray] = {}
        self.widths: dict[str, Width] = {}
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.atomics = 0
        self.live = dict.fromkeys(WIDTHS, 0)
        self.states: set[Elements] = set()

    def alloc(self, name: str, shape: tuple[int, ...], data: FloatArray | None = None, width: Width = "io") -> None:
        """Allocate a tensor; without data it holds NaN, so what is never stored shows in the output."""
        if name in self.arrays:
            raise ValueError(f"{name} is already in HBM")
        self.arrays[name] = np.full(shape, np.nan) if data is None else np.array(data, dtype=np.float64)
        self.widths[name] = width
        self.live[width] += self.arrays[name].size
        self.states.add(tuple(self.live.values()))

    def free(self, name: str) -> None:
        """Give a tensor's elements back."""
        self.live[self.widths[name]] -= self.arrays.pop(name).size

    def load(self, name: str, index: Any, counted: str | None = None) -> FloatArray:
        """Copy a slice on chip; the slice's real size is counted, under another name if one is given."""
        values: FloatArray = self.arrays[name][index].copy()
        self.reads[counted or name] += values.size
        return values

    def store(self, name: str, index: Any, values: FloatArray | float) -> None:
        """Write a slice; its size in HBM is counted, even where the value is one broadcast constant."""
        array = self.arrays[name]
        self.writes[name] += array[index].size
        array[index] = values

    def add(self, name: str, index: Any, values: FloatArray, atomic: bool = True) -> None:
        """Add to a slice: one read and one write an element, and one atomic unless only one may add."""
        array = self.arrays[name]
        for counter in (self.reads, self.writes):
            counter[name] += array[index].size
        self.atomics += array[index].size if atomic else 0
        array[index] += values


class SRAM:
    """On-chip memory of one thread block; buffers are static, so each has its full tile's size."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.buffers: dict[str, tuple[int, Width]] = {}
        self.live = dict.fromkeys(WIDTHS, 0)
        self.states: set[Elements] = set()

    def alloc(self, name: str, shape: tuple[int, ...], width: Width) -> FloatArray:
        """Reserve a buffer and return it, full of NaN so that computing on what was not loaded shows."""
        if name in self.buffers:
            raise ValueError(f"{name} is already on chip")
        size = math.prod(shape)
        live = sum(self.live.values()) + size
        if self.capacity is not None and live > self.capacity:
            raise SRAMOverflow(f"{name} brings {live} elements on chip, over {self.capacity}")
        self.buffers[name] = size, width
        self.live[width] += size
        self.states.add(tuple(self.live.values()))
        return np.full(shape, np.nan)

    def free(self, *names: str) -> None:
        """Give the named buffers back, or all of them when none is named: the thread block is over."""
        for name in names or tuple(self.buffers):
            size, width = self.buffers.pop(name)
            self.live[width] -= size


@dataclass(frozen=True)
class Run:
    """What one run computed and what it cost, over all batches and heads."""

    outputs: dict[str, FloatArray]  # by name, [batch, heads, length, ...]
    reads: Counter[str]  # elements from HBM, by tensor; a tensor never read counts 0
    writes: Counter[str]  # elements to HBM, by tensor
    widths: dict[str, Width]  # of the tensors in HBM
    atomics: int  # elements added atomically; each is one of the reads and one of the writes too
    flops: int  # of the matrix products: 2 m n k each
    exps: int
    tanhs: int
    randoms: int
    sram_states: frozenset[Elements]  # distinct live elements of each width reached on chip
    hbm_states: frozenset[Elements]  # distinct allocations reached in HBM

    @property
    def O(self) -> FloatArray:  # noqa: E743 - the paper's letter
        """The output of attention."""
        return self.outputs["O"]

    @property
    def LSE(self) -> FloatArray | None:
        """The log-sum-exp of each row, if the kernel has it."""
        return self.outputs.get("LSE")

    @property
    def sram_peak(self) -> int:
        """Most elements live on chip at once."""
        return max(map(sum, self.sram_states))

    def sram_bytes(self, io_size: int, kv_size: int | None = None) -> int:
        """Most bytes live on chip at once, at these element sizes."""
        return max(in_bytes(state, io_size, kv_size) for state in self.sram_states)

    @property
    def hbm_peak(self) -> int:
        """Most elements allocated at once."""
        return max(map(sum, self.hbm_states))

    def hbm_peak_bytes(self, io_size: int, kv_size: int | None = None) -> int:
        """Most bytes allocated at once, at these element sizes."""
        return max(in_bytes(state, io_size, kv_size) for state in self.hbm_states)

    def hbm_bytes(self, io_size: int, kv_size: int | None = None) -> int:
        """Bytes that crossed the bus, at these element sizes."""
        moved = dict.fromkeys(WIDTHS, 0)
        for name, count in (self.reads + self.writes).items():
            moved[self.widths[name]] += count
        return in_bytes(tuple(moved.values()), io_size, kv_size)


class Machine:
    """HBM with the inputs in it, an empty SRAM, and the counters of arithmetic."""

    def __init__(
        self, Q: FloatArray, K: FloatArray | None, V: FloatArray | None, capacity: int | None, **more: FloatArray
    ) -> None:
        self.hbm = HBM()
        self.sram = SRAM(capacity)
        self.flops = 0
        self.exps = 0
        self.tanhs = 0
        self.randoms = 0
        for name, data in {"Q": Q, "K": K, "V": V, **more}.items():
            if data is not None:
                self.hbm.alloc(name, data.shape, data)

    def matmul(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """The product a b, at 2 m n k operations."""
        self.flops += 2 * a.shape[0] * a.shape[1] * b.shape[1]
        return a @ b

    def exp(self, x: FloatArray) -> FloatArray:
        """Exponential of each element; masked ones count, for the hardware evaluates them too."""
        self.exps += x.size
        return np.exp(x)

    def tanh(self, x: FloatArray) -> FloatArray:
        """Hyperbolic tangent of each element."""
        self.tanhs += x.size
        return np.tanh(x)

    def result(self, **outputs: FloatArray | None) -> Run:
        """Collect the counts and the outputs."""
        hbm, sram = self.hbm, self.sram
        if sram.buffers:
            raise ValueError(f"still on chip at the end: {sorted(sram.buffers)}")
        return Run(
            outputs={name: array for name, array in outputs.items() if array is not None},
            reads=hbm.reads,
            writes=hbm.writes,
            widths=hbm.widths,
            atomics=hbm.atomics,
            flops=self.flops,
            exps=self.exps,
            tanhs=self.tanhs,
            randoms=self.randoms,
            sram_states=frozenset(sram.states),
            hbm_states=frozenset(hbm.states),
        )
