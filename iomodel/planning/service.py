"""Service to plan for: a model, its lengths and types, the layout of a replica, and memory settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, Unpack

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.cache import BoundedCache
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware
from iomodel.devices.edits import capacity
from iomodel.errors import InputError, SpecError, shown, shown_name
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.file_types import in_blocks
from iomodel.models.registry import ModelSpec
from iomodel.planning.bench_limits import bench_limits
from iomodel.planning.checked_numbers import as_share
from iomodel.planning.engines import (
    ASSUMED,
    AUTO,
    ENGINES,
    GGML,
    Engine,
    Reserve,
    as_engine,
    assumed_on,
    check_architecture,
    engine_name,
    reserve,
    seen_capacity,
    step_limits,
)
from iomodel.planning.formatting import gigabytes
from iomodel.planning.loaded_weights import as_backend, padded_bytes, usual_backend
from iomodel.planning.memory_parts import log_lines, memory_parts
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.service_memory import Fit, RequestMemory
from iomodel.planning.service_options import ServiceOptions
from iomodel.planning.speculation import OWN, Speculation, draft_layout
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.lora import Lora, check_lora
from iomodel.planning.step.step_arguments import as_layout, as_stored, check_cache, check_types, with_precision
from iomodel.planning.weights import ReplicaWeights, stage_layers
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.dtypes import WEIGHT_SIZE, known_kv_dtype, served

GGML_ROWS, GGML_CONTEXT = 512, 256 * 2**20
"""Rows of a step of llama.cpp (``n_ubatch``), whose scores of the vocabulary in fp32 are its largest buffer [rows], and
memory of a context of CUDA and smaller buffers [B]: of an RTX 4080 with Llama 3 8B in fp16, whose cache of 4,096 tokens
fits beside the weights, at most 1.2 GB are left for both (tests/measured/llama_cpp.csv)."""
OVERHEAD = 2 * 2**30
"""Memory of a device for runtime, graphs and activations without an engine [B]. A round number, not measured."""
UTILIZATION = 0.9
"""Usable share of a device's memory without an engine [-]."""
DEVICES = 16
"""Most devices whose memory a service keeps."""
TYPES = ("dtype", "weight_dtype", "kv_dtype", "linear_dtype", "page_size", "attention_algorithm")
"""Options of a step that all steps of a service share, besides its adapters."""


@dataclass(frozen=True)
class Service:
    """A model served with fixed lengths, types and layout.

    Attributes
    ----------
    model : ModelSpec
        The model.
    prompt, output : int
        Tokens of a prompt, and of its output.
    layout : Layout
        Parallel layout of a replica.
    types : mapping
        Options of :func:`iomodel.step`, by :data:`TYPES`; None for the default.
    memory_utilization : float or None
        Usable share of a device's memory [-]; None for 0.9, or the default of the engine.
    overhead_bytes : int or None
        Memory for anything but weights and cache on each device [B]; None for 2 GiB, or the estimate for the engine.
    engine : Engine or None
        Engine whose memory, blocks and batches are assumed; :meth:`on` a device where none was given.
    step_tokens, step_requests : int or None
        Most tokens and most requests of a step; None for those of the engine.
    moe_backend : str or None
        Kernels of experts in mxfp4, by :data:`iomodel.planning.loaded_weights.BACKENDS`; None for those of the engine.
    prefix_cache : PrefixCache or None
        Tokens of prompts that are cached before their prefill.
    speculation : Speculation or None
        Drafts that the model verifies.
    lora : Lora or None
        Adapters of low rank on the device.
    alone : bool
        llama.cpp runs the model: without an engine, on all of the memory, with some of the layers on each device.
    """

    model: ModelSpec
    prompt: int
    output: int
    layout: Layout
    types: Mapping[str, Any]
    memory_utilization: float | None
    overhead_bytes: int | None
    engine: Engine | None = None
    step_tokens: int | None = None
    step_requests: int | None = None
    moe_backend: str | None = None
    prefix_cache: PrefixCache | None = None
    speculation: Speculation | None = None
    lora: Lora | None = None
    alone: bool = False

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.label

    @property
    def tokens(self) -> int:
        """Tokens in the cache when a request ends [-]."""
        return self.prompt + self.output

    @property
    def steps(self) -> int:
        """Decode steps of a request: the first token comes from the prefill [-]."""
        return self.output - 1

    @property
    def tokens_at_once(self) -> int:
        """Tokens of a request that a decode step computes: the next one, and the drafts behind it [-]."""
        return 1 if self.speculation is None else 1 + self.speculation.tokens

    @property
    def contexts(self) -> tuple[int, int]:
        """Keys visible to the first and the last decode step [-]."""
        return self.prompt + 1, self.prompt + max(1, self.steps)

    @property
    def devices(self) -> int:
        """Devices of a replica [-]."""
        return self.layout.devices

    @property
    def page_size(self) -> int | None:
        """Tokens per page of the cache; None for single tokens."""
        page: int | None = self.types.get("page_size")
        return page

    @property
    def shared_tokens(self) -> int:
        """Tokens of the prefix that all requests share and that is stored once [-]."""
        return 0 if self.prefix_cache is None else self.prefix_cache.shared(self.page_size)

    @cached_property
    def draft(self) -> Service | None:
        """The same service by the model that computes the drafts; None without one."""
        spec = None if self.speculation is None else self.speculation.model_of(self.model)
        if self.speculation is None or spec is None:
            return None
        own = self.speculation.draft == OWN
        types = self.types if own else FrozenDict({**self.types, "weight_dtype": None})
        return replace(
            self, model=spec, layout=draft_layout(spec, self.layout), types=types, speculation=None, lora=None
        )

    @property
    def usual_overhead(self) -> int:
        """Memory for anything but weights and cache without an engine [B]."""
        return GGML_CONTEXT + 4 * GGML_ROWS * self.model.vocab_size if self.alone else OVERHEAD

    @property
    def weights(self) -> ReplicaWeights:
        """Weights of a replica."""
        types = self.types.get("dtype"), self.types.get("weight_dtype")
        return ReplicaWeights(self.model, self.layout, *types, self.lora, self.alone)

    @cached_property
    def requests(self) -> RequestMemory:
        """Memory of requests on a rank."""
        dtype = self.types.get("kv_dtype") or self.model.kv_dtype or self.types.get("dtype")
        page = self.page_size or (self.engine.block if self.engine else None)
        kept = known_kv_dtype(dtype or served(self.model.dtype))
        return RequestMemory(self.layout, kept, page, self.shared_tokens, self.engine, self.model.state_dtype)

    def on(self, device: Hardware) -> Service:
        """Return the service with the engine that is assumed on a device, unless the engine was given."""
        if self.engine != ASSUMED or assumed_on(device) == ASSUMED:
            return self
        return replace(self, engine=None)

    @property
    def options(self) -> dict[str, Any]:
        """Options with which :func:`as_service` builds the service again, for its model, lengths and layout."""
        own = [field.name for field in fields(self) if field.name in ServiceOptions.__annotations__]
        engine = {"engine": GGML} if self.alone else {}
        return {**self.types, **{name: getattr(self, name) for name in own}, **engine}

    @cached_property
    def _memories(self) -> BoundedCache[tuple[Hardware, Fit]]:
        return BoundedCache(DEVICES)

    def memory(self, device: Hardware) -> Fit:
        """Compute the memory of the device with the least room, once for each device.

        Raises
        ------
        SpecError
            The memory of the device is unknown.
        InputError
            No layer keeps anything of a request, so that any number of requests would fit.
        """
        # The entry keeps the device alive, so that no other object takes its id.
        return self._memories.get(id(device), lambda: (device, self._fullest(device)))[1]

    def most_requests(self, device: Hardware) -> int:
        """Compute the requests that a replica takes: as many as fit, up to the limit of a step in each group."""
        return self.at_once(device, self.memory(device).fits)

    def at_once(self, device: Hardware, requests: int) -> int:
        """Limit the requests of a replica to those of a step in each group: of the engine, or as given without one.

        llama.cpp has a slot for one request, unless more are given (``--parallel``).
        """
        most = self.step_requests if self.engine is None else self.limits(device)[1]
        most = 1 if most is None and self.alone else most
        return requests if most is None else min(requests, most * self.layout.data_parallel)

    def limits(self, device: Hardware) -> tuple[int, int]:
        """Return the most tokens and requests of a step of the engine."""
        engine = self.engine or ENGINES["vllm"]
        tokens, requests = (engine.tuned and self._tuned(device)) or step_limits(engine, device)
        return self.step_tokens or tokens, self.step_requests or requests

    def _tuned(self, device: Hardware) -> tuple[int, int] | None:
        """Return the most tokens and requests of a step that the benchmark of the engine sets, if it does."""
        weights = self.weights.types.experts
        lengths = self.prompt, self.output
        entry = float(ELEMENT_SIZE.get(self.requests.dtype, 2))
        return bench_limits(self.model, device, self.devices, weights, entry, *lengths)

    def _fullest(self, device: Hardware) -> Fit:
        divided = self.layout.pipeline_parallel > 1
        counted = [Counter(some) for some in stage_layers(self.model, self.layout)] if divided else [self.model.counted]
        stages = [self._stage(device, place, some) for place, some in enumerate(counted)]
        filled = [stage for stage in stages if stage.request_bytes or stage.left < 0]
        if not filled:
            name = shown_name(self.name)
            raise InputError(f"model: {name} keeps nothing of a request; allowed: a model with attention or a state")
        return min(filled, key=lambda stage: (stage.fits, stage.left - stage.request_bytes))

    def _stage(self, device: Hardware, place: int, counted: Mapping[DecoderLayer, int]) -> Fit:
        """Compute the memory of a device in one stage of some layers; drafts are computed in the last."""
        draft = self.draft
        weights = self.weights.of_stage(counted, place)
        request, shared = self.requests.own(counted, self.tokens), self.requests.of_prefix(counted)
        if draft is not None and self.speculation is not None and place == self.layout.pipeline_parallel - 1:
            own = self.speculation.draft == OWN
            weights += draft.weights.of_further_layer() if own else draft.weights.of_stage(draft.model.counted, 0)
            request += draft.requests.own(draft.model.counted, self.tokens)
            shared += draft.requests.of_prefix(draft.model.counted)
        padded = self._padding(device, counted)
        weights += padded
        kept = self._reserve(device, counted, weights, place)
        if self.overhead_bytes is not None:
            kept = Reserve(kept.usable, self.overhead_bytes, None, None)
        blocks = self.requests.blocks(counted)
        token = sum(times * self.requests.cache(layer, 1, paged=False) for layer, times in counted.items())
        size = blocks.bytes * len(blocks.groups) / blocks.block if blocks else token
        taken = weights + kept.overhead + shared
        kept = kept._replace(usable=min(kept.usable, taken + self._most_cache(size, kept.usable)))
        if self.engine is not None and self.engine.cache_bytes is not None:
            kept = kept._replace(usable=min(seen_capacity(device), taken + self.engine.cache_bytes))
        room = kept.usable - taken
        fit = Fit(
            capacity=capacity(device) if self.engine is None else seen_capacity(device),
            usable=kept.usable,
            weights=weights,
            overhead=kept.overhead,
            token_bytes=token,
            request_bytes=request,
            groups=self.layout.data_parallel,
            block=blocks.block if blocks else 1 if self.engine is None else self.engine.block,
            overhead_low=kept.low,
            overhead_high=kept.high,
            shared_bytes=shared,
            cache_ranks=self.layout.decode_context_parallel,
            padding=padded,
            block_bytes=blocks.bytes if blocks else 0,
            block_groups=len(blocks.groups) if blocks else 1,
            charged=blocks.charged(self.tokens, self.limits(device)[0]) if blocks else 0,
            pools=self.requests.pools(counted, self.tokens, room),
        )
        parts = tuple(memory_parts(fit, kept.parts))
        return replace(fit, parts=parts, log=log_lines(fit, self.engine, self.tokens))

    def _most_cache(self, token: float, room: int) -> int:
        """Return the memory of the tokens that a flag of the engine allows; all without one, or with a pool of states.

        `token` are the bytes of a token in the layers of all groups.
        """
        engine = self.engine
        pooled = engine is not None and engine.state_ratio is not None and self.model.state_bytes() > 0
        if engine is None or engine.cache_tokens is None or pooled:
            return room
        return ceil(token * ceil(engine.cache_tokens / self.layout.decode_context_parallel))

    def _padding(self, device: Hardware, counted: Mapping[DecoderLayer, int]) -> int:
        """Compute the bytes that kernels of the engine add to the experts of a stage [B]."""
        if self.engine is None:
            return 0
        usual, own = self.weights.types.experts, self.weights.released
        narrow = [
            (layer, times)
            for layer, times in counted.items()
            if ((layer.dtypes.get("expert up") if own else None) or usual) == "mxfp4"
        ]
        backend = self.moe_backend or usual_backend(self.engine, device)
        return padded_bytes(narrow, self.model.hidden_size, self.layout, backend)

    def _reserve(self, device: Hardware, layers: Iterable[DecoderLayer], weights: int, place: int) -> Reserve:
        """Compute the memory of a device that may be used, and that is kept, as the engine divides it."""
        try:
            size = capacity(device)
        except SpecError as error:
            raise SpecError(f"{error}; {self._whatever_its_memory(device, weights)}") from None
        if self.engine is None:
            share = Fraction(repr(self.memory_utilization or (1.0 if self.alone else UTILIZATION)))
            return Reserve(int(share * size), self.usual_overhead, None, None)
        check_architecture(self.engine, device)
        limits = self.limits(device)
        given, last = self.memory_utilization, place == self.layout.pipeline_parallel - 1
        return reserve(self.engine, device, layers, self.model, self.layout, weights, given, limits, last)

    def _whatever_its_memory(self, device: Hardware, weights: int) -> str:
        """State what holds for a device of any memory: its weights, and the rate at which they can be read."""
        bandwidth, tokens = device.memory.hbm.bandwidth, ""
        if bandwidth is not None and self.layout.expert_parallel == 1 and self.speculation is None:
            tokens = f" and allow one request at most {bandwidth.value / self.weights.of_token():,.1f} tokens/s"
        return f"whatever the memory, weights take {gigabytes(weights)}{tokens}"

    def cached(self, prompt: int) -> int:
        """Compute the tokens of a prompt that are cached before its prefill [-]."""
        return 0 if self.prefix_cache is None else self.prefix_cache.cached(prompt, self.page_size)

    def laid_out(self, layout: Layout) -> Service:
        """Return the service with another layout."""
        return self if layout == self.layout else replace(self, layout=layout)


def as_service(
    model: ModelSpec | str, prompt: object, output: object, layout: object = Layout(), **options: Unpack[ServiceOptions]
) -> Service:
    """Build a service from arguments, or raise an error with the name of the field."""
    spec, stored = as_stored(model, options)
    types, layout = _types(stored), as_layout(layout)
    lengths = {"prompt": as_integer("prompt", prompt), "output": as_integer("output", output)}
    named = engine_name(options.get("engine", AUTO))
    alone = isinstance(named, str) and (named == GGML or (named == AUTO and in_blocks(spec)))
    tokens, most = sum(lengths.values()), spec.max_positions
    if most is not None and tokens > most:
        raise InputError(f"prompt + output: {tokens:,} tokens given; allowed: at most {most:,}, the longest context")
    layout.check(spec)
    if layout.context_parallel > 1:
        raise InputError(
            f"layout.context_parallel: {layout.context_parallel} given; allowed: 1, because plans do not divide "
            "prompts; decode_context_parallel divides caches"
        )
    share, overhead = options.get("memory_utilization"), options.get("overhead_bytes")
    lora = options.get("lora")
    check_lora(lora, spec)
    check_cache(spec, types["kv_dtype"])
    engine = None if alone else as_engine(named)
    if engine is not None:
        engine.check_cache(spec, layout)
    return Service(
        model=spec,
        **lengths,
        layout=layout,
        types=types,
        memory_utilization=None if share is None else as_share("memory_utilization", share),
        overhead_bytes=None if overhead is None else as_integer("overhead_bytes", overhead, least=0),
        engine=engine,
        moe_backend=as_backend(options.get("moe_backend")),
        step_tokens=_limit("step_tokens", options.get("step_tokens")),
        step_requests=_limit("step_requests", options.get("step_requests")),
        prefix_cache=_prefix_cache(options.get("prefix_cache"), lengths["prompt"], layout),
        speculation=_speculation(options.get("speculation"), spec),
        lora=lora,
        alone=alone,
    )


def _limit(name: str, value: object) -> int | None:
    return None if value is None else as_integer(name, value)


def _prefix_cache(cache: object, prompt: int, layout: Layout) -> PrefixCache | None:
    if cache is None:
        return None
    if not isinstance(cache, PrefixCache):
        raise InputError(f"prefix_cache: {shown(cache)} given; allowed: an iomodel.PrefixCache")
    cache.check(prompt)
    if cache.cascade and layout.decode_context_parallel > 1:
        raise InputError(
            f"prefix_cache.cascade: True given with decode_context_parallel = {layout.decode_context_parallel}; "
            "allowed: False, because engines do not combine both"
        )
    return cache


def _speculation(drafts: object, model: ModelSpec) -> Speculation | None:
    if drafts is None:
        return None
    if not isinstance(drafts, Speculation):
        raise InputError(f"speculation: {shown(drafts)} given; allowed: an iomodel.Speculation")
    drafts.model_of(model)
    return drafts


def _types(options: Mapping[str, Any]) -> FrozenDict[str, Any]:
    """Validate the types, each known or None, the page size, and the algorithm of attention."""
    types = with_precision(options.get("precision"), {name: options.get(name) for name in TYPES})
    check_types(types, WEIGHT_SIZE)
    page, algorithm = types["page_size"], types["attention_algorithm"]
    types["page_size"] = None if page is None else as_integer("page_size", page)
    types["attention_algorithm"] = None if algorithm is None else find_algorithm(algorithm)
    return FrozenDict(types)
