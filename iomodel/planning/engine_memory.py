"""Memory of a device that an engine keeps for anything but weights and cache: approximate, with an interval.

Each part follows an allocation of the engine; the constants were read from start-up logs among the
calibration rows (tests/measured/serving.csv), named beside them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from iomodel.devices.device import Hardware
from iomodel.devices.edits import capacity
from iomodel.models.layers import DecoderLayer
from iomodel.models.spec import ModelSpec
from iomodel.planning.engines import GIB, LARGE, Engine
from iomodel.planning.step.layout import Layout

SEEN = 0.99
"""Share of a nominal capacity that the driver offers [-]: 79.18 of 80 GiB (H100), 79.15 of 80 GiB (A100)."""
CONTEXT = int(0.61 * GIB)
"""Memory of the process on a device before anything is allocated [B]: 79.18 GiB less the 78.57 GiB that were free."""
NON_TORCH = int(0.13 * GIB)
"""Memory outside the allocator after the first run, without other ranks [B]: Llama 3.1 8B and Qwen3 32B under vLLM."""
PER_PEER = int(0.41 * GIB)
"""Memory of the communicators for each further rank [B]: Qwen3 32B under vLLM, 0.13 GiB on one GPU and 0.54 on two."""
LOGIT_BYTES = 38.4
"""Memory of the sampler for each request and entry of the vocabulary [B]: logits in two types, their order, the
cumulative probabilities of top-p. Llama 3.1 8B and Qwen3 32B under vLLM; Llama 3 8B of 2024 has the same."""
GRAPHS = (-GIB, GIB)
"""Change of the memory while graphs are captured [B]: -0.88 to 1.03 GiB in logs of vLLM."""


class Reserve(NamedTuple):
    """Memory that an engine may use on a device, and keeps for anything but weights and cache [B]."""

    usable: int
    overhead: int
    low: int | None
    high: int | None


def seen_capacity(device: Hardware) -> int:
    """Return the memory that the driver offers [B]."""
    reported = device.memory.hbm.capacity_reported
    return capacity(device) if reported is not None else int(SEEN * capacity(device))


def step_limits(engine: Engine, device: Hardware) -> tuple[int, int]:
    """Return the most tokens and requests of a step by default: a quarter on a device with less memory."""
    small = capacity(device) < LARGE
    return engine.step_tokens // (4 if small else 1), engine.requests // (4 if small else 1)


def activation_bytes(layers: Iterable[DecoderLayer], hidden: int, layout: Layout, tokens: int) -> int:
    """Compute the activations of a step at their peak, in the widest layer, in 16 bits [B].

    The MLP holds gate and up, their product, and three rows of the model; attention holds Q, K, V, the output and three
    rows; experts hold the rows that are sent to them in place of those.
    """
    ranks = layout.tensor_parallel
    widest = 0
    for layer in dict.fromkeys(layers):
        if layer.attention is not None:
            heads = -(-layer.attention.heads // ranks)
            kv_heads = -(-layer.attention.kv_heads // ranks)
            width = (heads + kv_heads) * (layer.attention.head_dim + layer.attention.value_dim)
            widest = max(widest, width)
        mlp = layer.mlp
        if mlp is not None and mlp.experts:
            width = mlp.expert_intermediate_size // layout.expert_width
            widest = max(widest, mlp.experts_per_token * (max(2 * width, hidden) + width))
        elif mlp is not None:
            widest = max(widest, 3 * -(-mlp.intermediate_size // ranks))
    return 2 * tokens * (widest + 3 * hidden)


def reserve(
    engine: Engine,
    device: Hardware,
    layers: Iterable[DecoderLayer],
    model: ModelSpec,
    layout: Layout,
    weights: int,
    utilization: float | None,
    tokens: int | None = None,
) -> Reserve:
    """Compute the memory that an engine uses and keeps on a device with some weights.

    Parameters
    ----------
    engine : Engine
        The engine.
    device : Hardware
        The device.
    layers : iterable of DecoderLayer
        Layers of the stage.
    model : ModelSpec
        The model.
    layout : Layout
        Parallel layout of the replica.
    weights : int
        Weights on the device [B].
    utilization : float or None
        Share of memory that the engine is given [-]; None for its default.
    tokens : int, optional
        Most tokens of a step; by default that of the engine.
    """
    total = seen_capacity(device)
    usual, requests = step_limits(engine, device)
    budget = usual if tokens is None else tokens
    peers = (layout.devices - 1) * PER_PEER
    forward = activation_bytes(layers, model.hidden_size, layout, budget)
    if engine.share_of == "weights and cache":
        free = total - CONTEXT - peers
        static = static_share(total, layout, budget) if utilization is None else Fraction(repr(utilization))
        return Reserve(int(static * free), 0, -peers // 2, CONTEXT)
    share = Fraction(repr(engine.share if utilization is None else utilization))
    if engine.share_of == "all":
        sampler = int(LOGIT_BYTES * requests * model.vocab_size) + 2 * budget * model.hidden_size
        overhead = NON_TORCH + peers + max(forward, sampler)
        return Reserve(int(share * total), overhead, overhead - max(forward, sampler) // 4, overhead + GRAPHS[1])
    kept = CONTEXT + peers + forward
    headroom = int((1 - share) * max(0, total - kept - weights))
    return Reserve(total, kept + headroom, kept + headroom - forward // 2, kept + headroom + GRAPHS[1])


def static_share(total: int, layout: Layout, tokens: int) -> Fraction:
    """Compute SGLang's default share for weights and cache: the rest is for activations and graphs.

    In MiB it keeps 512, 1.5 for each token of a step, 2 for each request of the largest graph, and 128 for each rank
    (sglang/srt/server_args.py).
    """
    graph = 512 if layout.tensor_parallel >= 4 else 256
    kept = 512 + Fraction(3, 2) * tokens + 2 * graph + 128 * layout.tensor_parallel * layout.pipeline_parallel
    return max(Fraction(0), 1 - kept * 2**20 / total)
