"""Two-level counting memory to run a kernel on: it counts moved, held and computed elements.

The model is that of FlashAttention (Dao et al. 2022, arXiv:2205.14135, section 2.1): a large HBM, a small on-chip
SRAM, and kernels that move every operand explicitly between the two. Counts are in elements. This memory shares no
code with the formulas that it verifies.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import ArrayLike

from iomodel.errors import InputError
from iomodel.testing.counted_run import Run
from iomodel.testing.hbm import HBM
from iomodel.testing.sram import SRAM, SRAMOverflowError
from iomodel.testing.widths import WIDTHS, Elements, FloatArray, Width, in_bytes

__all__ = [
    "HBM",
    "SRAM",
    "WIDTHS",
    "Elements",
    "FloatArray",
    "Machine",
    "Run",
    "SRAMOverflowError",
    "Width",
    "in_bytes",
]


class Machine:
    """HBM with the inputs, an empty SRAM, and counters of arithmetic.

    Parameters
    ----------
    Q, K, V, **more : array, optional
        Inputs of the workload's dtype, [batch, heads, length, width] or any other shape; inputs of another width are
        added with ``hbm.alloc(name, shape, data, width)``.
    capacity : int, optional
        Capacity of the SRAM [elements]; None for no limit.

    Attributes
    ----------
    hbm, sram : HBM, SRAM
        The two memories.
    flops, exps, tanhs, randoms : int
        Work so far [FLOP], [-]; the kernel itself increments `randoms`.

    Examples
    --------
    >>> machine = Machine(Q=np.ones((4, 2)), K=np.ones((6, 2)))
    >>> q, k = machine.hbm.load("Q", slice(0, 4)), machine.hbm.load("K", slice(0, 3))
    >>> p = machine.exp(machine.matmul(q, k.T))
    >>> machine.hbm.alloc("P", (4, 6))
    >>> machine.hbm.store("P", (slice(0, 4), slice(0, 3)), p)
    >>> run = machine.result(P=machine.hbm.arrays["P"])
    >>> dict(run.reads), dict(run.writes), run.flops, run.exps
    ({'Q': 8, 'K': 6}, {'P': 12}, 48, 12)
    """

    def __init__(
        self,
        Q: ArrayLike | None = None,
        K: ArrayLike | None = None,
        V: ArrayLike | None = None,
        capacity: int | None = None,
        **more: ArrayLike,
    ) -> None:
        self.hbm = HBM()
        self.sram = SRAM(capacity)
        self.flops = 0
        self.exps = 0
        self.tanhs = 0
        self.randoms = 0
        for name, data in {"Q": Q, "K": K, "V": V, **more}.items():
            if data is not None:
                self.hbm.alloc(name, np.shape(data), data)

    def matmul(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Multiply [m, k] by [k, n], counting 2 m n k operations; raise InputError for other shapes."""
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise InputError(f"matmul: shapes {a.shape} and {b.shape} given; allowed: (m, k) and (k, n)")
        self.flops += 2 * a.shape[0] * a.shape[1] * b.shape[1]
        return a @ b

    def exp(self, x: FloatArray) -> FloatArray:
        """Compute the exponential of each element; masked elements count, as on hardware."""
        self.exps += x.size
        return np.exp(x)

    def tanh(self, x: FloatArray) -> FloatArray:
        """Compute the hyperbolic tangent of each element."""
        self.tanhs += x.size
        return np.tanh(x)

    def result(self, **outputs: FloatArray | None) -> Run:
        """Collect the counts and the outputs; raise InputError if a buffer is still on chip."""
        hbm, sram = self.hbm, self.sram
        if sram.buffers:
            raise InputError(f"still on chip at the end: {', '.join(sorted(sram.buffers))}; allowed: after sram.free()")
        return Run(
            outputs={name: array for name, array in outputs.items() if array is not None},
            reads=Counter(hbm.reads),
            writes=Counter(hbm.writes),
            widths=dict(hbm.widths),
            atomics=hbm.atomics,
            flops=self.flops,
            exps=self.exps,
            tanhs=self.tanhs,
            randoms=self.randoms,
            sram_states=frozenset(sram.states),
            hbm_states=frozenset(hbm.states),
        )
