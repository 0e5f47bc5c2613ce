"""Counted traffic and operations of a Triton kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record, column, printed


@dataclass(frozen=True)
class TensorCount(Record):
    """Accesses of a kernel to one tensor.

    Attributes
    ----------
    element_bytes : int
        Size of an element [B].
    loads, stores, atomics : int
        Elements that loads, stores and atomic operations move: those whose mask is true and whose index is inside the
        shape of a block pointer or a descriptor [elements].
    asked_loads, asked_stores, asked_atomics : int
        Elements of the blocks that these name, whatever the mask [elements].
    reads, writes : int
        Loads or stores, and atomic operations: each reads and writes [elements].
    read_bytes, written_bytes : int
        Their traffic [B].
    """

    derived = ("reads", "writes", "read_bytes", "written_bytes")

    element_bytes: int
    loads: int = field(default=0, metadata=column(">loads", ","))
    stores: int = field(default=0, metadata=column(">stores", ","))
    atomics: int = field(default=0, metadata=column(">atomics", ","))
    asked_loads: int = field(default=0, metadata=column(">asked", ","))
    asked_stores: int = field(default=0, metadata=column(">asked", ","))
    asked_atomics: int = 0

    @property
    def reads(self) -> int:
        """Elements read; an atomic operation reads and writes [elements]."""
        return self.loads + self.atomics

    @property
    def writes(self) -> int:
        """Elements written; an atomic operation reads and writes [elements]."""
        return self.stores + self.atomics

    @property
    def read_bytes(self) -> int:
        """Traffic of the reads [B]."""
        return self.reads * self.element_bytes

    @property
    def written_bytes(self) -> int:
        """Traffic of the writes [B]."""
        return self.writes * self.element_bytes

    @property
    @printed(column(">bytes", ","))
    def moved_bytes(self) -> int:
        """Traffic of the reads and the writes [B]."""
        return self.read_bytes + self.written_bytes


@dataclass(frozen=True)
class KernelCount(Result):
    """Counted traffic of one launch of a Triton kernel, over its whole grid.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    grid : tuple of int
        Programs along each axis [-].
    meta : mapping of str to value
        Compile-time arguments of the launch, those of the config included.
    tensors : mapping of argument name to TensorCount
        Every tensor argument, also those never accessed.
    dots : int
        Matrix products [-].
    flops : int
        FLOPs of the matrix products, 2 m n k each, of whole blocks [FLOP].
    exps : int
        Exponentials (`exp` and `exp2`), of whole blocks [-].
    reads, writes : mapping of argument name to int
        Elements of each tensor that is read or written [elements].
    atomics : int
        Atomic operations; each is also a read and a write [elements].
    hbm_bytes : int
        Traffic of all tensors [B].
    """

    derived = ("reads", "writes", "atomics", "hbm_bytes")

    kernel: str
    grid: tuple[int, ...]
    meta: Mapping[str, Any]
    tensors: Mapping[str, TensorCount]
    dots: int
    flops: int
    exps: int

    @property
    def reads(self) -> Mapping[str, int]:
        """Elements read of each tensor that is read [elements]."""
        return FrozenDict({name: tensor.reads for name, tensor in self.tensors.items() if tensor.reads})

    @property
    def writes(self) -> Mapping[str, int]:
        """Elements written of each tensor that is written [elements]."""
        return FrozenDict({name: tensor.writes for name, tensor in self.tensors.items() if tensor.writes})

    @property
    def atomics(self) -> int:
        """Atomic operations; each is also a read and a write [elements]."""
        return sum(tensor.atomics for tensor in self.tensors.values())

    @property
    def element_bytes(self) -> Mapping[str, int]:
        """Size of an element of each tensor [B]."""
        return FrozenDict({name: tensor.element_bytes for name, tensor in self.tensors.items()})

    @property
    def hbm_bytes(self) -> int:
        """Traffic of all tensors [B]."""
        return sum(tensor.read_bytes + tensor.written_bytes for tensor in self.tensors.values())

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        names = ("loads", "asked_loads", "stores", "asked_stores", "atomics", "moved_bytes")
        meta = ", ".join(f"{name} = {value}" for name, value in self.meta.items())
        title = f"{self.kernel} on a grid of {' x '.join(map(str, self.grid))}{': ' if meta else ''}{meta} [elements]"
        total = f"{self.hbm_bytes:,} B, {self.dots:,} dots of {self.flops:,} FLOP, {self.exps:,} exponentials"
        table = Table.of(title, TensorCount, self.tensors.values(), names=names)
        return [table.with_names("tensor", self.tensors), total]
