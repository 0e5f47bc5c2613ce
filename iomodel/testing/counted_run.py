"""Result of one run of a kernel on a counting memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from iomodel.testing.widths import WIDTHS, Elements, FloatArray, Width, in_bytes


@dataclass(frozen=True)
class Run:
    """Outputs and counts of one run, over all batches and heads.

    Attributes
    ----------
    outputs : dict of name to array
        [batch, heads, length, ...].
    reads, writes : Counter of tensor name to int
        HBM accesses [elements]; a tensor that was never read counts 0.
    widths : dict of tensor name to width
        Width of every tensor in HBM.
    atomics : int
        Atomic additions to HBM [elements]; each is also counted as a read and a write.
    flops : int
        FLOPs of the matrix products, 2 m n k each [FLOP].
    exps, tanhs, randoms : int
        Function values and random numbers [-].
    sram_states, hbm_states : frozenset of tuple of int
        Every allocation state of the two memories, by width [elements].
    """

    outputs: dict[str, FloatArray]
    reads: Counter[str]
    writes: Counter[str]
    widths: dict[str, Width]
    atomics: int
    flops: int
    exps: int
    tanhs: int
    randoms: int
    sram_states: frozenset[Elements]
    hbm_states: frozenset[Elements]

    @property
    def O(self) -> FloatArray:  # noqa: E743 - the paper's letter
        """Output of attention."""
        return self.outputs["O"]

    @property
    def LSE(self) -> FloatArray | None:
        """Log-sum-exp of each row, if the kernel stores it."""
        return self.outputs.get("LSE")

    @property
    def sram_peak(self) -> int:
        """Peak SRAM use [elements]."""
        return max(map(sum, self.sram_states), default=0)

    def sram_bytes(self, io_size: int, kv_size: int | Fraction | None = None) -> int:
        """Compute the peak SRAM use for the given element sizes [B]."""
        return max((in_bytes(state, io_size, kv_size) for state in self.sram_states), default=0)

    @property
    def hbm_peak(self) -> int:
        """Peak HBM allocation [elements]."""
        return max(map(sum, self.hbm_states), default=0)

    def hbm_peak_bytes(self, io_size: int, kv_size: int | Fraction | None = None) -> int:
        """Compute the peak HBM allocation for the given element sizes [B]."""
        return max((in_bytes(state, io_size, kv_size) for state in self.hbm_states), default=0)

    def hbm_bytes(self, io_size: int, kv_size: int | Fraction | None = None) -> int:
        """Compute the HBM traffic for the given element sizes [B]."""
        moved = dict.fromkeys(WIDTHS, 0)
        for name, count in (self.reads + self.writes).items():
            moved[self.widths[name]] += count
        return in_bytes(tuple(moved.values()), io_size, kv_size)
