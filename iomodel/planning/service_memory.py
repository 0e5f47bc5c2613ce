"""Memory of a device under a plan, and the requests that fit, in exact integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from iomodel.common.results import Record
from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.recurrent import STATE_BYTES
from iomodel.planning.cache_blocks import CacheBlocks, LayerCache, cache_blocks
from iomodel.planning.cache_formats import key_bytes, row_bytes
from iomodel.planning.engines import Engine
from iomodel.planning.step.divided_cache import held
from iomodel.planning.step.layout import Layout
from iomodel.workloads.dtypes import WEIGHT_SIZE, cache_bytes, index_dtype

STATES = "states"
"""Name of the pool of recurrent states."""


@dataclass(frozen=True)
class CachePool(Record):
    """Memory that an engine keeps for one kind of cache, apart from the others.

    Attributes
    ----------
    name : str
        Kind of cache.
    bytes, request_bytes : int
        Size of the pool, and of what a request takes of it [B].
    """

    name: str
    bytes: int
    request_bytes: int

    @property
    def fits(self) -> int:
        """Requests that fit the pool [-]."""
        return max(0, self.bytes // self.request_bytes)


@dataclass(frozen=True)
class MemoryPart(Record):
    """A part of a device's memory.

    Attributes
    ----------
    name : str
        Name of the part.
    bytes : int
        Its size [B].
    """

    name: str
    bytes: int


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
    padding : int
        Part of the weights that kernels pad to their tiles [B].
    block_bytes, block_groups : int
        Size of a block of the engine's cache in all layers of a group [B], and number of groups that draw blocks [-]; 0
        and 1 without blocks that groups share.
    charged : int
        Blocks that the log of the engine charges for a request of all tokens [-]; 0 without such blocks.
    pools : tuple of CachePool
        Kinds of caches whose memory is apart; empty if all draw from one.
    parts : tuple of MemoryPart
        The memory part by part, in the order in which it is taken.
    log : tuple of str
        Lines that the log of the engine has about it, to be compared with those of a server.
    """

    derived = ("left", "fits", "blocks", "tokens", "tokens_interval", "concurrency")

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
    padding: int = 0
    block_bytes: int = 0
    block_groups: int = 1
    charged: int = 0
    pools: tuple[CachePool, ...] = ()
    parts: tuple[MemoryPart, ...] = ()
    log: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """Memory left for the caches of requests; negative if the weights do not fit [B]."""
        return self.usable - self.weights - self.overhead - self.shared_bytes

    @property
    def fits(self) -> int:
        """Requests that fit a replica: the memory left over the bytes of a request, in each group [-].

        Where caches have pools, the fullest pool decides.
        """
        if self.pools:
            return self.groups * min(pool.fits for pool in self.pools)
        return self.groups * max(0, self.left // self.request_bytes) if self.request_bytes else 0

    @property
    def slots(self) -> int | None:
        """Requests whose states have places in a pool of states [-]; None without one."""
        return next((pool.fits for pool in self.pools if pool.name == STATES), None)

    @property
    def blocks(self) -> int:
        """Blocks of the cache, as an engine counts them: tokens in all layers, or in those of a group [-]."""
        size = self.block_bytes or self.block * self.token_bytes
        room = self.pools[0].bytes if self.pools else self.left
        return max(0, room // size) if size else 0

    @property
    def tokens(self) -> int:
        """Tokens that the blocks of all ranks of a cache hold, if each group of layers has as many [tokens]."""
        return self.blocks // self.block_groups * self.block * self.cache_ranks

    @property
    def tokens_interval(self) -> tuple[int, int] | None:
        """Tokens at the most and the least overhead that an engine takes [tokens]; None if the overhead was given.

        The most includes graphs, whose memory vLLM takes from the caches since 0.19.
        """
        if self.overhead_low is None or self.overhead_high is None or self.pools:
            return None
        most, least = (replace(self, overhead=each).tokens for each in (self.overhead_high, self.overhead_low))
        return most, least

    @property
    def concurrency(self) -> float | None:
        """Requests of all tokens that the log of the engine announces [-]; None without blocks that groups share."""
        return self.groups * self.blocks / self.charged if self.charged else None

    @property
    def missing(self) -> int:
        """Memory that one request lacks [B]; 0 if it fits."""
        if self.pools:
            least = self._all(1) if self.left > 0 else sum(pool.request_bytes for pool in self.pools)
            return max(0, least - self.left) if not self.fits else 0
        return max(0, self.request_bytes - self.left)

    def _all(self, batch: int) -> int:
        """Compute the memory of all caches in which some requests of a group fit every pool [B]."""
        if not self.pools:
            return batch * self.request_bytes
        room = max(1, sum(pool.bytes for pool in self.pools))
        return max(-(-batch * pool.request_bytes * room // max(1, pool.bytes)) for pool in self.pools)

    def needed(self, batch: int) -> int:
        """Compute the device memory that a number of requests would need [B]."""
        used = self.weights + self.overhead + self.shared_bytes + self._all(-(-batch // self.groups))
        return -(-used * self.capacity // self.usable)


@lru_cache(maxsize=1024)
def unbounded(attention: AttentionLayer) -> AttentionLayer:
    """Return a layer whose cache keeps every token."""
    return attention.model_copy(update={"window": None, "chunk": None})


@dataclass(frozen=True)
class RequestMemory:
    """Bytes that requests keep on one rank: caches of a type in pages, and recurrent states.

    `engine` is the one whose formats and blocks caches have, `shared` are the tokens of the prefix that all requests
    share, `state_dtype` is the type of recurrent states that a checkpoint states. `counted` of its methods are layers
    with their numbers.
    """

    layout: Layout
    dtype: str
    page: int | None = None
    shared: int = 0
    engine: Engine | None = None
    state_dtype: str | None = None

    def of_request(self, counted: Mapping[DecoderLayer, int], tokens: int) -> int:
        """Compute the caches and states of a request of `tokens` tokens [B]."""
        blocks = self.blocks(counted)
        if blocks is not None:
            return blocks.bytes * blocks.of(self._held(tokens))
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
        every rank. An engine may keep the keys that no later query sees.
        """
        attention = layer.attention
        if attention is None:
            return 0
        if self.engine is not None and self.engine.keeps_windows and attention.reach is not None:
            attention = unbounded(attention)
        page = self.page if paged else None
        return self._rows(attention, self._held(tokens), page) + self._keys(attention, tokens, page)

    def _held(self, tokens: int) -> int:
        return held(tokens, self.layout.decode_context_parallel)

    def _rows(self, attention: AttentionLayer, tokens: int, page: int | None) -> int:
        """Compute the rows of K and V, or of the latent [B]."""
        elements, rows = attention.kv_elements(tokens, page), attention.kv_rows(tokens, page)
        own = None if self.engine is None else row_bytes(attention, self.dtype)
        if own is not None:
            return elements // max(1, attention.kv_elements_per_token) * own
        if not attention.latent:
            heads = -(-attention.kv_heads // self.layout.tensor_parallel)
            elements, rows = elements // attention.kv_heads * heads, rows // attention.kv_heads * heads
        return cache_bytes(elements, self.dtype, rows)

    def _keys(self, attention: AttentionLayer, tokens: int, page: int | None) -> int:
        """Compute the keys of the indexer [B]."""
        elements = attention.index_elements(tokens, page)
        own = None if self.engine is None else key_bytes(attention)
        if own is not None and attention.indexer is not None:
            return elements // attention.indexer.head_dim * own
        return cache_bytes(elements, index_dtype(self.dtype))

    def state(self, layer: DecoderLayer) -> int:
        """Compute the recurrent state of one layer and sequence [B]."""
        if layer.recurrent is None:
            return 0
        narrow = self.engine is not None and layer.recurrent.kind in self.engine.narrow_states
        element = 2 if narrow and self.state_dtype is None else STATE_BYTES
        if self.state_dtype is not None:
            element = int(WEIGHT_SIZE[self.state_dtype])
        return layer.recurrent.state.sized(element) // self.layout.tensor_parallel

    def blocks(self, counted: Mapping[DecoderLayer, int]) -> CacheBlocks | None:
        """Divide the caches of some layers into blocks of the engine; None if its layers do not share blocks."""
        if self.engine is None or not self.engine.shares_blocks:
            return None
        caches: Counter[LayerCache] = Counter()
        for layer, repeats in counted.items():
            if layer.attention is not None and layer.attention.compression is not None:
                return None  # entries of several tokens, whose groups have tables of their own
            for cache in self._kinds(layer):
                caches[cache] += repeats
        return cache_blocks(caches, self.page or self.engine.block)

    def _kinds(self, layer: DecoderLayer) -> Iterator[LayerCache]:
        """List the caches of a layer by kind: of attention, and its state."""
        attention = layer.attention
        if attention is not None:
            width = self.cache(layer, 1, paged=False)
            if attention.window:
                yield LayerCache("window", width, attention.window)
            elif attention.chunk:
                yield LayerCache("chunk", width, attention.chunk)
            else:
                yield LayerCache("all", width, latent=attention.latent)
        if layer.recurrent is not None:
            yield LayerCache("state", self.state(layer))

    def pools(self, counted: Mapping[DecoderLayer, int], tokens: int, room: int) -> tuple[CachePool, ...]:
        """Divide memory among kinds of caches with pools of their own; none if all share it."""
        engine = self.engine
        if engine is None:
            return ()
        states = sum(repeats * self.state(layer) for layer, repeats in counted.items())
        found: list[CachePool] = []
        if states and engine.state_ratio is not None:
            share = int(engine.state_ratio / (1 + engine.state_ratio) * max(0, room))
            share = share if engine.state_places is None else min(max(0, room), engine.state_places * states)
            found.append(CachePool(STATES, share, engine.state_slots * states))
            room -= share
        pools = (*self._of_reaches(counted, tokens, room), *found)
        return pools if len(pools) > 1 else ()

    def _of_reaches(self, counted: Mapping[DecoderLayer, int], tokens: int, room: int) -> Iterator[CachePool]:
        """Divide the memory of caches among layers with windows and without."""
        ratio = None if self.engine is None else self.engine.window_ratio
        wide, narrow, kept, whole = 0, 0, 0, 0
        for layer, repeats in counted.items():
            token, every = repeats * self.cache(layer, 1, paged=False), repeats * self.cache(layer, tokens)
            whole += every
            if layer.attention is not None and layer.attention.reach is not None:
                narrow, kept = narrow + token, kept + every
            else:
                wide += token
        if ratio is None or not wide or not narrow:
            if whole:
                most = None if self.engine is None else self.engine.cache_tokens
                yield CachePool("caches", room if most is None else min(room, most * (wide + narrow)), whole)
            return
        each = wide + ratio * narrow
        yield CachePool("caches of all tokens", int(room * wide / each), whole - kept)
        yield CachePool("caches of windows", int(room * ratio * narrow / each), kept)
