"""Bytes that cross the shared memory of an SM, by how the warps of a block share out a matrix product.

A warp reads the rows and columns that its part of the result needs; warps side by side read the same operand again.
Where the sum itself is shared out, partial results meet in shared memory. Operands in registers are not read.
"""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.demand import SCORES, Demand, Product
from iomodel.residency import Residency, Reused, Shared

Pair = frozenset[str]


@dataclass(frozen=True)
class Layout:
    """How the warps of a block lie over a tile of scores, and what is not in shared memory.

    Attributes
    ----------
    warps : tuple of int
        Warps, or groups of four, along the queries and along the keys [-].
    together : bool
        Whether four warps multiply together, and read an operand together.
    registers : frozenset
        Tensors in registers, each as the pair of its axes.
    stored : int
        Tiles of scores that the warps write to shared memory, the last ones that they make [-].
    element_size : int
        Size of an operand [B].
    transposed : bool
        Whether scores are made, and lie in registers, with the keys as rows.
    added : bool
        Whether sums pass through shared memory on their way to HBM.
    """

    warps: tuple[int, int] = (1, 1)
    together: bool = False
    registers: frozenset[Pair] = frozenset()
    stored: int = 0
    element_size: int = 2
    transposed: bool = False
    added: bool = False

    @classmethod
    def of(cls, residency: Residency, along: tuple[int, int], element_size: int) -> Layout:
        """The layout of a residency."""
        shared = [part for group in residency.shared for part in _parts(group)]
        pairs = [frozenset(axis.name for axis in part.tensor.axes) for part in shared]
        held = {
            frozenset(axis.name for axis in fragment.tensor.axes)
            for phase in residency.phases
            for fragment in phase
            if fragment.dtype == "io"
        }
        if SCORES not in pairs:
            held.add(SCORES)
        return cls(
            along,
            residency.mma == "warpgroup",
            frozenset(held),
            pairs.count(SCORES),
            element_size,
            residency.transposed,
            any(part.dtype == "fp32" for part in shared),
        )


def _parts(part: Shared | Reused) -> list[Shared]:
    return [part] if isinstance(part, Shared) else [one for group in part.groups for one in group]


def shared_bytes(demand: Demand, layout: Layout) -> int:
    """All bytes read from and written to shared memory [B]."""
    scores = [product for product in demand.products if frozenset(product.axes[:2]) == SCORES]
    kept = 0
    for product in scores[max(0, len(scores) - layout.stored) :]:
        kept += product.runs * product.extents[0] * product.extents[1] * layout.element_size
    kept += 2 * demand.atomic_bytes * layout.added  # written by those that compute, read by the one that adds
    return demand.staged + kept + sum(_operands(product, layout) for product in demand.products)


def _operands(product: Product, layout: Layout) -> int:
    m, n, k = product.axes
    rows, columns, depth = product.extents
    size = layout.element_size
    first, second = rows * depth * size, depth * columns * size
    elsewhere = layout.transposed and (m, k) == ("query", "key")  # dQ = dS K where the registers have dS^T
    if frozenset((m, k)) in layout.registers and not elsewhere:
        first = 0
    if frozenset((k, n)) in layout.registers:
        second = 0
    if layout.together:
        if layout.transposed and {m, n} == SCORES:
            first, second, rows = second, first, columns
        return product.runs * (first + second * max(1, -(-rows // 64)))
    bound = {"query": layout.warps[0], "key": layout.warps[1]}
    if not first or not second or {m, n} == SCORES:
        along_m, along_n, along_k = (bound.get(axis, 1) for axis in (m, n, k))
        partial = 2 * 4 * rows * columns * along_k if along_k > 1 else 0
        return product.runs * (first * along_n + second * along_m + partial)
    every = layout.warps[0] * layout.warps[1]
    ways = [along for along in range(1, every + 1) if every % along == 0]
    return product.runs * min(first * (every // along) + second * along for along in ways)
