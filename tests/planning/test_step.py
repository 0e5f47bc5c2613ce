"""A step through a model: its sums redone by hand, the laws its time keeps to, what it refuses."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel
from iomodel import Hardware, InfeasibleError, InputError, IOModelError, ModelSpec, hardware, list_models, model
from iomodel.errors import SpecError
from iomodel.planning.layouts import default_layouts
from iomodel.planning.service import as_service
from iomodel.planning.step.expert_loads import approximate_experts_hit, approximate_tokens_per_expert, tokens_per_expert
from iomodel.planning.step.links import all_reduce
from iomodel.planning.step.step import Layout, StepTime, linear_layers, step
from iomodel.planning.step.step_search import crossover_context, decode_seconds
from tests.support.inside import DEFAULT, Elementwise, from_data, layer_clock, rates
from tests.support.strategies import fraction_of_examples

H100 = hardware("h100-sxm5")
LLAMA = model("llama-3-8b")
SMALL = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "intermediate_size": 1024,
    "vocab_size": 4000,
}
TINY = model(SMALL)
EXPERTS = {
    "model_type": "qwen2_moe",
    "moe_intermediate_size": 256,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "shared_expert_intermediate_size": 512,
    "decoder_sparse_step": 1,
    "norm_topk_prob": False,
}
GATED = model({**SMALL, **EXPERTS})  # its shared experts have a gate
KEYWORDS = {"batch": 1, "q_len": 1, "kv_len": 128}


@cache
def llama(q_len: int, kv_len: int, **more: Any) -> StepTime:
    return step(LLAMA, H100, **{"batch": 1, **more}, q_len=q_len, kv_len=kv_len)


def parts(found: StepTime, name: str) -> list[Any]:
    return [part for part in found.parts if name in part.name]


def norms(spec: ModelSpec) -> int:
    """Weights that no linear layer has: norms, biases, sinks, embedding."""
    hidden = spec.hidden_size
    routers = sum(hidden * (layer.mlp.routes + layer.mlp.shared_gate) for layer in spec.layers if layer.mlp)
    vectors = sum(layer.vectors(hidden) for layer in spec.layers) - routers
    vectors += spec.other_weights + sum(side.in_features * side.out_features * side.times for side in spec.side)
    head = spec.layers[-1].norms and hidden * (1 + spec.layers[-1].norm_bias)
    tables = 0 if spec.tied_embeddings else spec.vocab_size * hidden
    return vectors + head + tables + spec.vocab_size * spec.lm_head_bias


@pytest.mark.parametrize("spec", [*map(model, list_models()), GATED], ids=lambda spec: spec.name)
def test_the_linear_layers_are_all_the_parameters(spec: ModelSpec) -> None:
    found = sum(one.in_features * one.out_features * one.times for one in linear_layers(spec))
    assert found + norms(spec) == spec.parameters


@pytest.mark.parametrize(("q_len", "kv_len"), [(1, 4096), (4096, 4096), (512, 4096)])
def test_the_flops_are_two_for_each_token_and_weight_and_those_of_attention(q_len: int, kv_len: int) -> None:
    weights = sum(one.in_features * one.out_features * one.times for one in linear_layers(LLAMA))
    head = LLAMA.vocab_size * LLAMA.hidden_size
    pairs = sum(kv_len - q_len + i + 1 for i in range(q_len))
    attention = 2 * 2 * 128 * 32 * pairs * 32  # Q K^T and P V of 32 heads in 32 layers
    assert llama(q_len, kv_len).flops == 2 * q_len * (weights - head) + 2 * head + attention


def test_the_parts_add_up() -> None:
    found = llama(1, 4096)
    sums = (found.attention_seconds, found.linear_seconds, found.other_seconds, found.communication_seconds)
    assert sum(sums) == pytest.approx(found.seconds)
    assert found.communication_seconds == 0
    assert found.stage_seconds == pytest.approx(found.seconds)
    assert sum(part.seconds for part in found.parts) == pytest.approx(found.seconds)
    assert sum(found.bounds.values()) == pytest.approx(found.seconds)
    assert sum(part.times for part in parts(found, "norm")) == 65
    assert found.to_dict()["parts"][2]["name"] == "q k v"
    assert "q k v" in str(found)


def test_attention_is_what_an_estimate_says() -> None:
    (part,) = parts(llama(8192, 8192), "attention")
    call = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    best = min(iomodel.estimate("flash3", call, H100, lse=False).seconds, part.seconds / 32)
    assert part.seconds / 32 == pytest.approx(best, rel=0.03)


def test_a_decode_step_streams_the_weights_and_little_more() -> None:
    weights = 2 * (LLAMA.parameters - LLAMA.embedding_parameters)
    found = llama(1, 1024)
    at_best = weights / (0.9 * 3.352e12)  # the share of the datasheet that a device without a measurement gets
    assert at_best < found.seconds < 1.3 * at_best
    assert weights < found.hbm_bytes < 1.02 * weights
    assert found.limited_by == "hbm"


def test_a_long_prompt_keeps_the_matrix_units_busy() -> None:
    found = llama(8192, 8192)
    assert 0.5 < found.flops / found.seconds / 9.894e14 < 0.8


def test_tensor_parallelism_shares_the_weights_out() -> None:
    one, two = llama(1, 1024), llama(1, 1024, layout=Layout(tensor_parallel=2))
    for name in ("q k v", "o", "gate up", "down", "output"):
        alone, shared = (next(part for part in found.parts if part.name == name) for found in (one, two))
        assert shared.hbm_bytes == pytest.approx(alone.hbm_bytes / 2, rel=0.01)
        assert shared.flops * 2 == alone.flops
    assert two.seconds < one.seconds
    assert two.communication_seconds > 0


@pytest.mark.parametrize("ranks", [2, 8])
def test_attention_and_mlp_of_every_layer_are_summed_over_ranks(ranks: int) -> None:
    (part,) = parts(llama(2048, 2048, layout=Layout(tensor_parallel=ranks)), "all-reduce")
    assert part.times == 64
    assert part.seconds / 64 == all_reduce(H100, ranks, 2048 * 4096 * 2).seconds


def test_pipeline_stages_overlap_in_a_full_pipeline() -> None:
    one, four = llama(1, 1024), llama(1, 1024, layout=Layout(pipeline_parallel=4))
    assert four.seconds > one.seconds
    assert one.seconds / 4 < four.stage_seconds < one.seconds / 3
    assert four.tokens_per_second > 3 * one.tokens_per_second


def test_more_ranks_than_key_heads_repeat_them() -> None:
    layers = {one.name: one for one in linear_layers(LLAMA, Layout(tensor_parallel=16))}
    assert layers["k"].out_features == 128
    assert layers["q"].out_features == 256


@pytest.mark.parametrize("ranks", [2, 8, 16])
def test_each_rank_rotates_and_appends_its_own_heads(ranks: int) -> None:
    """Every rank has the slots (8 B) and the angles (fp32) of its rows; the key heads are shared, or one to a rank."""
    layout, batch, layers, width = Layout(tensor_parallel=ranks), 5, 32, 128
    found = llama(1, 100, batch=batch, layout=layout)
    heads, kv_heads = 32 // ranks, max(1, 8 // ranks)
    moved = {
        "rotary": 2 * (heads + kv_heads) * width * 2 + 4 * width,
        "append to the cache": 2 * 2 * kv_heads * width * 2 + 8,
    }
    for name, each_row in moved.items():
        (part,) = parts(found, name)
        assert part.requested_bytes == layers * batch * each_row


@pytest.mark.parametrize("name", ["llama-3.2-1b", "gemma-3-4b", "gpt-oss-20b", "deepseek-v2-lite", "deepseek-v3"])
def test_a_step_turns_its_rows_and_appends_what_the_cache_grows_by(name: str) -> None:
    """Read and written once each, beside slots and angles; a latent has one rotary key for all heads."""
    spec, rows = model(name), 6
    found = step(spec, "h200-sxm", batch=2, q_len=3, kv_len=100, layout=Layout())
    attending = [layer.attention for layer in spec.layers if layer.attention is not None]
    (appended,) = parts(found, "append to the cache")
    assert appended.requested_bytes == rows * (2 * spec.kv_bytes_per_token() + 8 * len(attending))
    (turned,) = (part for part in found.parts if part.name == "rotary")
    assert turned.requested_bytes == rows * sum(
        4 * (each.heads + (1 if each.rope_dim else each.kv_heads)) * (each.rope_dim or each.head_dim)
        + 4 * (each.rope_dim or each.head_dim)
        for each in attending
    )


def test_experts_are_met_as_expected() -> None:
    assert approximate_experts_hit(64, 6, 1) == 6
    draws = np.random.default_rng(0).random((2000, 16, 64)).argsort(axis=2)[:, :, :6]  # six of 64, by 16 tokens
    seen = np.mean([len(np.unique(one)) for one in draws])
    assert approximate_experts_hit(64, 6, 16) == pytest.approx(seen, rel=0.01)


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 300))
def test_tokens_dealt_out_are_all_there(experts: int, each: int, tokens: int) -> None:
    each = min(each, experts)
    dealt = approximate_tokens_per_expert(experts, each, tokens)
    assert sum(rows * many for rows, many in dealt) == each * tokens
    assert sum(many for _, many in dealt) <= experts
    assert min(rows for rows, _ in dealt) >= 1


@given(st.sampled_from([64, 128, 256]), st.integers(1, 8), st.integers(64, 1 << 16))
def test_loads_of_experts_follow_a_power_law(experts, each, tokens):
    """Loads follow a power law, so that some experts fill a part of a tile while the busiest fill many."""
    dealt = approximate_tokens_per_expert(experts, each, tokens)
    rows = [rows for rows, many in dealt for _ in range(many)]
    tiles = sum(-(-some // 128) for some in rows)
    assert tiles >= -(-each * tokens // 128)
    if each * tokens >= 128 * experts and each > 1:
        assert tiles > each * tokens / 128 + len(rows) / 8
    if each * tokens >= 16 * experts:  # the first token of each expert flattens smaller loads
        busiest = 0.8 * tokens
        top = sum(sorted(rows)[-len(rows) // 8 :]) / sum(rows)
        assert top >= 0.8 * (busiest - busiest ** (7 / 8)) / (busiest - 1)


@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "h100-sxm5", "b200"])
def test_one_expert_with_a_load_of_its_own_is_a_product_of_experts(device):
    """A launch of several experts has the rate of experts, however many share the first load."""
    clock = layer_clock(hardware(device), DEFAULT, True)
    shape = {"in_features": 4096, "out_features": 28672, "dtype": "bf16"}
    apart = [iomodel.Linear(rows=8192, groups=1, **shape), iomodel.Linear(rows=8192, groups=7, **shape)]
    together = iomodel.Linear(rows=8192, groups=8, **shape)
    assert clock.linear(*apart).seconds == pytest.approx(clock.linear(together).seconds, rel=0.02)


@pytest.mark.parametrize("tokens", [1024, 4096, 16384])
def test_rows_of_experts_in_nvfp4_take_kernels_of_their_own_under_trtllm_bench(tokens):
    """No other device or type tells the engines apart, but for attention and the rotation before it."""
    asked = {"q_len": tokens, "weight_dtype": "nvfp4", "logits": "none"}
    named = ("rows in the order of experts", "expert activation", "quantise for expert down")
    apart = step("qwen3-30b-a3b", "gb200", engine="trtllm-bench", **asked)
    fused = step("qwen3-30b-a3b", "gb200", engine="vllm", **asked)
    kernels = [part for part in apart.parts if part.name in named]
    assert [part.name for part in kernels] == list(named)
    assert all(part.seconds >= 48 * 8 * tokens * 2.5e-9 * (1 - 1e-9) for part in kernels)
    assert not [part for part in fused.parts if part.name in named]
    alike = [step("qwen3-30b-a3b", "rtx-pro-6000", engine=name, **asked).parts for name in ("trtllm-bench", "vllm")]
    rows = [{part.name: part.seconds for part in parts if "attention" not in part.name} for parts in alike]
    assert {**rows[0], "rotary": 0} == pytest.approx({**rows[1], "rotary": 0}, rel=1e-12)


def test_a_known_routing_counts_exactly() -> None:
    spec = model("mixtral-8x7b")
    routing = [16, 0, 0, 8, 4, 2, 1, 1]
    found = step(spec, H100, batch=16, q_len=1, kv_len=64, routing=routing, layout=Layout())
    (up,) = parts(found, "expert gate up")
    assert tokens_per_expert(routing) == ((16, 1), (8, 1), (4, 1), (2, 1), (1, 2))
    rows, moved = sum(routing), 6 * 4096 * 2 * 14336  # six experts are met
    assert up.flops == 32 * 2 * rows * 4096 * 2 * 14336
    assert up.hbm_bytes == 32 * 2 * (moved + rows * 4096 + rows * 2 * 14336)


def test_the_gate_of_shared_experts_is_a_product_with_one_column() -> None:
    tokens, hidden = 7, 512
    found = step(GATED, H100, batch=tokens, q_len=1, kv_len=128)
    (gate,) = parts(found, "shared router")
    assert gate.flops == 3 * 2 * tokens * hidden  # in three layers
    assert gate.hbm_bytes == 3 * 2 * (tokens * hidden + hidden + tokens)


def test_experts_are_shared_out_among_ranks() -> None:
    spec = model("mixtral-8x7b")
    layers = {one.name: one for one in linear_layers(spec, Layout(tensor_parallel=4, expert_parallel=2))}
    assert layers["expert up"].times == 4 * 32
    assert layers["expert up"].out_features == 14336 // 2
    apart = step(spec, H100, batch=64, q_len=1, kv_len=64, layout=Layout(expert_parallel=8))
    assert parts(apart, "all-to-all")[0].times == 64  # out and back in 32 layers
    assert not parts(apart, "all-reduce")
    alone = step(spec, H100, batch=64, q_len=1, kv_len=64, layout=Layout())
    assert parts(apart, "expert up" if parts(apart, "expert up") else "expert gate up")[0].hbm_bytes < (
        parts(alone, "expert gate up")[0].hbm_bytes / 7
    )


def test_latent_attention_is_absorbed_in_decoding_and_expanded_in_a_prompt() -> None:
    spec = model("deepseek-v2-lite")
    decoded = step(spec, H100, batch=8, q_len=1, kv_len=4096)
    prompt = step(spec, H100, batch=1, q_len=4096, kv_len=4096)
    assert parts(decoded, "absorbed")
    assert not parts(prompt, "absorbed")
    expanding = sum(part.flops for part in parts(decoded, "kv_b"))
    attention = spec.layers[0].attention
    assert attention.kv_lora_rank is not None
    assert attention.rope_dim is not None
    width = attention.heads * (attention.head_dim - attention.rope_dim + attention.value_dim)
    assert expanding == len(spec.layers) * 2 * 8 * attention.kv_lora_rank * width


@pytest.mark.parametrize("name", ["gpt-oss-20b", "gemma-3-4b", "llama-4-scout"])
def test_windows_and_chunks_bound_a_layer(name: str) -> None:
    spec = model(name)
    short, long = (step(spec, "h200-sxm", batch=4, q_len=1, kv_len=n) for n in (16384, 65536))
    kinds = {layer.attention for layer in spec.layers}
    assert len(kinds) == 2
    assert short.attention_seconds < long.attention_seconds < 4 * short.attention_seconds
    assert short.linear_seconds == long.linear_seconds


@pytest.mark.parametrize(("weights", "share"), [("fp8", 0.5), ("int4", 0.25)])
def test_narrow_weights_take_less_traffic(weights: str, share: float) -> None:
    wide, narrow = llama(1, 1024), llama(1, 1024, weight_dtype=weights)
    for name in ("gate up", "down"):
        both = [parts(found, name)[0].hbm_bytes for found in (wide, narrow)]
        assert both[1] == pytest.approx(share * both[0], rel=0.02)  # more blocks read the one row of X
    assert parts(wide, "output") == parts(narrow, "output")  # it is not quantised
    assert narrow.seconds < wide.seconds


def test_logits_are_of_the_rows_wanted() -> None:
    last, every, none = (
        step(TINY, H100, batch=2, q_len=64, kv_len=64, logits=rows) for rows in ("last", "all", "none")
    )  # type: ignore[arg-type]
    flops = [sum(part.flops for part in parts(found, "output")) for found in (last, every, none)]
    assert flops == [2 * 2 * 512 * 4000, 2 * 128 * 512 * 4000, 0]


lengths, batches = st.integers(1, 3000), st.integers(1, 300)


@example(641, 897, 1)  # 6 and 8 key tiles, in 6 and 8 splits
@example(896, 897, 1)  # 7 key tiles have no seven splits among the candidates
@given(lengths, lengths, batches)
def test_a_longer_context_is_hardly_faster(one: int, other: int, batch: int) -> None:
    """Keys are dealt out in whole tiles to the blocks of a few numbers of splits."""
    short, long = sorted((one, other))
    times = [step(TINY, H100, batch=batch, q_len=1, kv_len=n).seconds for n in (short, long)]
    assert times[0] <= times[1] * 1.03


@given(batches, batches, lengths)
def test_more_sequences_never_take_less_time(few: int, many: int, context: int) -> None:
    few, many = sorted((few, many))
    times = [step(TINY, H100, batch=n, q_len=1, kv_len=context).seconds for n in (few, many)]
    assert times[0] <= times[1] * (1 + 1e-9)


def faster(factor: float) -> Hardware:
    data = {name: value for name, value in H100.to_dict().items() if name != "id"}
    data["memory"]["hbm"]["bandwidth"]["value"] = 3.352e12 * factor
    return from_data(data, "faster")


@pytest.mark.parametrize(("q_len", "batch"), [(1, 1), (1, 64), (512, 1)])
def test_more_bandwidth_is_never_slower(q_len: int, batch: int) -> None:
    times = [step(TINY, faster(f), batch=batch, q_len=q_len, kv_len=512).seconds for f in (1.0, 1.5, 3.0)]
    assert times == sorted(times, reverse=True)


def test_many_decoding_steps_are_the_single_ones() -> None:
    found = decode_seconds(TINY, H100, [[1], [7]], [100, 1000, 100])
    assert found.shape == (2, 3)
    assert found[1, 1] == step(TINY, H100, batch=7, q_len=1, kv_len=1000).seconds
    assert (found[:, 0] == found[:, 2]).all()


@pytest.mark.parametrize(("phase", "batch"), [("decode", 16), ("prefill", 1)])
def test_the_crossover_is_where_attention_overtakes(phase: Any, batch: int) -> None:
    context = crossover_context(TINY, H100, batch=batch, phase=phase)
    assert context is not None
    q_lens = (1, 1) if phase == "decode" else (context - 1, context)
    before, at = (
        step(TINY, H100, batch=batch, q_len=q, kv_len=k) for q, k in zip(q_lens, (context - 1, context), strict=True)
    )
    assert before.attention_seconds < before.linear_seconds
    assert at.attention_seconds >= at.linear_seconds


def test_weights_that_are_never_overtaken_have_no_crossover() -> None:
    assert crossover_context(LLAMA, H100, longest=512) is None


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"batch": 0}, "batch: 0"),
    ({"kv_len": 0}, "kv_len: 0"),
    ({"q_len": 200}, "kv_len: 128 given; allowed: from q_len = 200 up"),
    ({"model": "llama-9"}, "'llama-9' is unknown"),
    ({"hardware": "h900"}, "'h900' is unknown"),
    ({"dtype": "bf17"}, "dtype: 'bf17' is unknown"),
    ({"weight_dtype": "int7"}, "weight_dtype: 'int7' is unknown"),
    ({"logits": "first"}, "logits: 'first' is unknown"),
    ({"attention_algorithm": "flash9"}, "'flash9' is unknown"),
    ({"layout": 4}, "layout: 4 given"),
    ({"layout": Layout(tensor_parallel=3)}, "tensor_parallel: 3 given"),
    (
        {
            "model": model({**SMALL, "hidden_size": 768, "num_attention_heads": 12, "num_key_value_heads": 4}),
            "layout": Layout(tensor_parallel=8),
        },
        "tensor_parallel: 8 given; allowed: a number that heads = 12 and kv_heads = 4 divide among, such as 4",
    ),
    ({"layout": Layout(pipeline_parallel=4)}, "pipeline_parallel: 4 given; allowed: up to 3"),
    ({"model": "mixtral-8x7b", "layout": Layout(expert_parallel=3)}, "expert_parallel: 3 given; allowed: a divisor"),
    ({"model": "mixtral-8x7b", "routing": [1, 1]}, "routing: 2 experts"),
    ({"routing": 4}, "routing: 4 given"),
    ({"dtype": "fp8", "hardware": "a100-sxm4-80gb"}, "compute.peak.fp8"),
    ({"page_size": 0}, "page_size"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_bad_input_is_refused_in_a_line(change: dict[str, Any], message: str) -> None:
    given = {"model": TINY, "hardware": H100, **KEYWORDS, **change}
    with pytest.raises(IOModelError) as refused:
        step(given.pop("model"), given.pop("hardware"), **given)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_layouts_that_do_not_nest_are_refused() -> None:
    with pytest.raises(InputError, match="expert_parallel: 3 given with tensor_parallel = 2"):
        Layout(tensor_parallel=2, expert_parallel=3)


def test_ranks_need_a_link() -> None:
    data = {name: value for name, value in H100.to_dict().items() if name not in ("id", "interconnect")}
    alone = from_data(data, "alone")
    step(TINY, alone, **KEYWORDS)
    with pytest.raises(SpecError, match=r"interconnect: .* has no link on file"):
        step(TINY, alone, **KEYWORDS, layout=Layout(tensor_parallel=2))


def test_a_prefill_of_latents_needs_no_room_for_the_absorbed_form():
    prefill = step("deepseek-v2-lite", "t4", batch=1, q_len=1024, kv_len=1024, dtype="fp16")
    assert not any("absorbed" in part.name for part in prefill.parts)
    with pytest.raises(InfeasibleError, match=r"attention on latents \(MLA\), which decoding needs: .* no tile fits"):
        step("deepseek-v2-lite", "t4", batch=1, q_len=1, kv_len=1024, dtype="fp16")


def test_latents_are_decoded_on_amd_in_the_tiles_of_the_engines():
    decode = step("deepseek-v3", "mi300x", batch=8, q_len=1, kv_len=1024, layout=Layout(tensor_parallel=8))
    (tiles,) = (dict(part.tiles) for part in decode.parts if "absorbed)" in part.name)
    assert tiles == {"block_q": 16, "block_kv": 16, "warps": 4, "stages": 1}


def test_the_launches_of_shared_experts_lie_beside_those_of_routed_ones() -> None:
    """Each kernel takes its time alone, without its launch."""
    found = step("deepseek-v3", H100, batch=4, q_len=1, kv_len=128, layout=Layout(tensor_parallel=8))
    (shown,) = [part for part in found.parts if part.name == "shared activation"]
    rows = Elementwise(rows=4, channels=2048 // 8, dtype="bf16")
    alone = layer_clock(H100).elementwise("gated_activation", rows).seconds
    launch = rates(H100, "bf16").launch or DEFAULT.kernel_launch
    assert shown.seconds / shown.times == pytest.approx(alone - launch)
    assert 0 < shown.seconds / shown.times < alone


def test_tokens_choose_and_are_sorted_by_experts_before_these() -> None:
    names = [part.name for part in step("gpt-oss-20b", H100, batch=4, q_len=1, kv_len=128).parts]
    order = ["router", "choose experts", "sort tokens by expert", "expert gate up", "expert down", "add up experts"]
    assert [name for name in names if name in order] == order


def test_new_tokens_alone_are_a_prefill() -> None:
    assert step(LLAMA, H100, batch=2, q_len=512) == step(LLAMA, H100, batch=2, q_len=512, kv_len=512)
    with pytest.raises(InputError, match="kv_len: None given"):
        step(LLAMA, H100, batch=2, q_len=1)


def test_tokens_of_a_prompt_share_everything_but_attention() -> None:
    asked = {"batch": 64, "q_len": 1, "kv_len": 2048}
    mixed, decoding = step("llama-3.1-8b", H100, prompt_tokens=512, **asked), step("llama-3.1-8b", H100, **asked)
    prompt = step("llama-3.1-8b", H100, q_len=512)
    rows = step("llama-3.1-8b", H100, batch=576, q_len=1, kv_len=1, logits="none")
    assert mixed.attention_seconds == pytest.approx(decoding.attention_seconds + prompt.attention_seconds)
    assert mixed.linear_seconds - mixed.output_seconds < rows.linear_seconds < mixed.linear_seconds
    assert max(decoding.seconds, prompt.seconds) < mixed.seconds < decoding.seconds + prompt.seconds
    assert step("llama-3.1-8b", H100, prompt_tokens=0, **asked) == decoding
    assert mixed.tokens_per_second == pytest.approx(576 / mixed.stage_seconds)


def test_tokens_of_a_prompt_beside_latents_are_refused() -> None:
    with pytest.raises(InputError, match="prompt_tokens: 8 given; allowed: 0, but for models with plain attention"):
        step("deepseek-v3", H100, kv_len=64, q_len=1, prompt_tokens=8)


def test_a_step_states_the_experts_that_its_tokens_visit() -> None:
    spread = step("qwen3-30b-a3b", "h100-sxm5", batch=64, q_len=1, kv_len=1024)
    assert spread.experts_hit == pytest.approx(128 * (1 - (1 - 8 / 128) ** 64))
    assert "experts of a layer that its tokens visit: 125.9" in str(spread)
    routing = [64] * 8 + [0] * 120
    assert step("qwen3-30b-a3b", "h100-sxm5", batch=64, q_len=1, kv_len=1024, routing=routing).experts_hit == 8
    assert step("llama-3-8b", "h100-sxm5", batch=1, q_len=1, kv_len=64).experts_hit is None


@pytest.mark.parametrize("keys", [16, 128, 4096])
def test_a_decoded_token_attends_to_latents(keys):
    found = step("deepseek-v3", "h200-sxm", batch=1, q_len=1, kv_len=keys, layout=Layout())
    assert not [part for part in found.parts if part.name == "kv_b"]
    attended = 61 * 2 * 128 * keys * (576 + 512)
    assert found.flops - attended == pytest.approx(2 * found.model.active_parameters, rel=0.03)  # less the embedding


def test_what_ranks_send_and_the_share_of_the_peak():
    four = step("llama-3-70b", "h100-sxm5", batch=64, q_len=1, kv_len=64, layout=Layout(tensor_parallel=4))
    summed = 2 * 64 * 8192 * 3 // 2  # of each rank, around a ring
    assert next(part for part in four.parts if part.name == "all-reduce").sent_bytes == 160 * summed
    assert "sent [MB]" in str(four)
    assert f"MFU: {100 * four.mfu:.2g} %" in str(four)
    one = step("llama-3-8b", "h100-sxm5", batch=1, q_len=1, kv_len=1024)
    assert one.sent_bytes == 0
    assert "sent [MB]" not in str(one)
    assert one.mfu == one.flops / one.seconds / 989.4e12


@given(
    st.sampled_from(["llama-3-70b", "mixtral-8x22b", "deepseek-v3", "qwen3-235b-a22b", "llama-3-8b"]),
    st.sampled_from(["h100-sxm5", "b200", "a100-sxm4-80gb"]),
    st.sampled_from([1, 64]),
    st.sampled_from([(1, 4096), (512, 512)]),
)
@fraction_of_examples(20)
def test_a_layout_that_is_left_out_holds_the_model_and_is_the_best_of_a_plan(model, device, batch, lengths):
    queries, keys = lengths
    found = step(model, device, batch=batch, q_len=queries, kv_len=keys)
    service = as_service(model, keys - 1, 1).on(iomodel.hardware(device))
    assert service.laid_out(found.layout).memory(iomodel.hardware(device)).fits
    same = step(model, device, batch=batch, q_len=queries, kv_len=keys, layout=found.layout)
    assert replace(found, assumed=()) == same
    alone = service.memory(iomodel.hardware(device)).fits
    assert (found.layout == Layout()) == bool(alone) == (not found.assumed)
    for other in () if alone else default_layouts(service, iomodel.hardware(device), 8):
        if service.laid_out(other).memory(iomodel.hardware(device)).fits >= batch:
            timed = step(model, device, batch=batch, q_len=queries, kv_len=keys, layout=other)
            assert timed.tokens_per_second / other.devices <= found.tokens_per_second / found.layout.devices * (
                1 + 1e-9
            )


def test_the_one_layout_that_holds_a_model_has_its_reason():
    found = step("llama-3.1-405b", H100, q_len=1, kv_len=512)
    assert found.layout.devices == 16
    assert found.assumed[0].startswith("16 devices, for one does not hold the model")


def test_a_step_of_a_device_without_a_memory_on_file_is_on_one():
    data = iomodel.hardware("h100-sxm5").to_dict()
    del data["memory"]["hbm"]["capacity"]
    found = step("llama-3-70b", iomodel.Hardware.model_validate(data), batch=1, q_len=1, kv_len=64)
    assert (found.layout, found.assumed) == (Layout(), ())


def test_tensorrt_llm_rotates_head_by_head():
    """Its kernel takes at least as long for each head of a token, whatever the width."""
    times = {}
    for engine in ("tensorrt-llm", "vllm"):
        (part,) = (
            part for part in step("llama-3-8b", "b200", q_len=4096, engine=engine).parts if part.name == "rotary"
        )
        times[engine] = part.seconds / part.times
    known = rates(hardware("b200"), "bf16")
    assert times["tensorrt-llm"] == pytest.approx(63 * 4096 * 32 / (known.units * known.clock))
    assert times["vllm"] < times["tensorrt-llm"]
