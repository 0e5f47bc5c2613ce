"""Domains of rules: the calls for which a rule is learned and answers, and calls drawn from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from iomodel.common.results import Record
from iomodel.common.validation import as_choice, as_integer
from iomodel.errors import InputError, shown

DTYPES = ("bf16", "fp16")
HEAD_DIMS = (64, 80, 96, 112, 128, 160, 192, 256)
GROUPS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
KEY_HEADS = (1, 2, 4, 5, 8, 10, 16, 32)
DECODES, ROUND, CAUSAL = 0.4, 0.5, 0.5
"""Shares of drawn calls with one query, of lengths that are powers of two, and of causal masks [-]."""
LEAST_KEYS = 64
HELD_OUT = 8
"""A rule is judged by one call for so many that it was learned from [-]."""


@dataclass(frozen=True)
class Domain(Record):
    """The calls for which a rule answers; for any other call its function returns nothing.

    Attributes
    ----------
    max_q_len : int
        Most queries of a sequence.
    min_q_len : int
        Fewest queries of a sequence.
    max_kv_len : int
        Most keys of a sequence; there are at least as many as queries, and 64.
    max_batch : int
        Most sequences.
    max_kv_heads : int
        Most heads of K and V.
    max_group : int
        Most query heads of a key head.
    head_dims : tuple of int
        Widths of a row of Q, K and V.
    dtype : {"bf16", "fp16"}
        Type of the rows.
    """

    max_q_len: int = 16_384
    max_kv_len: int = 1_000_000
    max_batch: int = 256
    max_kv_heads: int = 32
    max_group: int = 16
    head_dims: tuple[int, ...] = HEAD_DIMS
    dtype: str = "bf16"
    min_q_len: int = 1

    def __post_init__(self) -> None:
        as_choice("dtype", self.dtype, DTYPES)
        for name in (field.name for field in fields(self) if field.name.startswith("max_")):
            as_integer(name, getattr(self, name), LEAST_KEYS if name == "max_kv_len" else 1)
        most = min(self.max_q_len, self.max_kv_len)
        if as_integer("min_q_len", self.min_q_len) > most:
            raise InputError(f"min_q_len: {self.min_q_len} given; allowed: up to {most}, the most queries")
        widths: Any = self.head_dims
        if isinstance(widths, str) or not isinstance(widths, Iterable) or not (widths := tuple(widths)):
            raise InputError(f"head_dims: {shown(self.head_dims)} given; allowed: a list of integers from 1")
        object.__setattr__(self, "head_dims", tuple(as_integer("head_dims", width) for width in widths))

    def drawn(self, size: int, seed: Any) -> dict[str, Any]:
        """Draw calls: lengths and batches evenly by their logarithm, heads and widths as models have them."""
        random = np.random.default_rng(seed)
        most = min(self.max_q_len, self.max_kv_len)
        decodes = (random.random(size) < DECODES) & (self.min_q_len == 1)
        queries = np.where(decodes, 1, _spread(random, self.min_q_len, most, size))
        keys = _spread(random, LEAST_KEYS, self.max_kv_len, size)
        powers = 1 << np.round(np.log2(keys)).astype(np.int64)
        keys = np.where(random.random(size) < ROUND, powers, keys)
        key_heads = random.choice([many for many in KEY_HEADS if many <= self.max_kv_heads], size)
        group = random.choice([many for many in GROUPS if many <= self.max_group], size)
        return {
            "q_len": queries,
            "kv_len": np.minimum(np.maximum(keys, queries), self.max_kv_len),
            "batch": _spread(random, 1, self.max_batch, size),
            "heads": key_heads * group,
            "kv_heads": key_heads,
            "head_dim": random.choice(np.array(self.head_dims), size),
            "causal": random.random(size) < CAUSAL,
        }


def _spread(random: Any, least: int, most: int, size: int) -> Any:
    """Draw integers evenly by their logarithm."""
    return np.floor(np.exp(random.uniform(np.log(least), np.log(most + 1), size))).astype(np.int64).clip(least, most)
