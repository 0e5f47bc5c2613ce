"""Blocks of caches that layers of several kinds share: laws, and block sizes that public logs and issues state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import hardware, model
from iomodel.planning.cache_blocks import LayerCache, cache_blocks
from iomodel.planning.cache_formats import key_bytes, row_bytes
from iomodel.planning.service import as_service
from iomodel.planning.step.layout import Layout

WIDTHS = st.sampled_from([512, 1024, 2048, 4096])
CACHES = st.one_of(
    st.builds(LayerCache, st.just("all"), WIDTHS),
    st.builds(LayerCache, st.just("window"), WIDTHS, st.integers(1, 5000)),
    st.builds(LayerCache, st.just("chunk"), WIDTHS, st.integers(1, 5000)),
    st.builds(LayerCache, st.just("state"), st.integers(1, 4_000_000)),
)
SOME = st.dictionaries(CACHES, st.integers(1, 60), min_size=1, max_size=4)


@given(SOME, st.integers(1, 100_000), st.integers(1, 65_536))
def test_laws_of_blocks(caches, tokens, step):
    """Blocks hold what each layer needs; more tokens take no fewer blocks; a log charges as much as decoding takes."""
    blocks = cache_blocks(caches, 16)
    if blocks is None:  # sizes without a common block
        assert len(caches) > 1
        return
    needed = sum(
        layers * cache.bytes * (1 if cache.reach == "state" else tokens)
        for cache, layers in caches.items()
        if cache.reach in ("all", "state")
    )
    assert blocks.bytes * blocks.of(tokens) >= needed
    assert blocks.of(tokens) <= blocks.of(tokens + 1)
    assert blocks.charged(tokens, step) >= blocks.of(tokens) - len(blocks.groups)
    assert blocks.charged(tokens, step) <= blocks.charged(tokens, step + 1)
    assert len(blocks.groups) <= sum(caches.values())


@given(st.integers(1, 60), WIDTHS, st.integers(1, 10_000))
def test_one_kind_of_layers_has_pages_of_its_own(layers, width, tokens):
    """Full attention alone takes whole blocks of all layers, as without groups."""
    blocks = cache_blocks({LayerCache("all", width): layers}, 16)
    assert blocks.bytes * blocks.of(tokens) == layers * width * 16 * -(-tokens // 16)


def test_a_window_and_a_step_as_the_log_charges_them():
    """StarCoder2-3B: 16,384 tokens take 769 blocks of 16 in vLLM's log, and at most 257 while they are decoded."""
    blocks = cache_blocks({LayerCache("window", 1024, 4096): 30}, 16)
    assert (blocks.charged(16_384, 8192), blocks.of(16_384)) == (769, 257)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_rows_of_sparse_latents_as_engines_store_them(engine):
    """A row of fp8 with four scales and a rotary part in 16 bits, and a key with a scale, in each of 61 layers."""
    types = {"kv_dtype": "fp8", "layout": Layout(tensor_parallel=8)}
    found = as_service("deepseek-v3.2", 2048, 256, engine=engine, **types).memory(hardware("b200"))
    assert found.token_bytes == 61 * (512 + 16 + 128 + 128 + 4) == 48_068
    wide = as_service("deepseek-v3.2", 2048, 256, engine=engine, kv_dtype="bf16", layout=types["layout"])
    assert wide.memory(hardware("b200")).token_bytes == 61 * (1152 + 132)
    assert as_service("deepseek-v3.2", 2048, 256, engine=None, **types).memory(hardware("b200")).token_bytes == 61 * (
        576 + 128
    )


def test_rows_of_compressed_attention_as_engines_store_them():
    attention = model("deepseek-v4-flash").layers[2].attention
    assert (row_bytes(attention, "fp8"), key_bytes(attention)) == (584, 132)


@pytest.mark.parametrize("name", ["qwen3.6-35b-a3b", "nemotron-h-56b", "gpt-oss-120b", "gemma-3-27b"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_parts_add_up_to_the_usable_memory(name, engine):
    """The weights, their padding, the overhead part by part, and the caches are all that may be used."""
    found = as_service(name, 2000, 200, engine=engine, layout=Layout(tensor_parallel=2)).memory(hardware("h200-sxm"))
    assert sum(part.bytes for part in found.parts) == found.usable
    assert all(part.bytes >= 0 for part in found.parts)
    assert sum(pool.bytes for pool in found.pools) <= found.left
    assert found.fits > 0
    taken = found.fits // found.groups
    assert all(taken * pool.request_bytes <= pool.bytes for pool in found.pools)


def test_states_of_sglang_have_places_of_their_own():
    """Nine tenths of the memory of caches, five places for each request: fewer requests than one pool would hold."""
    chat = {"engine": "sglang"}
    found = as_service("qwen3.6-35b-a3b", 8192, 1024, **chat).memory(hardware("h200-sxm"))
    caches, states = found.pools
    assert states.bytes == pytest.approx(0.9 * caches.bytes, rel=1e-6)
    assert states.request_bytes == 5 * model("qwen3.6-35b-a3b").state_bytes()
    assert found.fits == min(caches.fits, states.fits) == found.slots == 98


def test_tokens_of_a_step_change_the_memory_that_is_left():
    """More tokens in a step, or more requests, leave less for caches; without a flag the engine's own count."""

    def left(**limits):
        return as_service("qwen3-30b-a3b", 1000, 100, engine="vllm", **limits).memory(hardware("h100-sxm5")).left

    assert left(step_tokens=65_536, step_requests=8) < left(step_tokens=1024, step_requests=8)
    assert left(step_requests=1024) == left() < left(step_requests=64)
