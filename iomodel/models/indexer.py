"""Sparse attention of one decoder layer: the indexer that selects keys, and the compression of the cache."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from iomodel.common.validation import Count, Distance, as_integer
from iomodel.devices.quantity import Group
from iomodel.errors import InputError
from iomodel.workloads.call import Switch

Projection = tuple[str, int, int]
"""A linear layer: name, input width, output width [elements]."""


class Indexer(Group):
    """An indexer, which scores every cached key of a narrow width, and keeps the best for each query.

    Parameters
    ----------
    heads, head_dim : query heads of the indexer [-]; width of a query and of a key [elements].
    topk : keys that a query keeps [tokens].
    block : keys that are kept or dropped together [tokens].
    keys : False if the layer reuses the selection of an earlier layer, and has neither weights nor keys of an indexer.
    pool : tokens per key of the indexer [tokens].
    latent_query : queries are projected from the latent of Q, not from the row between layers.
    weighted : scores of the heads are added up with weights that depend on the query.
    overlap : groups of tokens that a pooled key covers; 1 for disjoint groups.

    Examples
    --------
    >>> Indexer(heads=64, head_dim=128, topk=2048).elements(8192)
    1048576
    >>> Indexer(heads=64, head_dim=128, topk=512, pool=4).elements(8192)
    262144
    """

    heads: Count
    head_dim: Count
    topk: Count
    block: Count = 1
    keys: Switch = True
    pool: Count = 1
    latent_query: Switch = True
    weighted: Switch = True
    overlap: Count = 1

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.topk % self.block:
            raise InputError(f"topk: {self.topk} given; allowed: a multiple of block = {self.block}")
        return self

    def elements(self, context: int, page_size: int | None = None) -> int:
        """Count the elements of the keys after `context` tokens, in whole pages of tokens [elements]."""
        if not self.keys:
            return 0
        return _paged(as_integer("context", context, least=0), self.pool, page_size) * self.head_dim

    def projections(self, hidden: int, latent: int | None) -> tuple[Projection, ...]:
        """List the linear layers of the indexer; none if it reuses a selection."""
        if not self.keys:
            return ()
        source = latent if self.latent_query and latent is not None else hidden
        query = ("index q", source, self.heads * self.head_dim)
        width = self.overlap * self.head_dim
        key: tuple[Projection, ...] = (("index k", hidden, width),)
        if self.pool > 1:
            key = (*key, ("index gate", hidden, width))
        weights: tuple[Projection, ...] = (("index weights", hidden, self.heads),) if self.weighted else ()
        return query, *key, *weights

    def vectors(self) -> int:
        """Count the remaining weights: norms of keys and queries, and the positions within a pooled key [elements]."""
        if not self.keys:
            return 0
        positions = self.pool * self.overlap * self.head_dim if self.pool > 1 else 0
        return positions + (1 if self.overlap > 1 else 2) * self.head_dim

    def flops(self, queries: int, keys: int) -> int:
        """Count the FLOPs that score `keys` pooled keys for `queries` queries: products, ReLU and sum [FLOP]."""
        return queries * keys * self.heads * (2 * self.head_dim + 2 * self.weighted)


class Compression(Group):
    """A compressor, which adds one entry to the cache for each group of tokens.

    Parameters
    ----------
    ratio : tokens per entry [tokens].
    overlap : groups of tokens that an entry covers: 1, or 2 with the group before.

    Examples
    --------
    >>> Compression(ratio=128).entries(8191)
    63
    """

    ratio: Count
    overlap: Count = Field(default=1, le=2)

    def entries(self, context: int, page_size: int | None = None) -> int:
        """Count the entries after `context` tokens; an unfinished group has none yet."""
        return _paged(context, self.ratio, page_size)

    def projections(self, hidden: int, width: int) -> tuple[Projection, ...]:
        """List the linear layers of the compressor of rows of `width` elements."""
        wide = self.overlap * width
        return ("compress kv", hidden, wide), ("compress gate", hidden, wide)

    def vectors(self, width: int) -> int:
        """Count the remaining weights: positions within a group, and a norm [elements]."""
        return self.ratio * self.overlap * width + width


def _paged(tokens: Distance, group: int, page_size: int | None) -> int:
    """Count the finished groups of tokens, of all tokens of a page if there are pages."""
    if page_size is not None:
        page = as_integer("page_size", page_size)
        tokens = -(-tokens // page) * page
    return tokens // group
