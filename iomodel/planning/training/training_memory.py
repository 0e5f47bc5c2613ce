"""Memory of a training step on the fullest device."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from iomodel.common.results import Record
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.spec import ModelSpec
from iomodel.planning.step.layout import Layout, layer_linears
from iomodel.planning.training.strategy import Strategy
from iomodel.planning.weights import WeightTypes, final_vectors, layer_weights, stage_layers

WEIGHT, OPTIMIZER = 2, 12
"""Bytes of a bf16 weight; of its fp32 copy and the two moments of Adam [B]."""
LOGIT = {"fused": 4, "eager": 14, "operators": 14}
"""Bytes of a logit [B]: in fp32, in which a fused loss leaves its gradient; of PyTorch's operators, that in bf16 of the
product, its copy in fp32, its exponential, and the gradient in fp32."""
HALF = {"fused": 0, "eager": 2, "operators": 2}
"""Bytes of the gradient that a product writes before it is added to that in fp32 [B]; fused products add it."""
GATHERED = 2
"""Layers whose weights are gathered at once under FSDP: that in use, and the next."""


@dataclass(frozen=True)
class TrainingMemory(Record):
    """Bytes of a training step on the fullest device.

    Attributes
    ----------
    parameters, gradients, optimizer : int
        bf16 weights, with the gathered layers of FSDP; gradients; fp32 weights and moments [B].
    activations : int
        What forward passes keep for backward passes, of all micro-batches in flight, and what the backward pass of a
        layer and the logits take beside it [B].
    kept : int
        The former part of the activations [B].
    """

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    kept: int = 0

    @property
    def total(self) -> int:
        """All bytes, without workspaces and the runtime [B]."""
        return self.parameters + self.gradients + self.optimizer + self.activations


class Weights(NamedTuple):
    """Weights on a rank: of experts, which other ranks of a replica do not have, and the others [elements]."""

    dense: int
    experts: int

    @property
    def all(self) -> int:
        """Number of both [elements]."""
        return self.dense + self.experts

    def share(self, replicas: int, layout: Layout) -> int:
        """Compute the share of a rank if all ranks with the same weights divide them [elements]."""
        return -(-self.dense // (replicas * layout.data_parallel)) + -(-self.experts // replicas)


class StageLayers(NamedTuple):
    """Layers of a stage of the pipeline, its place, and its weights on a rank.

    The first `again` layers run again in backward passes, and keep their inputs alone.
    """

    layers: tuple[DecoderLayer, ...]
    place: int
    weights: Weights
    again: int


def layer_activations(
    layer: DecoderLayer, hidden: int, tokens: int, layout: Layout, recompute: str = "none", kernels: str = "fused"
) -> int:
    """Compute the activations that the forward pass of a layer keeps on one rank, in bf16 [B].

    Inputs of norms, projections, attention and activations, as Korthikanti et al. 2022 (arXiv:2205.05198, section 4.1)
    count with sequence parallelism, without dropout masks; attention keeps no scores but a log-sum-exp in fp32 for each
    row and head. Where the layer runs again only its input remains; with selective recomputation also q, v, the output
    of attention and the gate; where attention alone runs again all but its output. Eager kernels keep the activated
    gate too.
    """
    ranks = layout.tensor_parallel
    if recompute in ("full", "early-stop"):
        return -(-2 * tokens * hidden // ranks)
    if recompute == "selective":
        return -(-tokens * _saved(layer, hidden, ranks) // ranks)
    elements = 0
    statistics = 0
    if layer.attention is not None:
        attention = layer.attention
        kv_heads = max(attention.kv_heads, ranks)
        elements += 2 * hidden + attention.heads * attention.head_dim
        elements += attention.heads * attention.value_dim * (recompute != "attention")
        elements += kv_heads * (attention.head_dim + attention.value_dim)
        statistics += 4 * attention.heads
    if layer.mlp is not None:
        mlp = layer.mlp
        widths = 2 + mlp.gated * (2 if kernels != "fused" else 1)
        elements += 2 * hidden
        if mlp.experts:  # each token is a row of several experts, whose inputs and outputs are kept in their order
            row = mlp.latent_size or hidden
            elements += mlp.experts_per_token * (2 * row + widths * mlp.expert_intermediate_size)
            elements += mlp.shared_experts * widths * mlp.shared_intermediate_size
            statistics += 4 * mlp.experts
        else:
            elements += widths * mlp.intermediate_size
    return -(-tokens * (2 * elements + statistics) // ranks)


def _saved(layer: DecoderLayer, hidden: int, ranks: int) -> int:
    """Compute the bytes of a token on all ranks that PyTorch keeps of every second product and of attention [B]."""
    size = 2 * hidden
    if layer.attention is not None:
        attention = layer.attention
        size += 2 * attention.heads * (attention.head_dim + attention.value_dim) + 4 * attention.heads
        size += 2 * max(attention.kv_heads, ranks) * attention.value_dim
    if layer.mlp is not None and not layer.mlp.experts:
        size += 2 * layer.mlp.intermediate_size
    return size


def stages_of(model: ModelSpec, layout: Layout, again: int) -> list[StageLayers]:
    """List the stages of a pipeline, whose first `again` layers run again in backward passes."""
    rows = -(-model.vocab_size // layout.tensor_parallel)
    table, last = rows * model.hidden_size, layout.pipeline_parallel - 1
    stages = []
    for place, layers in enumerate(stage_layers(model, layout)):
        by_kind = Counter(layers).items()
        count = sum(n * _elements(layer, model, layout) for layer, n in by_kind)
        experts = sum(n * expert_elements(layer, model.hidden_size, layout) for layer, n in by_kind)
        if place == 0:
            count += table + model.other_weights
            count += sum(side.times * side.in_features * side.out_features for side in model.side)
        if place == last:
            count += final_vectors(model, rows) + table * (last > 0 or not model.tied_embeddings)
        stages.append(StageLayers(layers, place, Weights(count - experts, experts), again))
    return stages


def expert_elements(layer: DecoderLayer, hidden: int, layout: Layout) -> int:
    """Count the weights of the routed experts of a layer on a rank [elements]."""
    linears = layer_linears(layer, hidden, layout)
    return sum(
        linear.times * linear.in_features * linear.out_features for linear in linears if linear.sharing == "experts"
    )


def _elements(layer: DecoderLayer, model: ModelSpec, layout: Layout) -> int:
    types = WeightTypes("bf16", "bf16", "bf16")
    return layer_weights(layer, model.hidden_size, layout, types, False).total()


def stage_memory(
    model: ModelSpec,
    stage: StageLayers,
    tokens: int,
    layout: Layout,
    replicas: int,
    strategy: Strategy,
    in_flight: Fraction,
) -> TrainingMemory:
    """Compute the memory of one rank of a stage, with `in_flight` micro-batches of `tokens` tokens."""
    hidden, kernels, level = model.hidden_size, strategy.kernels, strategy.level
    elements, share = stage.weights.all, stage.weights.share(replicas, layout)
    widest = max(_elements(layer, model, layout) for layer in stage.layers)
    gathered = min(elements, share + GATHERED * widest)
    kept = sum(
        layer_activations(
            layer, hidden, tokens, layout, strategy.recompute if number < stage.again else "none", kernels
        )
        for number, layer in enumerate(stage.layers)
    )
    working = 0
    if repeated := stage.layers[: stage.again]:
        working = max(layer_activations(layer, hidden, tokens, layout, "none", kernels) for layer in repeated)
        working -= min(layer_activations(layer, hidden, tokens, layout, strategy.recompute) for layer in repeated)
    if stage.place == layout.pipeline_parallel - 1:
        width = 4 * hidden + LOGIT[kernels] * model.vocab_size
        working = max(working, 0) + -(-tokens * width // layout.tensor_parallel)
    size = strategy.gradient_size
    half = HALF[kernels] if size > WEIGHT else 0
    return TrainingMemory(
        parameters=WEIGHT * (gathered if level == 3 else elements),
        gradients=size * (share if level >= 2 else elements) + half * (widest if level >= 2 else elements),
        optimizer=OPTIMIZER * (share if level >= 1 else elements),
        activations=ceil(in_flight * kept) + working,
        kept=ceil(in_flight * kept),
    )
