"""Formats of caches: bytes of a row and of an indexer's key, as a serving engine stores them.

Sparse attention over latents (DeepSeek-V3.2) has formats of its own, the same in vLLM and SGLang: a latent in fp8 has a
scale in fp32 for 128 elements, its rotary part stays in 16 bits, and a key of the indexer is fp8 with a scale in fp32
beside any cache (vllm/v1/kv_cache_interface.py at 001cabc, ``fp8_ds_mla``: 656 bytes; ``NSATokenToKVPool`` of
sglang/srt/mem_cache/memory_pool.py; 48,068 bytes a token in the log of sgl-project/sglang#11309).

Rows of DeepSeek-V4 hold fp8 with a byte of scale for 64 elements, padded to eight, beside 64 rotary elements in 16
bits: 584 bytes for 512 elements (vllm/v1/kv_cache_interface.py, ``fp8_ds_mla`` of DeepSeek-V4).
"""

from __future__ import annotations

from iomodel.models.attention_layer import AttentionLayer

SCALED = 128
"""Elements that share a scale in fp32, of a latent in fp8 and of a key of an indexer."""
SCALE = 4
"""Size of such a scale [B]."""
ROTARY, SCALES = 64, 8
"""Rotary elements of a row of DeepSeek-V4, in 16 bits, and the bytes of its scales."""


def sparse_latent(attention: AttentionLayer) -> bool:
    """Check for sparse attention over latents, whose caches have formats of their own."""
    return attention.latent and attention.indexer is not None


def row_bytes(attention: AttentionLayer, kv_dtype: str) -> int | None:
    """Return the bytes of a cached row as engines store it; None for elements of one type [B].

    >>> from iomodel.models.registry import model
    >>> row_bytes(model("deepseek-v3.2").layers[0].attention, "fp8")
    656
    """
    if attention.tied_kv:
        return attention.head_dim - ROTARY + 2 * ROTARY + SCALES if attention.head_dim > ROTARY else None
    if not sparse_latent(attention) or kv_dtype != "fp8":
        return None
    rank, rotary = attention.kv_lora_rank or 0, attention.rope_dim or 0
    return rank + SCALE * -(-rank // SCALED) + 2 * rotary


def key_bytes(attention: AttentionLayer) -> int | None:
    """Return the bytes of a key of the indexer as engines store it; None for a key in the type of the cache [B].

    >>> from iomodel.models.registry import model
    >>> key_bytes(model("deepseek-v3.2").layers[0].attention)
    132
    """
    if attention.indexer is None or not (attention.latent or attention.tied_kv):
        return None
    return attention.indexer.head_dim + SCALE * -(-attention.indexer.head_dim // SCALED)
