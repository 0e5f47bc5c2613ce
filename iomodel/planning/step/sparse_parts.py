"""Kernels of sparse attention on one rank: compressor, indexer, and attention over the selected keys.

The indexer reads every key of its cache for each sequence and writes one score for each query and key, which the
selection reads. Attention then reads the selected rows of each query, with no reuse between queries; a prefill over
compressed entries has as many for each query as the mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.indexer import Indexer
from iomodel.planning.step.layout import LinearLayer
from iomodel.planning.step.setting import Part, StepSetting
from iomodel.planning.step.streamed import TILE, streamed
from iomodel.timing.span import Span
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.dtypes import index_dtype

SCORE = 4
"""Size of a score of the indexer, fp32 [B]."""


def selecting_parts(
    layer: DecoderLayer, attention: AttentionLayer, linears: dict[str, LinearLayer], at: StepSetting
) -> Iterator[Part]:
    """List the kernels of the compressor and of the indexer, up to the selected keys."""
    for name, linear in linears.items():
        if name.startswith(("index ", "compress ")):
            yield at.single(layer, linear)
    indexer = attention.indexer
    if indexer is not None and indexer.keys:
        yield at.rowwise("append to the index", "append_latent", indexer.head_dim)
        yield "index scores", "attention", _scores(indexer, at)


def _scores(indexer: Indexer, at: StepSetting) -> Span:
    """Time the scores of all visible keys, and the selection of the best."""
    pairs = at.batch * visible(at.q_len, at.kv_len, indexer.pool)
    keys = at.batch * indexer.elements(at.kv_len, at.page_size)
    tensors = {
        "keys": keys * ELEMENT_SIZE[index_dtype(at.kv_dtype)],
        "queries": at.tokens * indexer.heads * indexer.head_dim * ELEMENT_SIZE[at.dtype],
        "scores written": pairs * SCORE,
        "scores read": pairs * SCORE,
    }
    flops = indexer.flops(1, pairs)
    blocks = at.batch * -(-at.q_len // TILE) * -(-at.kv_len // (TILE * indexer.pool))
    return streamed(at, "index scores", tensors, flops, blocks)


def visible(q_len: int, kv_len: int, pool: int = 1) -> int:
    """Count the pairs of a query and a finished key that it sees, of the last `q_len` queries of `kv_len`.

    >>> visible(1, 100), visible(3, 3), visible(2, 8, pool=4)
    (100, 6, 3)
    """
    return _below(kv_len + 1, pool) - _below(kv_len - q_len + 1, pool)


def _below(end: int, pool: int) -> int:
    """Sum i // pool over i = 0 .. end - 1."""
    groups, rest = divmod(end, pool)
    return pool * (groups * (groups - 1) // 2) + groups * rest


def selected_parts(attention: AttentionLayer, at: StepSetting, heads: int) -> Iterator[Part]:
    """List the kernels of attention over the selected keys."""
    ranks = at.layout.tensor_parallel
    if attention.latent:
        assert attention.kv_lora_rank is not None
        assert attention.rope_dim is not None
        plain = attention.head_dim - attention.rope_dim
        yield at.product("kv_b of keys, absorbed", at.linear(at.tokens, plain, attention.kv_lora_rank, groups=heads))
    for call in _calls(attention, at):
        yield at.attended(call.shard(ranks), ", selected keys")
    if attention.latent:
        assert attention.kv_lora_rank is not None
        yield at.product(
            "kv_b of values, absorbed",
            at.linear(at.tokens, attention.kv_lora_rank, attention.value_dim, groups=heads),
        )


def _calls(attention: AttentionLayer, at: StepSetting) -> Iterator[Attention]:
    """List the attention calls: queries that see all keys before them, then those that see selected ones."""
    types: tuple[Any, Any, Any] = at.dtype, at.kv_dtype, at.page_size
    if attention.tied_kv:
        yield _compressed(attention, at)
        return
    assert attention.indexer is not None
    kept = attention.indexer.topk
    dense = min(at.q_len, max(0, kept - (at.kv_len - at.q_len)))
    if dense:
        keys = at.kv_len - at.q_len + dense
        yield attention.call(at.batch, dense, keys, *types, absorbed=attention.latent)
    if at.q_len > dense:
        rest = at.batch * (at.q_len - dense)
        yield attention.call(rest, 1, kept, *types, absorbed=attention.latent)


def _compressed(attention: AttentionLayer, at: StepSetting) -> Attention:
    """Build the call of each query over its window and compressed entries, as many as a query has in the mean.

    Each query of a prefill gathers rows of its own, as in sparse attention over latents.
    """
    keys = clipped(at.q_len, at.kv_len, attention.window or at.kv_len)
    if attention.compression is not None:
        ratio, indexer = attention.compression.ratio, attention.indexer
        most = at.kv_len if indexer is None else indexer.topk // indexer.pool
        keys += clipped(at.q_len, at.kv_len, most, ratio)
    return Attention(
        batch=at.tokens,
        heads=attention.heads,
        kv_heads=attention.kv_heads,
        q_len=1,
        kv_len=-(-keys // at.q_len),
        head_dim=attention.head_dim,
        value_dim=attention.value_dim,
        dtype=at.dtype,
        kv_dtype=at.kv_dtype,
        page_size=at.page_size,
        latent=True,
        sinks=attention.sinks,
        softcap=attention.softcap,
    )


def clipped(q_len: int, kv_len: int, most: int, pool: int = 1) -> int:
    """Count the pairs of a query and a finished key that it sees, `most` for each query.

    >>> clipped(3, 3, 2), clipped(1, 100, 7), clipped(4, 8, 9, pool=4) == visible(4, 8, pool=4)
    (5, 7, True)
    """

    def below(end: int) -> int:
        cut = min(end, most * pool)
        return _below(cut, pool) + (end - cut) * most

    return below(kv_len + 1) - below(kv_len - q_len + 1)
