"""What lies in a device's memory, and how many requests fit: exact integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from iomodel.errors import InfeasibleError
from iomodel.hardware import Hardware
from iomodel.models.dtypes import known_kv_dtype, served
from iomodel.models.layers import DecoderLayer
from iomodel.planning.edits import capacity
from iomodel.planning.service import Service
from iomodel.planning.text import gigabytes, layout_text
from iomodel.planning.weights import stage_layers, stage_weights
from iomodel.workload import ELEMENT_SIZE


@dataclass(frozen=True)
class Fit:
    """The memory of the device that has the least room, in the fullest stage of a pipeline.

    Attributes
    ----------
    capacity, usable : int
        The device's memory, and the share of it that may be used [B].
    weights, overhead : int
        Weights of the device; what it needs beside weights and cache [B].
    token_bytes, request_bytes : int
        KV cache of the first token, and of a whole request: windows hold no more than their width, and pages are
        whole [B].
    groups : int
        Data-parallel groups of ranks, each with requests of its own [-].
    """

    capacity: int
    usable: int
    weights: int
    overhead: int
    token_bytes: int
    request_bytes: int
    groups: int = 1

    @property
    def left(self) -> int:
        """What is left for the KV cache; negative where the weights do not fit [B]."""
        return self.usable - self.weights - self.overhead

    @property
    def fits(self) -> int:
        """Requests that fit a replica: what is left over the bytes of a request, in each group [-]."""
        return self.groups * max(0, self.left // self.request_bytes)

    @property
    def missing(self) -> int:
        """What one request lacks [B]; 0 where one fits."""
        return max(0, self.request_bytes - self.left)

    def needed(self, batch: int) -> int:
        """Memory that the device would have to have for so many requests [B]."""
        used = self.weights + self.overhead + -(-batch // self.groups) * self.request_bytes
        return -(-used * self.capacity // self.usable)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {**self.__dict__, "left": self.left, "fits": self.fits}


def fit(service: Service, device: Hardware) -> Fit:
    """The memory of the device with the least room.

    Raises
    ------
    SpecError
        Nobody knows how much memory the device has.
    """
    total = capacity(device)
    usable = int(Fraction(repr(service.memory_utilization)) * total)
    stages = []
    for place, layers in enumerate(stage_layers(service.model, service.layout)):
        token = sum(kv_bytes(layer, 1, service, paged=False) for layer in layers)
        request = sum(kv_bytes(layer, service.tokens, service) for layer in layers)
        weights = stage_weights(service, layers, place)
        groups = service.layout.data_parallel
        stages.append(Fit(total, usable, weights, service.overhead_bytes, token, request, groups))
    return min(stages, key=lambda one: (one.fits, one.left - one.request_bytes))


def kv_bytes(layer: DecoderLayer, tokens: int, service: Service, paged: bool = True) -> int:
    """KV cache of one layer on one rank [B]: every rank holds at least one head, and all of a latent."""
    attention, ranks = layer.attention, service.layout.tensor_parallel
    cached = attention.cached_tokens(tokens, service.types.get("page_size") if paged else None)
    elements = attention.kv_elements_per_token
    if not attention.latent:
        elements = elements // attention.kv_heads * -(-attention.kv_heads // ranks)
    return cached * elements * ELEMENT_SIZE[kv_dtype(service)]


def kv_dtype(service: Service) -> str:
    """The type of the cache."""
    return known_kv_dtype(service.types.get("kv_dtype") or service.types.get("dtype") or served(service.model.dtype))


def too_large(service: Service, device: Hardware, found: Fit, batch: int) -> InfeasibleError:
    """The error where no request fits, or not the batch that was asked for."""
    where = f"{device.id or device.name}, {layout_text(service.layout)}"
    if not found.fits:
        return InfeasibleError(
            f"memory: {service.name} and one request of {service.tokens:,} tokens need "
            f"{gigabytes(found.missing)} more on each device ({where}); allowed: more devices to a replica, narrower "
            "weights, a shorter request",
            least=found.needed(1),
            unit="B",
        )
    return InfeasibleError(
        f"batch: {batch:,} requests of {service.tokens:,} tokens given; allowed: at most {found.fits:,}, as many as "
        f"fit a replica ({where})",
        least=found.needed(batch),
        unit="B",
    )
