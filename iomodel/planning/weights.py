"""Weights on one device of a replica, divided among ranks and stages or replicated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from iomodel.models.registry import DecoderLayer, ModelSpec
from iomodel.planning.step.layout import Layout, layer_linears
from iomodel.planning.step.lora import Lora
from iomodel.workloads.dtypes import QUANTISED, ggml_tables, in_bytes, known_dtype, served
from iomodel.workloads.workload import stored


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


@dataclass(frozen=True)
class ReplicaWeights:
    """Weights of a model and of its adapters on the ranks of a layout.

    `dtype` is the type of the activations, `weight_dtype` that of all matrices; None for the defaults of the model.
    """

    model: ModelSpec
    layout: Layout
    dtype: str | None = None
    weight_dtype: str | None = None
    lora: Lora | None = None

    @property
    def types(self) -> WeightTypes:
        """Types of a step; weights not quantised in a release have the type of the activations.

        >>> from iomodel.models.registry import model
        >>> ReplicaWeights(model("gpt-oss-20b"), Layout()).types
        WeightTypes(dense='bf16', experts='mxfp4', rest='bf16')
        """
        rest = self.dtype or served(self.model.dtype)
        dense = self.weight_dtype or (self.model.dtype if self.model.dtype in QUANTISED else rest)
        names = dense, self.weight_dtype or self.model.expert_dtype or dense, rest
        return WeightTypes(*(known_dtype(stored(name), "weight_dtype") for name in names))

    @property
    def released(self) -> bool:
        """True if matrices have the types of the release."""
        return self.weight_dtype is None

    @property
    def tables(self) -> tuple[str | None, str | None]:
        """Types of the embedding and of the output layer; None for that of vectors. GGUF files have narrow ones.

        >>> from iomodel.models.registry import model
        >>> ReplicaWeights(model("llama-3-8b"), Layout(), weight_dtype="q4_K").tables
        ('q4_K', 'q6_K')
        """
        if self.released:
            return self.model.embedding_dtype, self.model.head_dtype
        return ggml_tables(self.types.dense)

    def of_stage(self, layers: Iterable[DecoderLayer], place: int) -> int:
        """Compute the weights of the fullest rank of a stage, those of adapters included [B].

        Layers are listed, or counted in a mapping.
        """
        hidden, types = self.model.hidden_size, self.types
        total = self._outside(first=place == 0, last=place == self.layout.pipeline_parallel - 1)
        for layer, times in Counter(layers).items():
            by_type = layer_weights(layer, hidden, self.layout, types, self.released)
            total.update({dtype: times * elements for dtype, elements in by_type.items()})
            if self.lora is not None:
                adapter = self.lora.elements(layer, hidden, self.layout)
                total[types.rest] += times * self.lora.adapters * adapter
        return total.bytes

    def of_token(self) -> int:
        """Compute the weights of the ranks of all stages that a token is multiplied by, without experts of others [B].

        >>> from iomodel.models.registry import model
        >>> ReplicaWeights(model("llama-3-8b"), Layout()).of_token()  # without the embedding of 128,256 tokens
        15009849344
        """
        total, types = self._outside(first=False, last=True), self.types
        for layer, times in self.model.counted.items():
            mlp = layer.mlp
            if mlp is not None and mlp.experts:
                layer = layer.model_copy(update={"mlp": mlp.model_copy(update={"experts": mlp.experts_per_token})})
            by_type = layer_weights(layer, self.model.hidden_size, self.layout, types, self.released)
            total.update({dtype: times * elements for dtype, elements in by_type.items()})
        return total.bytes

    def of_further_layer(self) -> int:
        """Compute the weights of a layer that shares the tables of its model, and of those beside it, on a rank [B]."""
        types = self.types
        weights = layer_weights(self.model.layers[0], self.model.hidden_size, self.layout, types, self.released)
        weights[types.rest] += sum(side.in_features * side.out_features for side in self.model.side)
        return weights.bytes

    def _outside(self, first: bool, last: bool) -> Elements:
        """Count weights outside the layers on the first and last stage, rows of tables divided among ranks."""
        model, rest = self.model, self.types.rest
        rows = -(-model.vocab_size // self.layout.tensor_parallel)
        weights = Elements()
        table, head = self.tables
        table = head if model.tied_embeddings and not self.released else table
        weights[table or rest] += int(first) * rows * model.hidden_size
        if last and not (first and model.tied_embeddings):
            weights[head or rest] += rows * model.hidden_size
        weights[rest] += final_vectors(model, rows) * last + model.other_weights * first
        weights[rest] += sum(side.in_features * side.out_features * side.times for side in model.side) * first
        return weights


def final_vectors(model: ModelSpec, rows: int) -> int:
    """Count the weights of the norm behind the last layer, and of the biases of some rows of the output layer."""
    final = model.layers[-1]
    norm = model.hidden_size * (1 + final.norm_bias) if final.norms else 0
    return norm + rows * model.lm_head_bias


def stage_layers(model: ModelSpec, layout: Layout) -> list[tuple[DecoderLayer, ...]]:
    """List the layers of each pipeline stage in order, divided evenly; the first stages take the remainder."""
    stages = layout.pipeline_parallel
    share, more = divmod(len(model.layers), stages)
    starts = [place * share + min(place, more) for place in range(stages + 1)]
    return [model.layers[first:last] for first, last in pairwise(starts)]


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
        weights[stored(dtype)] += linear.times * linear.in_features * linear.out_features
    weights[types.rest] += layer.vectors(hidden)
    return weights
