"""Memory of a device under a plan, and the requests that fit, in exact integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iomodel.common.results import Record
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.planning.step.divided_cache import held
from iomodel.planning.step.layout import Layout
from iomodel.workloads.dtypes import cache_bytes, index_dtype


@dataclass(frozen=True)
class Fit(Record):
    """Memory of the device with the least room, in the fullest stage of a pipeline.

    Attributes
    ----------
    capacity, usable : int
        Memory of the device, and its usable share [B].
    weights, overhead : int
        Weights on the device; memory for anything but weights and cache [B].
    token_bytes, request_bytes : int
        KV cache and keys of indexers of the first token, and of a complete request; windows hold at most their
        width, in whole pages. A request also holds its recurrent states [B].
    shared_bytes : int
        Cache of the prefix that all requests share, held once on the device [B].
    groups : int
        Data-parallel groups of ranks, each with separate requests [-].
    block : int
        Tokens of a block of the engine's cache [tokens].
    cache_ranks : int
        Ranks that divide the tokens of a cache, each of which holds every n-th token [-].
    overhead_low, overhead_high : int or None
        Interval of the overhead that an engine takes [B]; None if it was given.
    """

    derived = ("left", "fits", "blocks", "tokens")

    capacity: int
    usable: int
    weights: int
    overhead: int
    token_bytes: int
    request_bytes: int
    groups: int = 1
    block: int = 1
    overhead_low: int | None = None
    overhead_high: int | None = None
    shared_bytes: int = 0
    cache_ranks: int = 1

    @property
    def left(self) -> int:
        """Memory left for the caches of requests; negative if the weights do not fit [B]."""
        return self.usable - self.weights - self.overhead - self.shared_bytes

    @property
    def fits(self) -> int:
        """Requests that fit a replica: the memory left over the bytes of a request, in each group [-]."""
        return self.groups * max(0, self.left // self.request_bytes) if self.request_bytes else 0

    @property
    def blocks(self) -> int:
        """Blocks of the cache, as an engine counts them: tokens in all layers [-]."""
        return max(0, self.left // (self.block * self.token_bytes)) if self.token_bytes else 0

    @property
    def tokens(self) -> int:
        """Tokens that the blocks of all ranks of a cache hold [tokens]; windows, indexers and states aside."""
        return self.blocks * self.block * self.cache_ranks

    @property
    def missing(self) -> int:
        """Memory that one request lacks [B]; 0 if it fits."""
        return max(0, self.request_bytes - self.left)

    def needed(self, batch: int) -> int:
        """Compute the device memory that a number of requests would need [B]."""
        used = self.weights + self.overhead + self.shared_bytes + -(-batch // self.groups) * self.request_bytes
        return -(-used * self.capacity // self.usable)


@dataclass(frozen=True)
class RequestMemory:
    """Bytes that requests keep on one rank: caches of a type in pages, and recurrent states.

    `shared` are the tokens of the prefix that all requests share. `counted` of its methods are layers with their
    numbers.
    """

    layout: Layout
    dtype: str
    page: int | None = None
    shared: int = 0

    def of_request(self, counted: Mapping[DecoderLayer, int], tokens: int) -> int:
        """Compute the caches and states of a request of `tokens` tokens [B]."""
        return sum(repeats * (self.cache(layer, tokens) + self.state(layer)) for layer, repeats in counted.items())

    def own(self, counted: Mapping[DecoderLayer, int], tokens: int) -> int:
        """Compute the memory of a request without the prefix that all requests share [B]."""
        if not self.shared:
            return self.of_request(counted, tokens)
        return self.behind(counted, self.shared, tokens - self.shared)

    def of_prefix(self, counted: Mapping[DecoderLayer, int]) -> int:
        """Compute the memory of the prefix that all requests share [B]."""
        return self.of_request(counted, self.shared) if self.shared else 0

    def behind(self, counted: Mapping[DecoderLayer, int], before: int, tokens: int) -> int:
        """Compute the cache of `tokens` tokens behind others, and the states after them [B].

        A layer with a window holds its last tokens, which those before them do not shorten.
        """
        if not tokens:
            return 0
        return sum(
            repeats * (max(whole - self.cache(layer, before), rest) + self.state(layer))
            for layer, repeats in counted.items()
            for whole, rest in [(self.cache(layer, before + tokens), self.cache(layer, tokens))]
        )

    def cache(self, layer: DecoderLayer, tokens: int, paged: bool = True) -> int:
        """Compute the KV cache and the keys of the indexer of one layer [B].

        Every rank holds at least one head, or the entire latent, of its share of the tokens; keys of an indexer are on
        every rank.
        """
        attention = layer.attention
        if attention is None:
            return 0
        page = self.page if paged else None
        share = held(tokens, self.layout.decode_context_parallel)
        elements, rows = attention.kv_elements(share, page), attention.kv_rows(share, page)
        if not attention.latent:
            heads = -(-attention.kv_heads // self.layout.tensor_parallel)
            elements, rows = elements // attention.kv_heads * heads, rows // attention.kv_heads * heads
        keys = cache_bytes(attention.index_elements(tokens, page), index_dtype(self.dtype))
        return cache_bytes(elements, self.dtype, rows) + keys

    def state(self, layer: DecoderLayer) -> int:
        """Compute the recurrent state of one layer and sequence [B]."""
        return layer.state_bytes // self.layout.tensor_parallel
