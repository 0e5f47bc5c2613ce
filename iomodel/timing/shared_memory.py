"""Shared-memory traffic of an SM, from the division of a matrix product among warps.

A warp reads the rows and columns that its part of the result needs; adjacent warps read the same operand again. If the
sum itself is divided, partial results are combined in shared memory. Operands in registers are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from iomodel.common.arithmetic import anywhere, ceil_div, floor_div, larger, smaller
from iomodel.nests.residency import Residency
from iomodel.timing.kernel_work import SCORES, KernelWork, MatrixWork

Pair = frozenset[str]
DQ = frozenset({"query", "depth"})


@dataclass(frozen=True)
class WarpLayout:
    """Layout of the warps of a block over a tile of scores, and the operands outside shared memory.

    Attributes
    ----------
    warps : tuple of int
        Warps, or warp groups, along the queries and along the keys [-].
    together : bool
        True if four warps multiply together, and read an operand together.
    registers : frozenset
        Tensors in registers, each as a pair of axes.
    stored : int
        Number of last tiles of scores written to shared memory [-].
    element_size : int
        Size of an operand [B].
    transposed : bool
        True if scores are computed and held in registers with the keys as rows.
    added : bool
        True if sums pass through shared memory on the way to HBM.
    instruction_rows : int
        Rows of a product that one instruction of warps together computes, for which it reads the second operand once.
    accumulates : bool
        True if products accumulate in tensor memory.
    restaged : frozenset, optional
        Results in registers, of a kernel whose products request their operands and other sums from the L2 anew.
    most_blocks : int
        Most blocks of a call, which share out the outer tiles of a head; 0 for a block for each [-].
    added_clocks : float
        Time of an SM for each byte of sums in HBM that no registers hold [clk/B].
    """

    warps: tuple[int, int] = (1, 1)
    together: bool = False
    registers: frozenset[Pair] = frozenset()
    stored: int = 0
    element_size: int = 2
    transposed: bool = False
    added: bool = False
    instruction_rows: int = 64
    accumulates: bool = False
    restaged: frozenset[Pair] | None = None
    most_blocks: int = 0
    added_clocks: float = 0.0

    @property
    def fastest(self) -> bool:
        """True if products take the fastest instruction of the device, False for that of a single warp."""
        return self.together or self.accumulates

    @classmethod
    def of(cls, residency: Residency, along: tuple[int, int], element_size: int) -> WarpLayout:
        """Return the layout of a residency."""
        pairs = [axes for axes, _ in residency.shared_axes]
        held = set(residency.operand_axes)
        if SCORES not in pairs:
            held.add(SCORES)
        return cls(
            along,
            residency.mma == "warpgroup",
            frozenset(held),
            pairs.count(SCORES),
            element_size,
            residency.transposed,
            any(dtype == "fp32" for _, dtype in residency.shared_axes),
            residency.instruction_rows,
            accumulates=residency.accumulates,
            restaged=residency.result_axes if residency.restaged else None,
            most_blocks=residency.most_blocks,
            added_clocks=residency.added_clocks,
        )


def by_point(layouts: Sequence[WarpLayout], places: Any) -> tuple[tuple[Any, WarpLayout], ...]:
    """Return each layout that reads other bytes, with the mask of the points whose places have it; none if all alike.

    Groups of four warps read the same bytes in any layout.
    """
    layouts = [replace(layout, warps=(1, 1)) if layout.together else layout for layout in layouts]
    distinct = {layout: number for number, layout in enumerate(dict.fromkeys(layouts))}
    if len(distinct) == 1:
        return ()
    numbers = np.array([distinct[layout] for layout in layouts])[places]
    return tuple((numbers == number, layout) for layout, number in distinct.items())


def shared_bytes(demand: KernelWork, layout: WarpLayout) -> Any:
    """Compute the bytes read from and written to shared memory [B]; the work may be of arrays."""
    scores = [product for product in demand.products if frozenset(product.axes[:2]) == SCORES]
    kept: Any = 0
    for product in scores[max(0, len(scores) - layout.stored) :]:
        kept += product.runs * product.extents[0] * product.extents[1] * layout.element_size
    kept += 2 * demand.atomic_bytes * layout.added  # written by the computing warps, read by the adding one
    kept += staged_again(demand, layout)
    return demand.staged + kept + sum(_operands(product, layout) for product in demand.products)


def staged_again(demand: KernelWork, layout: WarpLayout) -> Any:
    """Compute the bytes of operands that products load to shared memory beyond the loads of a trip [B]."""
    if layout.restaged is None:
        return 0
    loaded: Any = 0
    for product in demand.products:
        (m, n, k), (rows, columns, depth) = product.axes, product.extents
        sides = ((m, k), rows * depth), ((k, n), depth * columns)
        loaded += product.runs * layout.element_size * sum(size for axes, size in sides if frozenset(axes) != SCORES)
    return larger(0, loaded - demand.staged)


def sums_in_hbm(demand: KernelWork, layout: WarpLayout) -> Any:
    """Compute the bytes of sums that products load and store because no registers hold them [B].

    The requests of the nest have those of the sums to which several blocks add.
    """
    added: Any = 0
    if layout.restaged is None:
        return added
    shared = anywhere(demand.atomic_bytes)
    for product in demand.products:
        result = frozenset(product.axes[:2])
        if result == SCORES or result in layout.restaged or (shared and result == DQ):
            continue
        added += 2 * 4 * product.runs * product.extents[0] * product.extents[1]
    return added


def block_parts(blocks: Any, heads: Any, layout: WarpLayout) -> Any:
    """Count the blocks that share out the outer tiles of each head."""
    tiles = floor_div(blocks, heads)
    return smaller(tiles, larger(1, floor_div(layout.most_blocks, heads))) if layout.most_blocks else tiles


def gradient_rows(demand: KernelWork, layout: WarpLayout) -> Any:
    """Compute the bytes of O and dO that each block reads to sum the rows of dO o O by itself [B]."""
    if layout.restaged is None or not demand.products:
        return 0
    rows = [moved for moved in demand.moved if moved.name == "dO"]
    return sum(2 * moved.distinct * block_parts(demand.blocks, moved.instances, layout) for moved in rows)


def _operands(product: MatrixWork, layout: WarpLayout) -> Any:
    m, n, k = product.axes
    rows, columns, depth = product.extents
    size = layout.element_size
    first: Any = rows * depth * size
    second: Any = depth * columns * size
    elsewhere = layout.transposed and (m, k) == ("query", "key")  # dQ = dS K with dS^T in registers
    first_held = frozenset((m, k)) in layout.registers and not elsewhere
    second_held = frozenset((k, n)) in layout.registers
    if first_held:
        first = 0
    if second_held:
        second = 0
    if layout.together:
        if layout.transposed and {m, n} == SCORES:
            first, second, rows = second, first, columns
        return product.runs * (first + second * larger(1, ceil_div(rows, layout.instruction_rows)))
    bound = {"query": layout.warps[0], "key": layout.warps[1]}
    if first_held or second_held or {m, n} == SCORES:
        along_m, along_n, along_k = (bound.get(axis, 1) for axis in (m, n, k))
        partial = 2 * 4 * rows * columns * along_k if along_k > 1 else 0
        return product.runs * (first * along_n + second * along_m + partial)
    warps = layout.warps[0] * layout.warps[1]
    ways = [along for along in range(1, warps + 1) if warps % along == 0]
    return product.runs * smaller(*(first * (warps // along) + second * along for along in ways))
