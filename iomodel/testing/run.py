"""What one run of a kernel on a counting memory computed and cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from iomodel.testing.widths import WIDTHS, Elements, FloatArray, Width, in_bytes


@dataclass(frozen=True)
class Run:
    """What one run computed and what it cost, over all batches and heads.

    Attributes
    ----------
    outputs : dict of name to array
        [batch, heads, length, ...].
    reads, writes : Counter of tensor name to int
        HBM accesses [elements]; a tensor that was never read counts 0.
    widths : dict of tensor name to width
        Of the tensors in HBM.
    atomics : int
        Atomic additions to HBM [elements]; each is one of the reads and one of the writes too.
    flops : int
        Of the matrix products, 2 m n k each [FLOP].
    exps, tanhs, randoms : int
        Function values and random numbers [-].
    sram_states, hbm_states : frozenset of tuple of int
        Every filling of either memory that was reached, by width [elements].
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
        """The output of attention."""
        return self.outputs["O"]

    @property
    def LSE(self) -> FloatArray | None:
        """The log-sum-exp of each row, if the kernel has it."""
        return self.outputs.get("LSE")

    @property
    def sram_peak(self) -> int:
        """Most that was on chip at once [elements]."""
        return max(map(sum, self.sram_states), default=0)

    def sram_bytes(self, io_size: int, kv_size: int | None = None) -> int:
        """Most that was on chip at once, at these sizes of an element [B]."""
        return max((in_bytes(state, io_size, kv_size) for state in self.sram_states), default=0)

    @property
    def hbm_peak(self) -> int:
        """Most that was allocated at once [elements]."""
        return max(map(sum, self.hbm_states), default=0)

    def hbm_peak_bytes(self, io_size: int, kv_size: int | None = None) -> int:
        """Most that was allocated at once, at these sizes of an element [B]."""
        return max((in_bytes(state, io_size, kv_size) for state in self.hbm_states), default=0)

    def hbm_bytes(self, io_size: int, kv_size: int | None = None) -> int:
        """What crossed the bus, at these sizes of an element [B]."""
        moved = dict.fromkeys(WIDTHS, 0)
        for name, count in (self.reads + self.writes).items():
            moved[self.widths[name]] += count
        return in_bytes(tuple(moved.values()), io_size, kv_size)
