"""Axes and tensors of the nests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from iomodel.common.cache import cached_hash

if TYPE_CHECKING:
    from sympy import Expr

DType = Literal["io", "kv", "weight", "out", "fp32", "int32", "int64", "bool"]
"""Width of an element: the workload's dtype, that of the K/V cache, of weights, of results, 4, 4, 8 bytes, 1 byte."""

Per = Literal["head", "kv_head", "key_head", "heads", "kv_heads", "batch", "call"]
"""Number of instances: B H, B H_kv, B H_k, H, H_kv, B, 1."""


@cached_hash
@dataclass(frozen=True)
class Axis:
    """A dimension of the problem, identified by its name, so that queries and keys never collide.

    A partition divides the positions of another axis, `of`, into `length` chunks of `chunk` positions; the last chunks
    may be short or empty.
    """

    name: str
    length: Expr
    of: Axis | None = None
    chunk: Expr | None = None


@cached_hash
@dataclass(frozen=True)
class Tensor:
    """A tensor over its axes, with one instance `per` query head, key/value head, and so on.

    A `paged` tensor is stored in whole pages along its key axis; a tensor `inside` another, or a view of a tensor of
    the same name, is not allocated.
    """

    name: str
    axes: tuple[Axis, ...]
    dtype: DType = "io"
    per: Per = "head"
    paged: bool = False
    inside: bool = False
