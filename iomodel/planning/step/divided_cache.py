"""Attention over a cache whose tokens are divided among ranks of tensor parallelism (decode context parallelism).

Ranks that would hold the same key/value head hold every n-th token of it instead. In a decode step each of the n ranks
gathers the queries of all, attends to its tokens with the heads of all, sends each rank the partial outputs of its
heads with their log-sum-exps, and adds up those that it receives: N. Bhatia et al., *Helix parallelism: rethinking
sharding strategies for interactive multi-million-token LLM decoding*, arXiv:2507.07120, section 2; vLLM with
``--decode-context-parallel-size`` and ``--dcp-comm-backend a2a`` (vllm/config/parallel.py).

A prompt without cached tokens needs nothing of other ranks: each has K and V of all its tokens, and keeps its share. A
chunk of a prompt attends to the cached tokens as a decode step does, and to its own tokens as without a division; with
latents it gathers those of the cached tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iomodel.models.attention_layer import AttentionLayer
from iomodel.planning.step.links import all_gather, all_to_all
from iomodel.planning.step.setting import Part, StepSetting
from iomodel.planning.step.step_result import StepTime
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.dtypes import cache_bytes

VERIFIED = 16
"""Most new tokens of a sequence in a decode step [tokens]: one, and drafts behind it. More are a chunk of a prompt."""
STATISTIC = 4
"""Size of the log-sum-exp of a row and head [B]."""
QUERIES, LATENTS = "gather of queries", "gather of latents"
EXCHANGE, COMBINE = "exchange of partial outputs", "combine of partial outputs"


def held(tokens: int, ranks: int) -> int:
    """Count the tokens of a sequence on the fullest of the ranks that divide them [tokens].

    >>> held(10, 4), held(10, 1)
    (3, 10)
    """
    return -(-tokens // ranks)


def attended_seconds(timed: StepTime) -> float:
    """Compute the time of attention with what divided caches gather, exchange and combine [s]."""
    beside = (QUERIES, LATENTS, EXCHANGE, COMBINE)
    return timed.attention_seconds + sum(part.seconds for part in timed.parts if part.name in beside)


def is_chunk(at: StepSetting) -> bool:
    """Check that the new tokens are a chunk of a prompt."""
    return at.q_len > VERIFIED


def divided_parts(attention: AttentionLayer, at: StepSetting, heads: int) -> Iterator[Part]:
    """List attention on K and V of a divided cache; `heads` are those of a rank without the division."""
    types: tuple[Any, Any, Any] = at.attention_dtype, at.kv_dtype, at.page_size
    call = attention.call(at.batch, at.q_len, at.kv_len, *types)
    own = is_chunk(at)
    keys = at.kv_len - at.q_len if own else at.kv_len
    yield from _partial(call, at, heads, (attention.head_dim, attention.value_dim), at.attention_dtype, keys, own)


def divided_latents(attention: AttentionLayer, at: StepSetting, heads: int) -> Iterator[Part]:
    """List attention on absorbed latents of a divided cache."""
    kind = at.latent_dtype
    call = attention.call(at.batch, at.q_len, at.kv_len, kind, at.kv_dtype, at.page_size, absorbed=True)  # type: ignore[arg-type]
    yield from _partial(call, at, heads, (call.head_dim, call.value_dim), kind, at.kv_len, False)


def gathered_latents(attention: AttentionLayer, at: StepSetting) -> Part:
    """Time the gathering of the latents of the cached tokens, which a chunk of a prompt attends to."""
    ranks = at.layout.decode_context_parallel
    rows = at.batch * held(at.kv_len - at.q_len, ranks)
    size = cache_bytes(rows * attention.kv_elements_per_token, at.kv_dtype, rows)
    return LATENTS, "communication", all_gather(at.clock.device, ranks, size, at.layout)


def _partial(
    call: Attention, at: StepSetting, heads: int, widths: tuple[int, int], dtype: str, keys: int, own: bool
) -> Iterator[Part]:
    """List the kernels and messages of attention over `keys` divided keys, and over own new tokens behind them."""
    layout, device = at.layout, at.clock.device
    ranks, (wide, out) = layout.decode_context_parallel, widths
    rows = at.tokens * heads
    yield QUERIES, "communication", all_gather(device, ranks, rows * wide * ELEMENT_SIZE[dtype], layout)
    share = call.model_copy(update={"kv_len": held(keys, ranks), "mask": "full"})
    yield at.attended(share.shard(layout.tensor_parallel // ranks), f", 1/{ranks} of the keys")
    if own:
        yield at.attended(call.model_copy(update={"kv_len": at.q_len}).shard(layout.tensor_parallel), ", new keys")
    size = ranks * rows * (out * ELEMENT_SIZE[at.dtype] + STATISTIC)
    yield EXCHANGE, "communication", all_to_all(device, ranks, size, layout)
    statistics = -(-STATISTIC // ELEMENT_SIZE[at.dtype])
    yield at.rowwise(COMBINE, "combine_experts", heads * (out + statistics), ranks + own)
