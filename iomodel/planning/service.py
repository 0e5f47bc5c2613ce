"""What is to be served: a model, its lengths and types, the layout of a replica, and the rules of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from iomodel.decoder.layout import Layout
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.frozen import FrozenDict
from iomodel.model import ModelSpec
from iomodel.model import model as find_model
from iomodel.models.dtypes import WEIGHT_SIZE
from iomodel.planning.numbers import as_share
from iomodel.validation import as_integer
from iomodel.workload import ELEMENT_SIZE

OVERHEAD = 2 * 2**30
"""What a device needs beside weights and cache [B]: runtime, graphs, activations. A round number, not measured."""


@dataclass(frozen=True)
class Service:
    """What is to be served.

    Attributes
    ----------
    model : ModelSpec
        The model.
    prompt, output : int
        Tokens of a request, and tokens that it is answered with.
    layout : Layout
        How a replica shares out the model.
    types : mapping
        ``dtype``, ``weight_dtype``, ``kv_dtype`` and ``page_size``, None where the model says.
    memory_utilization : float
        Share of a device's memory that may be used [-].
    overhead_bytes : int
        What a device needs beside weights and cache [B].
    """

    model: ModelSpec
    prompt: int
    output: int
    layout: Layout
    types: Mapping[str, Any]
    memory_utilization: float
    overhead_bytes: int

    @property
    def name(self) -> str:
        """What the model is called."""
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
        """Keys that the first and the last decode step see [-]."""
        return self.prompt + 1, self.prompt + max(1, self.steps)

    @property
    def devices(self) -> int:
        """Devices of a replica [-]."""
        return self.layout.devices

    def laid_out(self, layout: Layout) -> Service:
        """The same with another layout."""
        return replace(self, layout=layout)


def as_service(
    model: ModelSpec | str,
    prompt: object,
    output: object,
    layout: object,
    types: Mapping[str, Any],
    memory_utilization: object,
    overhead_bytes: object,
) -> Service:
    """The service that these arguments describe, or an error with the name of the field."""
    found = model if isinstance(model, ModelSpec) else find_model(model)
    if not isinstance(layout, Layout):
        raise InputError(f"layout: {shown(layout)} given; allowed: an iomodel.Layout")
    lengths = {"prompt": as_integer("prompt", prompt), "output": as_integer("output", output)}
    tokens, most = sum(lengths.values()), found.max_positions
    if most is not None and tokens > most:
        raise InputError(f"prompt + output: {tokens:,} tokens given; allowed: at most {most:,}, the model's positions")
    layout.check(found)
    return Service(
        model=found,
        **lengths,
        layout=layout,
        types=_checked(types),
        memory_utilization=as_share("memory_utilization", memory_utilization),
        overhead_bytes=as_integer("overhead_bytes", overhead_bytes, least=0),
    )


def _checked(types: Mapping[str, Any]) -> FrozenDict[str, Any]:
    """The types, each known or None, and the size of a page."""
    allowed: dict[str, Mapping[str, Any]] = {
        "dtype": ELEMENT_SIZE,
        "kv_dtype": ELEMENT_SIZE,
        "weight_dtype": WEIGHT_SIZE,
    }
    for field, names in allowed.items():
        value = types.get(field)
        if value is not None and (not isinstance(value, str) or value not in names):
            raise UnknownNameError(field, value, names)
    page = types.get("page_size")
    return FrozenDict({**types, "page_size": None if page is None else as_integer("page_size", page)})
