"""Weights on one device of a replica, divided among ranks and stages or replicated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from iomodel.models.registry import DecoderLayer, ModelSpec
from iomodel.planning.service import Service
from iomodel.planning.speculation import OWN
from iomodel.planning.step.layout import Layout, layer_linears
from iomodel.workloads.dtypes import QUANTISED, in_bytes, known_dtype, served

STORED = {"tf32": "fp32"}
"""Compute types with a different storage type."""


class Elements(Counter[str]):
    """Numbers of weights by the type in which they are stored [elements]."""

    @property
    def bytes(self) -> int:
        """Size of the weights, each in its type [B]."""
        return sum(in_bytes(elements, dtype) for dtype, elements in self.items())


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
    """Compute the weights of the fullest rank of a stage, those of adapters included [B]."""
    model, layout, types = service.model, service.layout, weight_types(service)
    total = _outside(service, types, first=place == 0, last=place == layout.pipeline_parallel - 1)
    for layer, times in Counter(layers).items():
        by_type = layer_weights(layer, model.hidden_size, layout, types, service.types.get("weight_dtype") is None)
        total.update({dtype: times * elements for dtype, elements in by_type.items()})
        if service.lora is not None:
            adapter = service.lora.elements(layer, model.hidden_size, layout)
            total[types.rest] += times * service.lora.adapters * adapter
    return total.bytes


def draft_weights(service: Service) -> int:
    """Compute the weights of the drafts on a rank [B]; a further layer shares the tables of its model."""
    draft = service.draft
    if draft is None:
        return 0
    if service.speculation is None or service.speculation.draft != OWN:
        return stage_weights(draft, draft.model.layers, 0)
    types, released = weight_types(draft), draft.types.get("weight_dtype") is None
    weights = layer_weights(draft.model.layers[0], draft.model.hidden_size, draft.layout, types, released)
    weights[types.rest] += sum(side.in_features * side.out_features for side in draft.model.side)
    return weights.bytes


def layer_weights(
    layer: DecoderLayer, hidden: int, layout: Layout, types: WeightTypes, released: bool = True
) -> Elements:
    """Count the weights of one layer on a rank; biases, norms and the router are replicated.

    >>> from iomodel.models.registry import model
    >>> llama = model("llama-3-70b")
    >>> types = WeightTypes("bf16", "bf16", "bf16")
    >>> layer_weights(llama.layers[0], 8192, Layout(tensor_parallel=16), types)  # each rank has a KV head
    Elements({'bf16': 54542336})
    """
    experts = {matrix.name: matrix for matrix in layer.linears(hidden)}
    weights = Elements()
    for linear in layer_linears(layer, hidden, layout):
        matrix = experts.get(linear.name)
        if matrix is None or not matrix.times:  # a router, which is never quantised, or the weights of another layer
            continue
        own = layer.dtypes.get(linear.name) if released else None
        dtype = own or (types.experts if matrix.expert else types.dense)
        weights[STORED.get(dtype, dtype)] += linear.times * linear.in_features * linear.out_features
    weights[types.rest] += layer.vectors(hidden)
    return weights


def _outside(service: Service, types: WeightTypes, first: bool, last: bool) -> Elements:
    """Count weights outside the layers on the first and last stage, rows of tables divided among ranks."""
    model, layout = service.model, service.layout
    table = _share(model.vocab_size, layout.tensor_parallel) * model.hidden_size
    weights = Elements()
    weights[types.rest] += int(first) * table
    if last and not (first and model.tied_embeddings):
        chosen = service.types.get("weight_dtype") is not None
        weights[types.rest if chosen or model.head_dtype is None else model.head_dtype] += table
    final = model.layers[-1]
    norm = model.hidden_size * (1 + final.norm_bias) if final.norms else 0
    bias = _share(model.vocab_size, layout.tensor_parallel) * model.lm_head_bias
    weights[types.rest] += (norm + bias) * last + model.other_weights * first
    weights[types.rest] += sum(side.in_features * side.out_features * side.times for side in model.side) * first
    return weights


def _share(size: int, ranks: int) -> int:
    return -(-size // ranks)
