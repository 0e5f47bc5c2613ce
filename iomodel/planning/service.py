"""Service to plan for: a model, its lengths and types, the layout of a replica, and memory settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.models.registry import ModelSpec
from iomodel.models.registry import model as find_model
from iomodel.planning.engines import Engine, as_engine
from iomodel.planning.numbers import as_share
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.precision import as_linear_dtype
from iomodel.workloads.call import ELEMENT_SIZE
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
    def contexts(self) -> tuple[int, int]:
        """Keys visible to the first and the last decode step [-]."""
        return self.prompt + 1, self.prompt + max(1, self.steps)

    @property
    def devices(self) -> int:
        """Devices of a replica [-]."""
        return self.layout.devices

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
    return Service(
        model=spec,
        **lengths,
        layout=layout,
        types=_checked(types),
        memory_utilization=None if memory_utilization is None else as_share("memory_utilization", memory_utilization),
        overhead_bytes=None if overhead_bytes is None else as_integer("overhead_bytes", overhead_bytes, least=0),
        engine=as_engine(engine),
        step_tokens=None if step_tokens is None else as_integer("step_tokens", step_tokens),
    )


def _checked(types: Mapping[str, Any]) -> FrozenDict[str, Any]:
    """Validate the types, each known or None, and the page size."""
    allowed: dict[str, Mapping[str, Any]] = {
        "dtype": ELEMENT_SIZE,
        "kv_dtype": ELEMENT_SIZE,
        "weight_dtype": WEIGHT_SIZE,
    }
    for field, names in allowed.items():
        value = types.get(field)
        if value is not None and (not isinstance(value, str) or value not in names):
            raise UnknownNameError(field, value, names)
    as_linear_dtype(types.get("linear_dtype"))
    page = types.get("page_size")
    return FrozenDict({**types, "page_size": None if page is None else as_integer("page_size", page)})
