"""Declaration of a Triton kernel by its tiles: resident and streamed loads, products, stored results.

One declaration describes any kernel with an innermost loop; forward, decode, backward and matrix product are instances.
All sizes are numbers, so that a declaration belongs to one tile; :mod:`iomodel.placement.triton_memory` and
:mod:`iomodel.placement.triton_registers` derive resources from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from iomodel.common.frozen_dict import FrozenDict

Order = Literal["rows", "columns", "turned"]
"""Order of a right tile: rows of the sum, columns by their addresses, or columns turned to rows after the load."""

ORDERS: Mapping[bool, tuple[Order, Order]] = FrozenDict({False: ("turned", "rows"), True: ("columns", "turned")})
"""Orders of a tile that one product takes transposed and another one as it is, by whether its load transposes it."""


@dataclass(frozen=True)
class Tile:
    """A tile of a kernel.

    Attributes
    ----------
    name : str
        Name within the kernel.
    rows, columns : int
        Extents [elements]; a vector has one column.
    element : int
        Size of an element [B].
    chain : int
        Loads in the same iteration that the address waits for: 1 for a tile found by way of a page table [-].
    scattered : bool
        True if no elements are next to each other in memory, so that an access has one.
    made : tuple of str
        Loaded tiles of which arithmetic makes this one, such as keys and their gates; none for a loaded tile.
    """

    name: str
    rows: int
    columns: int
    element: int
    chain: int = 0
    scattered: bool = False
    made: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Size of one copy [B]."""
        return self.rows * self.columns * self.element


@dataclass(frozen=True)
class TileProduct:
    """A matrix product of two tiles, rows x depth and depth x columns, accumulated in fp32.

    `left` and `right` name loaded tiles or results of earlier products; a result is converted to `element` bytes.
    `right_order` says how the right tile comes from memory. `carried` marks an accumulator that stays through the loop,
    `reduced` a result whose rows are reduced, as by a softmax. A product `into` another one adds to its accumulator.
    `left_turned` says that the left operand is taken transposed.
    """

    name: str
    left: str
    right: str
    rows: int
    columns: int
    depth: int
    element: int
    right_order: Order = "rows"
    carried: bool = False
    reduced: bool = False
    into: str = ""
    left_turned: bool = False


@dataclass(frozen=True)
class PassedTile:
    """A tile that passes through shared memory once in an iteration, `element` bytes an element.

    A result that is stored does, a loaded tile that meets a result without a product of its own, and the parts of a
    sum over all elements.
    """

    passed: Literal["stored", "loaded", "summed"]
    rows: int
    columns: int
    element: int


@dataclass(frozen=True)
class TritonKernel:
    """The tiles of a kernel around its innermost loop.

    Attributes
    ----------
    resident : tuple of Tile
        Tiles loaded once and used by products in the loop.
    loop : tuple of Tile, TileProduct and PassedTile
        Loads, products and passed tiles of one iteration, in the order of the source.
    stored : tuple of Tile
        Results converted for their stores after the loop, one after the other.
    loops : int
        Loops of this kind that follow one another, as a causal kernel has one off and one along the diagonal [-].
    descriptors : bool
        True if tiles are loaded by tensor descriptors.
    positions : bool
        True if the positions of streamed rows are carried through the loop, and masks are made of them, as where a list
        of blocks says which rows are next.
    branches : tuple of TritonKernel
        Kernels that other programs of the same launch run, as one launch has programs for dQ beside those for dK and
        dV.
    looped : bool
        False for products off a loop, or under a condition in one, whose loads no pipeline runs ahead.
    conditional : bool
        True for products under a condition that does not hold for their loads.
    integers : bool
        True for products of integers, which sm_103 does not compute by tcgen05.
    outside : tuple of Tile
        Tiles loaded before the loop of which arithmetic in it makes others.
    results : tuple of Tile
        Results of earlier loops that products take, and accumulators of loops that products off them go on with.
    stages : int, optional
        `num_stages` of the loop, where it has its own [-].
    """

    resident: tuple[Tile, ...]
    loop: tuple[Tile | TileProduct | PassedTile, ...]
    stored: tuple[Tile, ...] = ()
    loops: int = 1
    descriptors: bool = False
    positions: bool = False
    branches: tuple[TritonKernel, ...] = ()
    looped: bool = True
    conditional: bool = False
    integers: bool = False
    outside: tuple[Tile, ...] = ()
    results: tuple[Tile, ...] = ()
    stages: int | None = None

    @cached_property
    def programs(self) -> tuple[TritonKernel, ...]:
        """The kernels that programs of a launch run: this one and its branches."""
        return (self, *self.branches)

    @cached_property
    def loads(self) -> tuple[Tile, ...]:
        """Tiles loaded in each iteration."""
        return tuple(step for step in self.loop if isinstance(step, Tile))

    @cached_property
    def products(self) -> tuple[TileProduct, ...]:
        """Products of one iteration."""
        return tuple(step for step in self.loop if isinstance(step, TileProduct))

    @property
    def arranged_twice(self) -> bool:
        """True if products take a tile that arithmetic makes as it is and transposed."""
        return any(
            len({product.right_order == "turned" for product in program.products if product.right == tile.name}) > 1
            for program in self.programs
            for tile in program.loads
            if tile.made
        )

    @property
    def least_sum(self) -> int:
        """The fewest bytes that a product sums over; Triton compiles none below 32 B [B]."""
        elements = {each.name: each.element for each in (*self.resident, *self.results, *self.loads)}
        elements |= {each.name: each.element for each in self.products}
        own = [product.depth * elements[product.left] for product in self.products]
        return min([*own, *(branch.least_sum for branch in self.branches)])

    def uses(self, name: str) -> Iterator[int]:
        """Iterate over the positions in the loop at which a product uses a tile."""
        for position, step in enumerate(self.loop):
            if isinstance(step, TileProduct) and name in (step.left, step.right):
                yield position


def forward_kernel(
    M: int, N: int, d: int, d_v: int | None = None, element: int = 2, *, early: bool = False, keys: Order = "turned"
) -> TritonKernel:
    """Declare a forward pass: one query tile, a loop over keys and values; `early` loads V before the first product."""
    width = d if d_v is None else d_v
    scores = TileProduct("S", "Q", "K", M, N, d, element, keys, reduced=True)
    k, v = Tile("K", N, d, element), Tile("V", N, width, element)
    output = TileProduct("O", "S", "V", M, width, N, max(element, 2), carried=True)
    loop = (k, v, scores, output) if early else (k, scores, v, output)
    stored = (Tile("O", M, width, max(element, 2)),)
    return TritonKernel((Tile("Q", M, d, element),), loop, stored)


def block_sparse_kernel(M: int, N: int, d: int, d_v: int | None = None, element: int = 2) -> TritonKernel:
    """Declare a forward pass with a loop over the key blocks that a mask sees in part, and one over the whole ones."""
    return replace(forward_kernel(M, N, d, d_v, element), loops=2, positions=True)


def dense_decode_kernel(M: int, N: int, d: int, d_v: int | None = None, element: int = 2) -> TritonKernel:
    """Declare a split of a decode pass over contiguous keys, as FlexAttention's: the loops of a block-sparse pass."""
    width = d if d_v is None else d_v
    return replace(block_sparse_kernel(M, N, d, d_v, element), stored=(Tile("O", M, width, 4),))


def decode_kernel(M: int, N: int, d: int, d_v: int | None = None, element: int = 2, *, index: int = 4) -> TritonKernel:
    """Declare a split of a decode pass that finds its keys by a table of `index` bytes an entry; 0 for no table."""
    width, chain = d if d_v is None else d_v, 1 if index else 0
    table = (Tile("table", N, 1, index),) if index else ()
    loop = (
        *table,
        Tile("K", N, d, element, chain),
        TileProduct("S", "Q", "K", M, N, d, element, "columns", reduced=True),
        Tile("V", N, width, element, chain),
        TileProduct("O", "S", "V", M, width, N, 4, carried=True),
    )
    return TritonKernel((Tile("Q", M, d, element),), loop, (Tile("O", M, width, 4),))


def latent_decode_kernel(
    M: int, N: int, d: int, d_v: int | None = None, element: int = 2, *, index: int = 4
) -> TritonKernel:
    """Declare a split of a decode pass over latent rows: the first d_v of d columns are values too."""
    width = d - 64 if d_v is None else d_v
    rope = d - width
    loop = (
        Tile("table", N, 1, index),
        Tile("C", N, width, element, 1),
        TileProduct("S", "Q", "C", M, N, width, element, "columns", reduced=True),
        Tile("C_rope", N, rope, element, 1),
        TileProduct("S_rope", "Q_rope", "C_rope", M, N, rope, element, "columns", into="S"),
        TileProduct("O", "S", "C", M, width, N, 4, "turned", carried=True),
    )
    resident = (Tile("Q", M, width, element), Tile("Q_rope", M, rope, element))
    return TritonKernel(resident, loop, (Tile("O", M, width, 4),))


def backward_dkdv_kernel(
    M: int, N: int, d: int, d_v: int | None = None, element: int = 2, *, by_columns: bool = False
) -> TritonKernel:
    """Declare dK and dV of a key tile of N rows: a loop over query tiles of M rows.

    `by_columns` says that Q is loaded transposed by its addresses, and transposed again for dK.
    """
    width = d if d_v is None else d_v
    first, again = ORDERS[by_columns]
    loop = (
        Tile("Q", M, d, element),
        Tile("lse", M, 1, 4),
        TileProduct("S", "K", "Q", N, M, d, element, first),
        Tile("dO", M, width, element),
        TileProduct("dV", "S", "dO", N, width, M, element, carried=True),
        Tile("delta", M, 1, 4),
        TileProduct("dS", "V", "dO", N, M, width, element, "turned"),
        TileProduct("dK", "dS", "Q", N, d, M, element, again, carried=True),
    )
    return TritonKernel(
        (Tile("K", N, d, element), Tile("V", N, width, element)), loop,
        (Tile("dK", N, d, element), Tile("dV", N, width, element)),
    )  # fmt: skip


def backward_dq_kernel(
    M: int, N: int, d: int, d_v: int | None = None, element: int = 2, *, by_columns: bool = False
) -> TritonKernel:
    """Declare dQ of a query tile of M rows: a loop over key tiles of N rows.

    `by_columns` says that K and V are loaded transposed by their addresses, each before its product, and K transposed
    again for dQ.
    """
    width = d if d_v is None else d_v
    first, again = ORDERS[by_columns]
    k, v, scores = (
        Tile("K", N, d, element),
        Tile("V", N, width, element),
        TileProduct("S", "Q", "K", M, N, d, element, first),
    )
    loop = (
        *((k, scores, v) if by_columns else (k, v, scores)),
        TileProduct("dS", "dO", "V", M, N, width, element, first),
        TileProduct("dQ", "dS", "K", M, d, N, element, again, carried=True),
    )
    resident = (Tile("Q", M, d, element), Tile("dO", M, width, element))
    return TritonKernel(resident, loop, (Tile("dQ", M, d, element),))


def backward_kernel(
    M: int,
    N: int,
    d: int,
    d_v: int | None = None,
    element: int = 2,
    *,
    dq_tile: tuple[int, int] | None = None,
    by_columns: bool = True,
    loops: int = 2,
) -> TritonKernel:
    """Declare a launch of which some programs take N keys, by tiles of M rows, and others rows, by tiles of keys.

    FlexAttention's backward pass is one; M is `BLOCK_M1`, N is `BLOCK_N1`, and `dq_tile` has `BLOCK_M2` and `BLOCK_N2`,
    by default N and M.
    """
    rows = backward_dq_kernel(*(dq_tile or (N, M)), d, d_v, element, by_columns=by_columns)
    keys = backward_dkdv_kernel(M, N, d, d_v, element, by_columns=by_columns)
    rows = replace(rows, loops=loops, positions=True)
    return replace(keys, loops=loops, positions=True, branches=(rows,))


def matmul_kernel(M: int, N: int, K: int, element: int = 2) -> TritonKernel:
    """Declare a tile of a matrix product, M x N, with a loop over K elements of the sum at a time."""
    loop = (
        Tile("A", M, K, element),
        Tile("B", K, N, element),
        TileProduct("C", "A", "B", M, N, K, max(element, 2), carried=True),
    )
    return TritonKernel((), loop, (Tile("C", M, N, max(element, 2)),))


def gated_matmul_kernel(M: int, N: int, K: int, element: int = 2) -> TritonKernel:
    """Declare a tile of two matrix products of one left operand, as of a gate and of what it multiplies."""
    loop = (
        Tile("A", M, K, element),
        Tile("B", K, N, element),
        Tile("B_gate", K, N, element),
        TileProduct("C", "A", "B", M, N, K, max(element, 2), carried=True),
        TileProduct("C_gate", "A", "B_gate", M, N, K, max(element, 2), carried=True),
    )
    return TritonKernel((), loop, (Tile("C", M, N, max(element, 2)),))
