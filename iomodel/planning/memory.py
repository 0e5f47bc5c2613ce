"""Memory of a device under a plan, and the requests that fit, in exact integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from iomodel.common.results import Record
from iomodel.devices.device import Hardware
from iomodel.devices.edits import capacity
from iomodel.errors import InputError, shown_name
from iomodel.models.layers import DecoderLayer
from iomodel.planning.engine_memory import reserve, seen_capacity, step_limits
from iomodel.planning.engines import Engine, check_architecture
from iomodel.planning.service import OVERHEAD, UTILIZATION, Service
from iomodel.planning.step.divided_cache import held
from iomodel.planning.step.layout import Layout
from iomodel.planning.weights import draft_weights, stage_layers, stage_weights
from iomodel.workloads.dtypes import cache_bytes, index_dtype, known_kv_dtype, served


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


def fit(service: Service, device: Hardware) -> Fit:
    """Compute the memory of the device with the least room.

    Raises
    ------
    SpecError
        The memory of the device is unknown.
    InputError
        No layer keeps anything of a request, so that any number of requests would fit.
    """
    stages = []
    for place, layers in enumerate(stage_layers(service.model, service.layout)):
        token = sum(kv_bytes(layer, 1, service, paged=False) for layer in layers)
        counted = Counter(layers)
        request = own_bytes(service, counted, service.tokens)
        shared = request_bytes(service, counted, service.shared_tokens) if service.shared_tokens else 0
        weights = stage_weights(service, layers, place)
        draft = service.draft
        if draft is not None and place == service.layout.pipeline_parallel - 1:
            weights += draft_weights(service)
            request += own_bytes(draft, draft.model.counted, service.tokens)
            shared += request_bytes(draft, draft.model.counted, service.shared_tokens) if service.shared_tokens else 0
        groups = service.layout.data_parallel
        if service.engine is None:
            total = capacity(device)
            usable = int(Fraction(repr(service.memory_utilization or UTILIZATION)) * total)
            overhead = OVERHEAD if service.overhead_bytes is None else service.overhead_bytes
            sizes = total, usable, weights, overhead, token, request
            ranks = service.layout.decode_context_parallel
            stages.append(Fit(*sizes, groups, shared_bytes=shared, cache_ranks=ranks))
        else:
            stages.append(_engine_fit(service.engine, service, device, layers, (token, request, weights), shared))
    filled = [stage for stage in stages if stage.request_bytes or stage.left < 0]
    if not filled:
        name = shown_name(service.model.name or service.model.title)
        raise InputError(f"model: {name} keeps nothing of a request; allowed: a model with attention or a state")
    return min(filled, key=lambda stage: (stage.fits, stage.left - stage.request_bytes))


def most_requests(service: Service, device: Hardware) -> int:
    """Compute the requests that a replica takes: as many as fit, up to the engine's limit in each group."""
    fits = fit(service, device).fits
    if service.engine is None:
        return fits
    return min(fits, step_limits(service.engine, device)[1] * service.layout.data_parallel)


def _engine_fit(
    engine: Engine,
    service: Service,
    device: Hardware,
    layers: Sequence[DecoderLayer],
    sizes: tuple[int, int, int],
    shared: int,
) -> Fit:
    """Compute the memory of a stage as an engine divides it."""
    check_architecture(engine, device)
    token, request, weights = sizes
    model, layout = service.model, service.layout
    widths = model.hidden_size, model.vocab_size
    kept = reserve(engine, device, layers, *widths, layout, weights, service.memory_utilization, service.step_tokens)
    low: int | None = kept.low
    high: int | None = kept.high
    overhead = kept.overhead
    if service.overhead_bytes is not None:
        overhead, low, high = service.overhead_bytes, None, None
    total, groups = seen_capacity(device), layout.data_parallel
    ranks = layout.decode_context_parallel
    return Fit(total, kept.usable, weights, overhead, token, request, groups, engine.block, low, high, shared, ranks)


def request_bytes(service: Service, counted: Mapping[DecoderLayer, int], tokens: int) -> int:
    """Compute the memory of a request of `tokens` tokens in some layers on one rank [B]: its cache and its states."""
    return sum(
        repeats * (kv_bytes(layer, tokens, service) + state_bytes(layer, service.layout))
        for layer, repeats in counted.items()
    )


def own_bytes(service: Service, counted: Mapping[DecoderLayer, int], tokens: int) -> int:
    """Compute the memory of a request without the prefix that all requests share [B]."""
    shared = service.shared_tokens
    if not shared:
        return request_bytes(service, counted, tokens)
    return loaded_bytes(service, counted, shared, tokens - shared)


def loaded_bytes(service: Service, counted: Mapping[DecoderLayer, int], before: int, tokens: int) -> int:
    """Compute the cache of `tokens` tokens behind others in some layers on one rank, and the states after them [B].

    A layer with a window holds its last tokens, which those before them do not shorten.
    """
    if not tokens:
        return 0
    return sum(
        repeats * (max(whole - kv_bytes(layer, before, service), rest) + state_bytes(layer, service.layout))
        for layer, repeats in counted.items()
        for whole, rest in [(kv_bytes(layer, before + tokens, service), kv_bytes(layer, tokens, service))]
    )


def kv_bytes(layer: DecoderLayer, tokens: int, service: Service, paged: bool = True) -> int:
    """Compute the KV cache and the keys of the indexer of one layer on one rank [B].

    Every rank holds at least one head, or the entire latent, of its share of the tokens; keys of an indexer are on
    every rank.
    """
    attention, ranks = layer.attention, service.layout.tensor_parallel
    if attention is None:
        return 0
    engine = service.engine
    page = (service.types.get("page_size") or (engine.block if engine else None)) if paged else None
    share = held(tokens, service.layout.decode_context_parallel)
    elements = attention.kv_elements(share, page)
    rows = attention.kv_rows(share, page)
    if not attention.latent:
        heads = -(-attention.kv_heads // ranks)
        elements, rows = elements // attention.kv_heads * heads, rows // attention.kv_heads * heads
    kept = kv_dtype(service)
    return cache_bytes(elements, kept, rows) + cache_bytes(attention.index_elements(tokens, page), index_dtype(kept))


def state_bytes(layer: DecoderLayer, layout: Layout) -> int:
    """Compute the recurrent state of one layer and sequence on one rank [B]."""
    return layer.state_bytes // layout.tensor_parallel


def kv_dtype(service: Service) -> str:
    """Return the dtype of the KV cache."""
    return known_kv_dtype(
        service.types.get("kv_dtype")
        or service.model.kv_dtype
        or service.types.get("dtype")
        or served(service.model.dtype)
    )
