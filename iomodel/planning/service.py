"""Service to plan for: a model, its lengths and types, the layout of a replica, and memory settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.models.registry import ModelSpec
from iomodel.models.registry import model as find_model
from iomodel.planning.engines import Engine, as_engine
from iomodel.planning.numbers import as_share
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.speculation import OWN, Speculation, draft_layout
from iomodel.planning.step.given import check_cache
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.lora import Lora, check_lora
from iomodel.planning.step.precision import as_linear_dtype
from iomodel.workloads.call import ELEMENT_SIZE, KV_QUARTERS
from iomodel.workloads.dtypes import WEIGHT_SIZE

OVERHEAD = 2 * 2**30
"""Memory of a device for runtime, graphs and activations without an engine [B]. A round number, not measured."""
UTILIZATION = 0.9
"""Usable share of a device's memory without an engine [-]."""


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
        ``dtype``, ``weight_dtype``, ``kv_dtype``, ``linear_dtype`` and ``page_size``, None for the default.
    memory_utilization : float or None
        Usable share of a device's memory [-]; None for 0.9, or the default of the engine.
    overhead_bytes : int or None
        Memory for anything but weights and cache on each device [B]; None for 2 GiB, or the estimate for the engine.
    engine : Engine or None
        Engine whose memory, blocks and batches are assumed.
    step_tokens : int or None
        Most tokens of a step; None for the default of the engine.
    prefix_cache : PrefixCache or None
        Tokens of prompts that are cached before their prefill.
    speculation : Speculation or None
        Drafts that the model verifies.
    lora : Lora or None
        Adapters of low rank on the device.
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
    prefix_cache: PrefixCache | None = None
    speculation: Speculation | None = None
    lora: Lora | None = None

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name or self.model.title

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

    def cached(self, prompt: int) -> int:
        """Compute the tokens of a prompt that are cached before its prefill [-]."""
        return 0 if self.prefix_cache is None else self.prefix_cache.cached(prompt, self.page_size)

    def laid_out(self, layout: Layout) -> Service:
        """Return the service with another layout."""
        return replace(self, layout=layout)


def as_service(
    model: ModelSpec | str,
    prompt: object,
    output: object,
    layout: object,
    types: Mapping[str, Any],
    memory_utilization: object,
    overhead_bytes: object,
    engine: object = None,
    step_tokens: object = None,
    prefix_cache: object = None,
    speculation: object = None,
    lora: object = None,
) -> Service:
    """Build a service from arguments, or raise an error with the name of the field."""
    spec = model if isinstance(model, ModelSpec) else find_model(model)
    if not isinstance(layout, Layout):
        raise InputError(f"layout: {shown(layout)} given; allowed: an iomodel.Layout")
    lengths = {"prompt": as_integer("prompt", prompt), "output": as_integer("output", output)}
    tokens, most = sum(lengths.values()), spec.max_positions
    if most is not None and tokens > most:
        raise InputError(f"prompt + output: {tokens:,} tokens given; allowed: at most {most:,}, the model's positions")
    layout.check(spec)
    if layout.context_parallel > 1:
        raise InputError(
            f"layout.context_parallel: {layout.context_parallel} given; allowed: 1, because plans do not divide "
            "prompts; decode_context_parallel divides caches"
        )
    if prefix_cache is not None:
        if not isinstance(prefix_cache, PrefixCache):
            raise InputError(f"prefix_cache: {shown(prefix_cache)} given; allowed: an iomodel.PrefixCache")
        prefix_cache.check(lengths["prompt"])
        if prefix_cache.cascade and layout.decode_context_parallel > 1:
            raise InputError(
                "prefix_cache.cascade: True given with decode_context_parallel = "
                f"{layout.decode_context_parallel}; allowed: False, because engines do not combine both"
            )
    if speculation is not None:
        if not isinstance(speculation, Speculation):
            raise InputError(f"speculation: {shown(speculation)} given; allowed: an iomodel.Speculation")
        speculation.model_of(spec)
    check_lora(lora, spec)
    check_cache(spec, types.get("kv_dtype"))
    serving = as_engine(engine)
    if serving is not None:
        serving.check_cache(spec, layout)
    return Service(
        model=spec,
        **lengths,
        layout=layout,
        types=_checked(types),
        memory_utilization=None if memory_utilization is None else as_share("memory_utilization", memory_utilization),
        overhead_bytes=None if overhead_bytes is None else as_integer("overhead_bytes", overhead_bytes, least=0),
        engine=serving,
        step_tokens=None if step_tokens is None else as_integer("step_tokens", step_tokens),
        prefix_cache=prefix_cache,
        speculation=speculation,
        lora=lora,  # type: ignore[arg-type]
    )


def _checked(types: Mapping[str, Any]) -> FrozenDict[str, Any]:
    """Validate the types, each known or None, and the page size."""
    allowed: dict[str, Mapping[str, Any]] = {
        "dtype": ELEMENT_SIZE,
        "kv_dtype": KV_QUARTERS,
        "weight_dtype": WEIGHT_SIZE,
    }
    for field, names in allowed.items():
        value = types.get(field)
        if value is not None and (not isinstance(value, str) or value not in names):
            raise UnknownNameError(field, value, names)
    as_linear_dtype(types.get("linear_dtype"))
    page = types.get("page_size")
    return FrozenDict({**types, "page_size": None if page is None else as_integer("page_size", page)})
