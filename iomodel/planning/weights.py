"""The weights on one device of a replica: what is shared out among ranks and stages, and what each has for itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from iomodel.decoder.layout import Layout, LinearLayer, attention_linears, mlp_linears
from iomodel.model import DecoderLayer, ModelSpec
from iomodel.models.dtypes import QUANTISED, in_bytes, known_dtype, served
from iomodel.planning.service import Service

STORED = {"tf32": "fp32"}
"""Types of products that lie in memory as another."""


@dataclass(frozen=True)
class Elements:
    """Weights by how they are stored: dense matrices, those of experts, and what is never quantised [elements]."""

    dense: int = 0
    experts: int = 0
    rest: int = 0

    def __add__(self, other: Elements) -> Elements:
        return Elements(self.dense + other.dense, self.experts + other.experts, self.rest + other.rest)

    def __mul__(self, times: int) -> Elements:
        return Elements(times * self.dense, times * self.experts, times * self.rest)

    def in_bytes(self, types: WeightTypes) -> int:
        """What they occupy, each in its type [B]."""
        return (
            in_bytes(self.dense, types.dense) + in_bytes(self.experts, types.experts) + in_bytes(self.rest, types.rest)
        )


class WeightTypes(NamedTuple):
    """Types of the matrices, of those of experts, and of embeddings, output layer, norms, biases and routers."""

    dense: str
    experts: str
    rest: str


def weight_types(service: Service) -> WeightTypes:
    """The types that a step reckons with: what is not quantised in a release has the type of the activations.

    >>> from iomodel.planning.service import as_service
    >>> weight_types(as_service("gpt-oss-20b", 100, 10, Layout(), {}, 0.9, 0))
    WeightTypes(dense='bf16', experts='mxfp4', rest='bf16')
    """
    model, dtype, weights = service.model, service.types.get("dtype"), service.types.get("weight_dtype")
    rest = dtype or served(model.dtype)
    dense = weights or (model.dtype if model.dtype in QUANTISED else rest)
    found = dense, weights or model.expert_dtype or dense, rest
    return WeightTypes(*(known_dtype(STORED.get(name, name), "weight_dtype") for name in found))


def stage_layers(model: ModelSpec, layout: Layout) -> list[tuple[DecoderLayer, ...]]:
    """The layers of each stage of a pipeline, in order: as many to each, the first ones with one more."""
    stages = layout.pipeline_parallel
    each, more = divmod(len(model.layers), stages)
    starts = [place * each + min(place, more) for place in range(stages + 1)]
    return [model.layers[first:last] for first, last in pairwise(starts)]


def stage_weights(service: Service, layers: Sequence[DecoderLayer], place: int) -> int:
    """Weights of the fullest rank of a stage [B]."""
    model, layout = service.model, service.layout
    total = _outside(model, layout, first=place == 0, last=place == layout.pipeline_parallel - 1)
    for layer, times in Counter(layers).items():
        total += layer_weights(layer, model.hidden_size, layout) * times
    return total.in_bytes(weight_types(service))


def layer_weights(layer: DecoderLayer, hidden: int, layout: Layout) -> Elements:
    """Weights of one layer on a rank; biases, norms and the router are whole on each.

    >>> from iomodel.model import model
    >>> llama = model("llama-3-70b")
    >>> layer_weights(llama.layers[0], 8192, Layout(tensor_parallel=16)).dense  # 8 kv heads: 16 ranks hold one each
    54525952
    """
    attention, mlp = layer.attention, layer.mlp
    dense = _matrices(attention_linears(attention, hidden, layout))
    routed = _matrices(one for one in mlp_linears(mlp, hidden, layout) if "router" not in one.name)
    rest = attention.vectors(hidden) + mlp.vectors(hidden) + layer.norms * hidden * (1 + layer.norm_bias)
    return Elements(dense, routed, rest) if mlp.experts else Elements(dense + routed, 0, rest)


def _matrices(layers: Iterable[LinearLayer]) -> int:
    return sum(layer.times * layer.in_features * layer.out_features for layer in layers)


def _outside(model: ModelSpec, layout: Layout, first: bool, last: bool) -> Elements:
    """The embedding on the first stage, the last norm and the output layer on the last: rows shared out by ranks."""
    table = _share(model.vocab_size, layout.tensor_parallel) * model.hidden_size
    tables = int(first) + int(last) - int(first and last and model.tied_embeddings)
    final = model.layers[-1]
    norm = model.hidden_size * (1 + final.norm_bias) if final.norms else 0
    bias = _share(model.vocab_size, layout.tensor_parallel) * model.lm_head_bias
    return Elements(rest=tables * table + (norm + bias) * last)


def _share(whole: int, ranks: int) -> int:
    return -(-whole // ranks)
