"""Kernels around the products of experts, and attention on latents, beside kernels that were timed by themselves."""

import pytest

from iomodel import model
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
from tests.support.inside import GROUPED

EXPERTS = (
    "choose experts",
    "count tokens of experts",
    "sort tokens by expert",
    "offsets of experts",
    "rows in the order of experts",
    "quantise for experts",
    "expert gate up",
    "expert activation",
    "quantise for expert down",
    "expert down",
    "add up experts",
)
TIMED = [
    ("h100-sxm5", "fp8", 64, 136e-6),
    ("h100-sxm5", "fp8", 512, 153e-6),
    ("h200-sxm", "bf16", 64, 168e-6),
    ("h200-sxm", "bf16", 512, 188e-6),
    ("h200-sxm", "fp8", 64, 105e-6),
    ("h200-sxm", "fp8", 512, 120e-6),
    ("b200", "fp8", 64, 78e-6),
    ("b200", "fp8", 512, 91e-6),
]
"""Experts of a layer of Qwen3 235B on one of eight ranks, CUTLASS kernels of TensorRT-LLM 1.3.0rc20 with even routing:
device, weights, tokens of all ranks, time [s] (aiconfigurator 0.12.0, moe_perf)."""
LATENTS = [
    ("b200", "fp8", 128, 2048, 56e-6),
    ("b200", "fp8", 256, 2048, 99e-6),
    ("b200", "fp8", 512, 4096, 273e-6),
    ("b200", "bf16", 128, 2048, 77e-6),
    ("b200", "bf16", 256, 2048, 139e-6),
    ("h200-sxm", "fp8", 512, 4096, 892e-6),
    ("h200-sxm", "bf16", 512, 4096, 972e-6),
]
"""Decoding on the latents of DeepSeek-V3 with 128 heads in TensorRT-LLM 1.3.0rc20: device, cache, sequences, keys, time
[s] (the same, generation_mla_perf)."""


def parts(timed, names):
    return [part for part in timed.parts if part.name in names]


def experts(device, weights, tokens, ranks=8):
    """Time the experts of a layer with even routing [s]."""
    spec = model("qwen3-235b-a22b")
    even = [tokens * 8 // 128] * 128
    layout = Layout(expert_parallel=ranks)
    timed = step(spec, device, batch=tokens, q_len=1, kv_len=64, layout=layout, weight_dtype=weights, routing=even)
    return sum(part.seconds for part in parts(timed, EXPERTS)) / len(spec.layers)


@pytest.mark.parametrize(("device", "weights", "tokens", "seconds"), TIMED)
def test_experts_take_what_they_were_timed_with(device, weights, tokens, seconds):
    assert experts(device, weights, tokens) == pytest.approx(seconds, rel=0.24)  # a B200, fp8, 512 tokens: 23.7 % fast


def test_the_kernels_between_choice_and_products_are_launched_once_in_each_layer():
    spec = model("qwen3-235b-a22b")
    timed = step(spec, "h200-sxm", batch=16, q_len=1, kv_len=64, layout=Layout(tensor_parallel=4))
    for name in EXPERTS[1:5]:
        (part,) = parts(timed, (name,))
        assert part.times == len(spec.layers)
        assert part.seconds >= part.times * 2e-6  # a launch at least


@pytest.mark.parametrize(("weights", "size"), [("bf16", 2), ("fp8", 1)])
@pytest.mark.parametrize(("layout", "read"), [(Layout(), 16), (Layout(expert_parallel=8), 16)])
def test_rows_are_copied_in_the_type_of_the_products(weights, size, layout, read):
    """Sixteen tokens have 128 rows: one rank copies them from the tokens; each of eight ranks got 16 rows."""
    spec = model("qwen3-235b-a22b")
    even = [1] * 128
    timed = step(spec, "h200-sxm", batch=16, q_len=1, kv_len=64, weight_dtype=weights, layout=layout, routing=even)
    (part,) = parts(timed, ("rows in the order of experts",))
    rows = 128 // layout.expert_parallel
    assert part.hbm_bytes == len(spec.layers) * (read + rows) * spec.hidden_size * size


@pytest.mark.parametrize(("device", "cache", "batch", "keys", "seconds"), LATENTS)
def test_attention_on_latents_takes_what_it_was_timed_with(device, cache, batch, keys, seconds):
    timed = step("deepseek-v3", device, batch=batch, q_len=1, kv_len=keys, kv_dtype=cache, layout=Layout())
    assert timed.attention_seconds / 61 == pytest.approx(seconds, rel=0.35)  # a B200, bf16, 256 rows: 33 % slow


def test_hopper_multiplies_latents_of_an_fp8_cache_in_16_bits():
    narrow, wide = (
        step(
            "deepseek-v3", "h200-sxm", batch=512, q_len=1, kv_len=8192, kv_dtype=cache, layout=Layout()
        ).attention_seconds
        for cache in ("fp8", "bf16")
    )
    assert 0.85 * wide < narrow < wide
    narrow, wide = (
        step("deepseek-v3", "b200", batch=512, q_len=1, kv_len=8192, kv_dtype=cache, layout=Layout()).attention_seconds
        for cache in ("fp8", "bf16")
    )
    assert narrow < 0.65 * wide


def test_fp8_in_blocks_is_slower_for_experts_alone():
    """DeepSeek-V3 has a scale for each block, Qwen3 as quantised one per tensor."""
    spec = model("deepseek-v3")
    prefill = step(spec, "h200-sxm", batch=4, q_len=4096, kv_len=4096, logits="none", layout=Layout())
    (up,) = parts(prefill, ("expert gate up",))
    peak = 1979e12
    assert up.flops / up.seconds <= GROUPED["sm_90"]["fp8 in blocks"] * peak
    (out,) = parts(prefill, ("o",))
    assert out.flops / out.seconds > 0.5 * peak


def test_keys_get_their_rotary_part_in_a_copy():
    spec = model("deepseek-v3")
    prefill = step(spec, "h200-sxm", batch=1, q_len=4096, kv_len=4096, layout=Layout())
    (part,) = parts(prefill, ("join keys and rotary parts",))
    moved = 61 * 4096 * 128 * (128 + 192) * 2  # the rotary part of 64 channels is read once for all heads
    assert part.hbm_bytes == pytest.approx(moved, rel=1e-3)
    assert not parts(
        step(spec, "h200-sxm", batch=1, q_len=1, kv_len=4096, layout=Layout()), ("join keys and rotary parts",)
    )
