"""Weights on one device of a replica, divided among ranks and stages or replicated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from iomodel.models.registry import DecoderLayer, ModelSpec
from iomodel.planning.service import Service
from iomodel.planning.step.layout import Layout, LinearLayer, attention_linears, mlp_linears
from iomodel.workloads.dtypes import QUANTISED, in_bytes, known_dtype, served

STORED = {"tf32": "fp32"}
"""Compute types with a different storage type."""


@dataclass(frozen=True)
class Elements:
    """Weights by storage: dense matrices, those of experts, and those never quantised [elements]."""

    dense: int = 0
    experts: int = 0
    rest: int = 0

    def __add__(self, other: Elements) -> Elements:
        return Elements(self.dense + other.dense, self.experts + other.experts, self.rest + other.rest)

    def __mul__(self, times: int) -> Elements:
        return Elements(times * self.dense, times * self.experts, times * self.rest)

    def in_bytes(self, types: WeightTypes) -> int:
        """Compute the size of the weights, each in its type [B]."""
        return (
            in_bytes(self.dense, types.dense) + in_bytes(self.experts, types.experts) + in_bytes(self.rest, types.rest)
        )


class WeightTypes(NamedTuple):
    """Types of the matrices, of those of experts, and of embeddings, output layer, norms, biases and routers."""

    dense: str
    experts: str
    rest: str


def weight_types(service: Service) -> WeightTypes:
    """Resolve the weight types of a step; weights not quantised in a release have the type of the activations.

    >>> from iomodel.planning.service import as_service
    >>> weight_types(as_service("gpt-oss-20b", 100, 10, Layout(), {}, 0.9, 0))
    WeightTypes(dense='bf16', experts='mxfp4', rest='bf16')
    """
    model, dtype, weights = service.model, service.types.get("dtype"), service.types.get("weight_dtype")
    rest = dtype or served(model.dtype)
    dense = weights or (model.dtype if model.dtype in QUANTISED else rest)
    names = dense, weights or model.expert_dtype or dense, rest
    return WeightTypes(*(known_dtype(STORED.get(name, name), "weight_dtype") for name in names))


def stage_layers(model: ModelSpec, layout: Layout) -> list[tuple[DecoderLayer, ...]]:
    """List the layers of each pipeline stage in order, divided evenly; the first stages take the remainder."""
    stages = layout.pipeline_parallel
    share, more = divmod(len(model.layers), stages)
    starts = [place * share + min(place, more) for place in range(stages + 1)]
    return [model.layers[first:last] for first, last in pairwise(starts)]


def stage_weights(service: Service, layers: Sequence[DecoderLayer], place: int) -> int:
    """Compute the weights of the fullest rank of a stage [B]."""
    model, layout = service.model, service.layout
    total = _outside(model, layout, first=place == 0, last=place == layout.pipeline_parallel - 1)
    for layer, times in Counter(layers).items():
        total += layer_weights(layer, model.hidden_size, layout) * times
    return total.in_bytes(weight_types(service))


def layer_weights(layer: DecoderLayer, hidden: int, layout: Layout) -> Elements:
    """Count the weights of one layer on a rank; biases, norms and the router are replicated.

    >>> from iomodel.models.registry import model
    >>> llama = model("llama-3-70b")
    >>> layer_weights(llama.layers[0], 8192, Layout(tensor_parallel=16)).dense  # 8 KV heads: each of 16 ranks holds one
    54525952
    """
    attention, mlp = layer.attention, layer.mlp
    dense = _matrices(attention_linears(attention, hidden, layout))
    routed = _matrices(linear for linear in mlp_linears(mlp, hidden, layout) if "router" not in linear.name)
    rest = attention.vectors(hidden) + mlp.vectors(hidden) + layer.norms * hidden * (1 + layer.norm_bias)
    return Elements(dense, routed, rest) if mlp.experts else Elements(dense + routed, 0, rest)


def _matrices(layers: Iterable[LinearLayer]) -> int:
    return sum(layer.times * layer.in_features * layer.out_features for layer in layers)


def _outside(model: ModelSpec, layout: Layout, first: bool, last: bool) -> Elements:
    """Count embedding, last norm and output layer on the first and last stage, with rows divided among ranks."""
    table = _share(model.vocab_size, layout.tensor_parallel) * model.hidden_size
    tables = int(first) + int(last) - int(first and last and model.tied_embeddings)
    final = model.layers[-1]
    norm = model.hidden_size * (1 + final.norm_bias) if final.norms else 0
    bias = _share(model.vocab_size, layout.tensor_parallel) * model.lm_head_bias
    return Elements(rest=tables * table + (norm + bias) * last)


def _share(size: int, ranks: int) -> int:
    return -(-size // ranks)
