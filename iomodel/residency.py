"""Where the tiles of a kernel lie on a GPU: in shared memory, or in the registers of a thread block.

A residency is declared with an algorithm, in terms of the buffers of its nest: their sizes follow from the nest. It
says which tiles are in shared memory, in how many copies, and which may use the same storage one after the other;
which are in registers together; how the warps share the work. Nothing here knows a device
(:mod:`iomodel.placement` sets the two against each other).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sympy import Expr, Integer

from iomodel.nest import DType, Tensor

ONE = Integer(1)


@dataclass(frozen=True)
class Shared:
    """A tile in shared memory, in so many copies; `dtype` where it is not that of the tensor in HBM."""

    tensor: Tensor
    copies: Expr = ONE
    dtype: DType | None = None


@dataclass(frozen=True, init=False)
class Reused:
    """Storage that several groups of tiles use one after the other: the largest group counts."""

    groups: tuple[tuple[Shared, ...], ...]

    def __init__(self, *groups: tuple[Shared, ...]) -> None:
        object.__setattr__(self, "groups", groups)


@dataclass(frozen=True)
class Fragment:
    """A tile in the registers of the warps that compute, or the share of it that is there at once."""

    tensor: Tensor
    dtype: DType = "fp32"
    share: Expr = ONE


@dataclass(frozen=True)
class Residency:
    """Where the tiles of a kernel lie, and how it is launched.

    Attributes
    ----------
    title, cite : str
        Whose kernel it is, and where it can be read.
    shared : tuple
        What is in shared memory, all at once.
    phases : tuple of tuples of Fragment
        What is in registers together, for each phase of the inner loop; the fullest phase counts.
    overhead : int
        Registers of a thread beside the tiles: addresses, row statistics, operands on their way [-].
    warps : tuple of int
        How many warps may compute [-].
    stages : tuple of int
        How many buffers a streamed tile may have [-].
    producers : int
        Further warps that only load; the registers that they do without go to those that compute [-].
    producer_registers : int
        Registers of a thread of a producer [-].
    split : {"rows", "columns", "tile"}
        Whether the warps share out the rows of a score tile, its columns, or both.
    mma : {"warp", "warpgroup"}
        Which matrix instruction is used: of one warp, or of four together.
    transposed : bool
        Whether the instruction makes the transpose of a score tile: its rows are keys.
    head_dims : tuple of int
        The widths that the kernel is compiled for; a smaller one is padded [elements].
    dtypes : tuple of str
        The types of Q, K and V that it takes.
    exposed : float
        The share of the softmax that does not hide behind products of another tile or warp group [-].
    capability : tuple of str
        The least compute capability, and the greatest one if there is a second entry.
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
    split: Literal["rows", "columns", "tile"] = "rows"
    mma: Literal["warp", "warpgroup"] = "warp"
    transposed: bool = False
    head_dims: tuple[int, ...] = (32, 64, 96, 128, 192, 256)
    dtypes: tuple[str, ...] = ("fp16", "bf16")
    exposed: float = 1.0
    capability: tuple[str, ...] = ("8.0",)
