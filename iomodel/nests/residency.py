"""Placement of a kernel's tiles on a GPU: in shared memory, tensor memory, or the registers of a thread block.

A residency is declared with an algorithm, in terms of the buffers of its nest, which determines their sizes. It lists
the tiles in shared memory (LDS on AMD) and in tensor memory with their numbers of copies, the tiles that reuse the same
storage in turn, the tiles in registers at the same time, and the division of work among warps (wavefronts on AMD). It
is independent of the device (:mod:`iomodel.placement.placement` combines the two).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from iomodel.common.results import Record, check_keys, decoded_fields
from iomodel.nests.axis import DType, Tensor

if TYPE_CHECKING:
    from sympy import Expr


TF32_PRODUCTS = 3
"""Products in TF32 that form one of fp32 operands, each the sum of a larger and a smaller part, to the accuracy of fp32
(TensorFloat32Op::k3xTF32 of CUTLASS) [-]."""


@dataclass(frozen=True)
class Shared:
    """A tile in shared or tensor memory with its number of copies, and its `dtype` if not that of the tensor in HBM.

    A number of copies below 1 is the share of the tile that is present at once.
    """

    tensor: Tensor
    copies: Expr | int = 1
    dtype: DType | None = None


@dataclass(frozen=True, init=False)
class Reused(Record):
    """Storage used by several groups of tiles in turn; its size is that of the largest group."""

    groups: tuple[tuple[Shared, ...], ...]

    def __init__(self, *groups: tuple[Shared, ...]) -> None:
        object.__setattr__(self, "groups", groups)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reused:
        """Rebuild the groups from their plain data; InputError where they are refused."""
        check_keys(data, ("groups",))
        return cls(*decoded_fields(cls, data)["groups"])


@dataclass(frozen=True)
class Fragment:
    """A tile in the registers of the computing warps; its `share` is below 1 for a part, above 1 for several copies."""

    tensor: Tensor
    dtype: DType = "fp32"
    share: Expr | int = 1


@dataclass(frozen=True)
class Residency(Record):
    """Placement of the tiles of a kernel, and its launch configurations.

    Attributes
    ----------
    title, cite : str
        Name of the kernel, and its source.
    shared : tuple
        Contents of shared memory at the same time.
    tensor : tuple
        Contents of tensor memory at the same time, from 128 rows on.
    phases : tuple of tuples of Fragment
        Contents of registers in each phase of the inner loop; the largest phase counts.
    overhead : int
        Registers per thread in addition to the tiles: addresses, row statistics, operands in flight [-].
    warps : tuple of int
        Allowed numbers of computing warps [-].
    stages : tuple of int
        Allowed numbers of buffers per streamed tile [-].
    producers : int
        Additional warps that only load; their unused registers go to the computing warps [-].
    producer_registers : int
        Registers per thread of a producer [-].
    split : {"rows", "columns", "tile", "values"}
        Division of work among warps: a score tile by rows, by columns, or by both; the columns of O by values.
    mma : {"warp", "warpgroup"}
        Matrix instruction: of one warp, or of four together.
    step : tuple of int, optional
        Least rows and columns of a score tile per warp, or warp group, if not those of the device's instruction.
    sizes : pair of tuples of int
        Rows of a query tile, and of a key tile, for which the kernel is compiled; empty for every multiple of the step.
    padded : bool
        True if warps pad a tile to their instructions in registers; False if such a tile is refused.
    transposed : bool
        True if the instruction computes the transposed score tile, with keys as rows.
    head_dims : tuple of int
        Widths of Q and K for which the kernel is compiled; smaller widths are padded [elements].
    value_dims : tuple of int
        Widths of V and O for which the kernel is compiled; empty for those of Q and K [elements].
    dtypes : tuple of str
        Supported types of Q, K and V.
    tf32_products : int
        Products in TF32 that form one of fp32 operands, whether a framework allows TF32 or not; 0 for the products of
        the call's type [-].
    exposed : float
        Share of the softmax that does not overlap with products of another tile or warp group [-].
    turns : int
        Tiles of scores of a block that take the units in turn: a tile is multiplied, then has its exponentials, then
        the rest of its softmax, each beside those of other tiles; 0 where `exposed` tells the overlap [-].
    capability : tuple of str
        Least compute capability, and optionally the greatest, of NVIDIA's devices.
    architectures : tuple of str
        Architectures that run the kernel, in place of compute capabilities: ``("gfx942", "gfx950")``.
    instruction_rows : int
        Rows that one instruction of a warp group multiplies, for which it reads the other operand once: 64 of Hopper's,
        128 of those of Blackwell's tensor memory [-].
    features : tuple of str
        Features of a call that the kernel requires, such as ``"latent"``.
    narrowest : int
        Least width of Q and K that the kernel takes [elements].
    parts : int
        Tiles of scores of a block that overlap like blocks, whatever its warps: 2 if products of one tile run while
        warps compute the softmax of another [-].
    restaged : bool
        True if each product of a trip requests its operands from the L2 anew, and adds there to results that no phase
        holds in registers.
    most_blocks : int
        Most blocks of a call, which share out the outer tiles of a head; 0 for a block for each tile [-].
    added_clocks : float
        Time of an SM for each byte of a sum that a trip loads and stores because no phase has it in registers [clk/B].
    compiled : str
        Kind of Triton kernel (:mod:`iomodel.placement.triton_check`) whose compiler decides the bytes, the registers
        and whether a tile has this layout; `shared` and `phases` then say only which tiles lie there.
    """

    title: str
    cite: str
    shared: tuple[Shared | Reused, ...]
    phases: tuple[tuple[Fragment, ...], ...]
    overhead: int
    warps: tuple[int, ...] = (4, 8)
    stages: tuple[int, ...] = (1,)
    producers: int = 0
    producer_registers: int = 24
    split: Literal["rows", "columns", "tile", "values"] = "rows"
    mma: Literal["warp", "warpgroup"] = "warp"
    transposed: bool = False
    head_dims: tuple[int, ...] = (32, 64, 96, 128, 192, 256)
    dtypes: tuple[str, ...] = ("fp16", "bf16")
    tf32_products: int = 0
    exposed: float = 1.0
    turns: int = 0
    capability: tuple[str, ...] = ("8.0",)
    architectures: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    value_dims: tuple[int, ...] = ()
    step: tuple[int, int] | None = None
    sizes: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    padded: bool = False
    tensor: tuple[Shared | Reused, ...] = ()
    instruction_rows: int = 64
    parts: int = 1
    narrowest: int = 0
    restaged: bool = False
    most_blocks: int = 0
    added_clocks: float = 0.0
    compiled: str = ""

    def __hash__(self) -> int:
        return hash((self.title, self.cite))  # an equal shipped residency reads its tiles on first use

    @property
    def shipped(self) -> str:
        """The place of a residency in the algorithm of this package that declares it; empty for any other."""
        return ""

    def compiled_width(self, field: str, width: int) -> int | None:
        """Return the compiled width that pads ``head_dim`` or ``value_dim`` least; None if all are smaller."""
        if field != "value_dim" and width < self.narrowest:
            return None
        known = (self.value_dims or self.head_dims) if field == "value_dim" else self.head_dims
        return min((compiled for compiled in known if compiled >= width), default=None)

    @property
    def shrinks(self) -> bool:
        """True if a larger key tile may take less shared memory, as it takes the place of other tiles."""
        copies = (tile.copies for part in self.shared for tile in _tiles(part))
        return any(each < 0 if isinstance(each, int) else bool(each.is_negative) for each in copies)

    @property
    def accumulates(self) -> bool:
        """True if products accumulate in tensor memory."""
        return len(self.tensor) > 0

    @property
    def shared_axes(self) -> tuple[tuple[frozenset[str], str | None], ...]:
        """The axes of each tile in shared memory, and its dtype where that is not the tensor's."""
        tiles = [tile for part in self.shared for tile in _tiles(part)]
        return tuple((frozenset(axis.name for axis in tile.tensor.axes), tile.dtype) for tile in tiles)

    @property
    def operand_axes(self) -> frozenset[frozenset[str]]:
        """The axes of each operand in registers."""
        held = (fragment for phase in self.phases for fragment in phase if fragment.dtype == "io")
        return frozenset(frozenset(axis.name for axis in fragment.tensor.axes) for fragment in held)

    @property
    def result_axes(self) -> frozenset[frozenset[str]]:
        """The axes of each result in registers."""
        held = (fragment for phase in self.phases for fragment in phase if fragment.dtype != "io")
        return frozenset(frozenset(axis.name for axis in fragment.tensor.axes) for fragment in held)


def _tiles(part: Shared | Reused) -> list[Shared]:
    return [part] if isinstance(part, Shared) else [tile for group in part.groups for tile in group]
