"""Batches of sequences of different lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import LARGEST
from iomodel.errors import InputError, shown
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents, lengths_of
from iomodel.workloads.workload import Mixed


def _lengths(lengths: Any) -> tuple[int, ...]:
    """Validate many positive integers at once."""
    try:
        array = np.asarray(lengths)
    except ValueError:  # ragged, or nested too deep
        array = np.empty((0, 0))
    switches = () if isinstance(lengths, np.ndarray) or array.ndim != 1 else (n for n in lengths if isinstance(n, bool))
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or any(True for _ in switches):
        raise ValueError(f"{shown(lengths)} given; allowed: a sequence of positive integers, at least one")
    if array.min() < 1 or array.max() > LARGEST:
        wrong = int(array[(array < 1) | (array > LARGEST)][0])
        left = "; a sequence without queries is left out, as by VarlenAttention.of_offsets" if wrong == 0 else ""
        raise ValueError(f"length {wrong} given; allowed: lengths from 1 to 10^18{left}")
    return tuple(array.tolist())


IntArray = NDArray[np.int64]
Lengths = Annotated[tuple[int, ...], PlainValidator(_lengths), PlainSerializer(list, when_used="json")]


class VarlenAttention(Call, Mixed):
    """A batch of sequences of different lengths in one call.

    Parameters
    ----------
    q_lens : sequence of int
        Queries of each sequence [rows].
    kv_lens : sequence of int, optional
        Keys of each sequence [rows]; q_lens by default.
    head_dim, heads, kv_heads, value_dim, dtype, mask, direction, ... :
        As for :class:`Attention`, common to all sequences; masks given by data are not supported.

    Raises
    ------
    InputError
        There is no sequence; q_lens and kv_lens differ in number; Attention rejects a field.

    Examples
    --------
    >>> import iomodel
    >>> w = VarlenAttention(q_lens=[100, 1], kv_lens=[100, 900], head_dim=64)
    >>> iomodel.cost("flash2", w, {"block_q": 64, "block_kv": 64}).reads["K"]  # two tiles of queries, then one
    70400
    """

    q_lens: Lengths
    kv_lens: Lengths = Field(default_factory=lambda data: data["q_lens"])

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        if len(self.q_lens) != len(self.kv_lens):
            raise InputError(
                f"kv_lens: {len(self.kv_lens)} lengths given, for {len(self.q_lens)} in q_lens; "
                "allowed: one per sequence"
            )
        if isinstance(self.mask, BlockMask | Documents):
            raise InputError(f"mask: {shown(self.mask)} given; allowed: full, causal or a Window")
        return self

    @classmethod
    def of_offsets(
        cls,
        cu_seqlens_q: Any,
        cu_seqlens_k: Any = None,
        seqused_k: Any = None,
        block_table: Any = None,
        **fields: Any,
    ) -> Self:
        """Build a call from the arrays that kernels for packed sequences take; sequences without a query are left out.

        Parameters
        ----------
        cu_seqlens_q, cu_seqlens_k : sequence of int
            Lengths added up, from 0 on, of queries and of keys; those of the keys are those of the queries by default.
        seqused_k : sequence of int, optional
            Keys of each sequence, where these are in pages behind a table of blocks; in place of `cu_seqlens_k`.
        block_table : array of int of shape (sequences, blocks), optional
            Pages of each sequence, as vLLM passes them; rows may end in padding. A page that several sequences share
            counts for each of them, as their blocks load it.
        **fields
            Other fields, such as `head_dim` and, with a table of blocks, `page_size`.

        Raises
        ------
        InputError
            Lengths shrink, both arrays of keys are given, or a table of blocks is too small for the keys.

        Examples
        --------
        >>> w = VarlenAttention.of_offsets([0, 1, 2], seqused_k=[900, 17], head_dim=64)
        >>> w.q_lens, w.kv_lens
        ((1, 1), (900, 17))
        >>> VarlenAttention.of_offsets([0, 128, 128, 512], head_dim=64).q_lens
        (128, 384)
        """
        if cu_seqlens_k is not None and seqused_k is not None:
            raise InputError("seqused_k: given beside cu_seqlens_k; allowed: one of the two")
        q_lens = lengths_of("cu_seqlens_q", cu_seqlens_q)
        keys = seqused_k if cu_seqlens_k is None else lengths_of("cu_seqlens_k", cu_seqlens_k)
        seen = [place for place, length in enumerate(q_lens) if length]
        keys, block_table = (
            [each[place] for place in seen]
            if hasattr(each, "__len__") and len(each) == len(q_lens) > len(seen)
            else each
            for each in (keys, block_table)
        )
        call = cls(q_lens=[q_lens[place] for place in seen], **({} if keys is None else {"kv_lens": keys}), **fields)
        if block_table is not None:
            call._check_blocks(block_table)
        return call

    def _check_blocks(self, block_table: Any) -> None:
        """Raise InputError for a table of blocks that cannot hold the keys."""
        if self.page_size is None:
            raise InputError("page_size: none given with a block_table; allowed: keys of a block, such as 16")
        try:
            table = np.asarray(block_table)
        except ValueError:  # ragged
            table = np.empty(0)
        least = -(-max(self.kv_lens) // self.page_size)
        if table.ndim != 2 or table.dtype.kind not in "iu" or len(table) != len(self.kv_lens) or table.shape[1] < least:
            raise InputError(
                f"block_table: an array of shape {table.shape} given; allowed: integers of shape ({len(self.kv_lens)}, "
                f"{least} or more), blocks of {self.page_size} keys for up to {max(self.kv_lens):,}"
            )
        held = np.arange(table.shape[1]) < -(-np.array(self.kv_lens)[:, None] // self.page_size)
        if (table[held] < 0).any():
            place = int(np.argmax((held & (table < 0)).any(axis=1)))
            raise InputError(
                f"block_table: row {place} ends before its {self.kv_lens[place]:,} keys; allowed: all of them"
            )

    @cached_property
    def counted(self) -> tuple[IntArray, IntArray, IntArray]:
        """Distinct pairs of lengths, as q_lens and kv_lens, with their multiplicities."""
        times = Counter(zip(self.q_lens, self.kv_lens, strict=True))
        q_lens, kv_lens = np.array(list(times), dtype=np.int64).T
        arrays = q_lens, kv_lens, np.array(list(times.values()), dtype=np.int64)
        for array in arrays:
            array.flags.writeable = False  # cached on the workload
        return arrays

    @property
    def lengths(self) -> Mapping[str, tuple[int, ...]]:
        """Queries and keys of each sequence, by the names of their symbols."""
        return FrozenDict(q_len=self.q_lens, kv_len=self.kv_lens)

    @property
    def columns(self) -> tuple[Any, ...]:
        """Values of all symbols in the order of the alphabet, over the distinct pairs of lengths."""
        q_lens, kv_lens, times = self.counted
        return tuple(self.at(times, q_lens, kv_lens).values())

    @property
    def unit(self) -> tuple[int, ...]:
        """Values of all symbols of one sequence with one query and one key."""
        return tuple(self.at(1, 1, 1).values())

    @cached_property
    def longest(self) -> Attention:
        """A call of one sequence, as long as the longest, whose footprint no other sequence exceeds."""
        lengths = {"q_len": max(self.q_lens), "kv_len": max(self.kv_lens)}
        return self.sequences[0].model_copy(update=lengths)

    @cached_property
    def sequences(self) -> tuple[Attention, ...]:
        """Every distinct pair of lengths, as a separate call with its multiplicity as batch."""
        fields = {name: getattr(self, name) for name in Call.model_fields}
        triples = zip(*(lengths.tolist() for lengths in self.counted), strict=True)
        return tuple(Attention(**fields, q_len=q, kv_len=k, batch=times) for q, k, times in triples)


def as_call(workload: object) -> Attention | VarlenAttention:
    """Validate a workload of one or many lengths, or raise InputError."""
    if not isinstance(workload, Attention | VarlenAttention):
        raise InputError(f"workload: {shown(workload)} given; allowed: an iomodel.Attention or VarlenAttention")
    return workload
