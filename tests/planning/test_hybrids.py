"""Steps and plans of models with recurrent states, indexers, compressed caches, shared K and V, and mixed types.

Sizes and FLOPs are computed here from the published shapes of the layers, not by the package.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InputError, hardware, model
from iomodel.planning.plan import plan
from iomodel.planning.service import as_service
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.sparse_parts import clipped, visible
from iomodel.planning.step.step import linear_layers, step
from tests.models.test_published_configs import PUBLISHED, read

H100 = hardware("h100-sxm5")
SMALL = {
    "hidden_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 512,
    "vocab_size": 4000,
    "torch_dtype": "bfloat16",
}
DELTA = model(
    {
        **SMALL,
        "model_type": "qwen3_5_text",
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 64,
        "linear_value_head_dim": 32,
    }
)
MAMBA = model(
    {
        **SMALL,
        "model_type": "nemotron_h",
        "hybrid_override_pattern": "M-*-",
        "mamba_num_heads": 8,
        "mamba_head_dim": 32,
        "ssm_state_size": 64,
        "n_groups": 2,
        "conv_kernel": 4,
        "chunk_size": 128,
    }
)
SPARSE = model(
    {
        **SMALL,
        "model_type": "deepseek_v32",
        "q_lora_rank": 128,
        "kv_lora_rank": 128,
        "qk_rope_head_dim": 32,
        "qk_nope_head_dim": 64,
        "v_head_dim": 64,
        "index_n_heads": 4,
        "index_head_dim": 64,
        "index_topk": 256,
        "n_routed_experts": 0,
    }
)
COMPRESSED = model(
    {
        **SMALL,
        "model_type": "deepseek_v4",
        "num_key_value_heads": 1,
        "q_lora_rank": 128,
        "o_groups": 2,
        "o_lora_rank": 64,
        "index_n_heads": 4,
        "index_head_dim": 64,
        "index_topk": 64,
        "compress_ratios": [0, 4, 128, 4],
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
    }
)


def service(spec, **types):
    return as_service(spec, 16, 4, **types, memory_utilization=0.9, overhead_bytes=0, engine=None)


@pytest.mark.parametrize("name", PUBLISHED)
def test_one_device_holds_what_was_released(name):
    spec = read(name)
    served = service(spec)
    assert served.weights.of_stage(spec.layers, 0) == spec.weight_bytes()
    held = sum(service(spec, kv_dtype="bf16").requests.cache(layer, 5000) for layer in spec.layers)
    assert held == spec.kv_bytes(5000) + spec.index_bytes(5000)
    assert sum(served.requests.state(layer) for layer in spec.layers) == spec.state_bytes()


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_linear_layers_are_all_the_matrices(name):
    spec = read(name)
    inside = [layer for layer in linear_layers(spec) if layer.name not in ("router", "shared router", "output")]
    matrices = sum(times * m.elements for layer, times in spec.counted.items() for m in layer.linears(spec.hidden_size))
    assert sum(layer.in_features * layer.out_features * layer.times for layer in inside) == matrices


def part(spec, name, **at):
    found = [one for one in step(spec, H100, **at).parts if one.name == name]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(("batch", "context"), [(1, 100), (7, 5000)])
def test_a_decode_step_reads_and_writes_every_state(batch, context):
    update, convolution = (
        part(DELTA, name, batch=batch, q_len=1, kv_len=context) for name in ("state update", "convolution")
    )
    channels = 2 * 2 * 64 + 4 * 32
    state, kept = 4 * 64 * 32 * 4, channels * 3 * 2
    assert DELTA.state_bytes() == 3 * (state + kept)
    assert update.hbm_bytes == batch * 3 * (2 * state + (channels + 4 * 32) * 2)
    assert convolution.hbm_bytes == batch * 3 * (2 * kept + 2 * channels * 2)
    assert (update.flops, convolution.flops) == (batch * 3 * 4 * 7 * 64 * 32, batch * 3 * 2 * channels * 4)
    mamba = [part(MAMBA, name, batch=batch, q_len=1, kv_len=context) for name in ("state update", "convolution")]
    wide = 256 + 2 * 2 * 64
    assert [one.flops for one in mamba] == [batch * 8 * (5 * 32 * 64 + 2 * 32), batch * 2 * wide * 4]


@pytest.mark.parametrize("tokens", [1, 64, 65, 1000])
def test_a_prefill_computes_whole_chunks(tokens):
    update = part(DELTA, "state update", batch=2, q_len=max(2, tokens), kv_len=max(2, tokens))
    tokens = max(2, tokens)
    chunks = -(-tokens // 64)
    head = 2 * 64 * (2 * 64 + 32) + 6 * 64 * 32 + 64 * (64 + 32)
    assert update.flops == 2 * 3 * 4 * 64 * chunks * head
    wide, keys, values, states = 4 * 64, 2 * 64, 4 * 32, 4 * 64 * 32  # of a token: W, K or Q, values; of a chunk
    scores = 4 * 64 * (4 + 4 + 2 + 2)
    handed = 2 * (5 * keys + 2 * wide + 6 * values + 2 * states // 64) + scores
    assert update.hbm_bytes == 2 * 3 * (4 * states + tokens * handed)


@given(st.integers(1, 300), st.integers(0, 300), st.integers(1, 9))
def test_visible_pairs_are_those_one_by_one(queries, before, pool):
    keys = queries + before
    assert visible(queries, keys, pool) == sum(i // pool for i in range(before + 1, keys + 1))


def test_an_indexer_reads_all_keys_and_attention_the_selected_ones():
    for context in (100, 1000, 30_000):
        scores = part(SPARSE, "index scores", batch=3, q_len=1, kv_len=context)
        assert scores.hbm_bytes == 4 * 3 * (context * 64 * 2 + 4 * 64 * 2 + 2 * context * 4)
        assert scores.flops == 4 * 3 * context * 4 * (2 * 64 + 2)
    attending = [step(SPARSE, H100, batch=3, q_len=1, kv_len=n) for n in (256, 1000, 30_000)]
    sizes = {sum(one.hbm_bytes for one in t.parts if "selected" in one.name) for t in attending}
    flops = {sum(one.flops for one in t.parts if "selected" in one.name) for t in attending}
    assert len(sizes) == 1
    assert flops == {4 * 3 * 2 * 4 * 256 * (128 + 32 + 128)}


def test_a_sparse_prefill_is_dense_up_to_the_selected_keys():
    flops = {
        n: sum(one.flops for one in step(SPARSE, H100, batch=1, q_len=n, kv_len=n).parts if "selected" in one.name)
        for n in (200, 256, 700)
    }
    for tokens, found in flops.items():
        pairs = sum(min(i, 256) for i in range(1, tokens + 1))
        assert found == 4 * 2 * 4 * pairs * (128 + 32 + 128)


def test_a_compressed_cache_is_read_by_entries():
    t = step(COMPRESSED, H100, batch=2, q_len=1, kv_len=10_000)
    attending = sum(one.flops for one in t.parts if "selected" in one.name)
    keys = 128 + 2 * (128 + 64) + (128 + 10_000 // 128)
    assert attending == 2 * 2 * 4 * keys * (64 + 64)
    scores = sum(one.flops for one in t.parts if one.name == "index scores")
    assert scores == 2 * 2 * (10_000 // 4) * 4 * (2 * 64 + 2)


@given(st.integers(1, 40), st.integers(0, 60), st.integers(1, 50), st.sampled_from([1, 4, 16]))
def test_pairs_of_a_prefill_are_those_of_its_queries(q_len, before, most, pool):
    ends = range(before + 1, before + q_len + 1)
    assert clipped(q_len, before + q_len, most, pool) == sum(min(end // pool, most) for end in ends)


def test_a_prefill_through_compressed_attention_is_timed():
    """Each query sees its window and the finished entries, 64 at most where an indexer keeps as many."""
    t = step(COMPRESSED, H100, batch=2, q_len=1000, kv_len=1000)
    attending = sum(one.flops for one in t.parts if "selected" in one.name)
    window = sum(min(end, 128) for end in range(1, 1001))
    keys = [window, *[window + sum(min(end // 4, 64) for end in range(1, 1001))] * 2]
    keys.append(window + sum(end // 128 for end in range(1, 1001)))
    assert attending == 2 * 4 * 2 * (64 + 64) * sum(1000 * -(-pairs // 1000) for pairs in keys)
    times = [step(COMPRESSED, H100, batch=1, q_len=n, kv_len=n).seconds for n in (1, 16, 17, 100, 1000, 1001, 8192)]
    assert times == sorted(times)
    assert plan(COMPRESSED, H100, prompt=100, output=10).tokens_per_second > 0


@pytest.mark.parametrize(
    ("spec", "ranks", "message"),
    [
        (DELTA, 4, "tensor_parallel: 4 given; allowed: a divisor of key_heads = 2, such as 2"),
        (MAMBA, 4, "tensor_parallel: 4 given; allowed: a divisor of groups = 2, such as 2"),
        (COMPRESSED, 4, "tensor_parallel: 4 given; allowed: a divisor of o_groups = 2, such as 2"),
    ],
)
def test_ranks_that_do_not_divide(spec, ranks, message):
    with pytest.raises(InputError, match=message):
        step(spec, H100, batch=1, q_len=1, kv_len=10, layout=Layout(tensor_parallel=ranks))


@pytest.mark.parametrize(("device", "engine"), [("h100-sxm5", "sglang"), ("b200", "vllm==0.24"), ("a100", "vllm")])
def test_prompts_of_a_delta_rule_are_never_faster_with_more_of_them(device, engine):
    """Nor on fewer ranks, nor with states before them."""
    spec = read("Qwen/Qwen3.5-397B-A17B")
    sizes = [(1, 64), (1, 65), (1, 1000), (2, 1000), (9, 1000), (64, 1000), (64, 4096), (64, 4160)]

    def seconds(batch, tokens, before=0, ranks=1):
        layout = Layout(tensor_parallel=ranks)
        timed = step(spec, device, batch=batch, q_len=tokens, kv_len=tokens + before, engine=engine, layout=layout)
        return sum(p.seconds for p in timed.parts if p.name in ("convolution", "state update"))

    times = [seconds(*size) for size in sizes]
    assert times == sorted(times)
    assert all(one <= seconds(*size, before=1) for size, one in zip(sizes, times, strict=True))
    assert all(seconds(*size, ranks=4) <= one for size, one in zip(sizes, times, strict=True))


def test_one_kernel_hands_chunks_on_in_an_sm():
    """Its time is that of whole waves of heads; kernels over chunks take their traffic to HBM and back."""
    spec = read("Qwen/Qwen3.5-397B-A17B")
    one, two = (part_of(spec, "b200", "vllm==0.24", batch) for batch in (1, 3))
    assert one.seconds < two.seconds < 2.1 * one.seconds  # 64 heads, and 192 on 148 SMs
    assert two.seconds < part_of(spec, "b200", "sglang", 3).seconds
    assert two.hbm_bytes < part_of(spec, "b200", "sglang", 3).hbm_bytes / 4


def part_of(spec, device, engine, batch):
    timed = step(spec, device, batch=batch, q_len=8192, engine=engine, layout=Layout())
    return next(one for one in timed.parts if one.name == "state update")


def test_ranks_divide_heads_and_states():
    one, two = (step(DELTA, H100, batch=4, q_len=1, kv_len=100, layout=Layout(tensor_parallel=n)) for n in (1, 2))
    halves = {t.layout.tensor_parallel: next(p for p in t.parts if p.name == "state update") for t in (one, two)}
    assert halves[2].hbm_bytes * 2 == halves[1].hbm_bytes
    assert halves[2].flops * 2 == halves[1].flops


def test_a_plan_counts_the_state_once_for_a_request():
    short = plan(DELTA, H100, prompt=100, output=10, batch=4, engine=None)
    long = plan(DELTA, H100, prompt=1000, output=10, batch=4, engine=None)
    token = 2 * 2 * 64 * 2  # one layer with K and V of two heads
    assert short.memory.request_bytes == DELTA.state_bytes() + 110 * token
    assert long.memory.request_bytes - short.memory.request_bytes == 900 * token


def test_a_matrix_left_out_of_a_quantisation_is_read_wide():
    config = {**SMALL, "model_type": "llama"}
    scheme = {"quant_method": "fp8", "modules_to_not_convert": ["self_attn"]}
    mixed, whole = (
        model({**config, "quantization_config": scheme}),
        model({**config, "quantization_config": {**scheme, "modules_to_not_convert": []}}),
    )
    at = {"batch": 1, "q_len": 1, "kv_len": 64}
    size = {spec: part(spec, "q k v", **at).hbm_bytes for spec in (mixed, whole)}
    assert size[mixed] - size[whole] == pytest.approx(4 * 256 * (256 + 2 * 128), rel=0.01)
    assert part(mixed, "down", **at).hbm_bytes == part(whole, "down", **at).hbm_bytes


def test_the_recommended_type_of_the_cache_is_used():
    scheme = {
        "quant_algo": "FP8",
        "kv_cache_quant_algo": "FP8",
        "exclude_modules": ["lm_head"],
        "quant_method": "modelopt",
    }
    spec = model({**SMALL, "model_type": "llama", "quantization_config": scheme})
    assert step(spec, H100, batch=1, q_len=1, kv_len=64).kv_dtype == "fp8"
    assert step(spec, H100, batch=1, q_len=1, kv_len=64, kv_dtype="bf16").kv_dtype == "bf16"
    assert (
        plan(spec, H100, prompt=16, output=4, batch=1, engine=None).memory.token_bytes * 2 == spec.kv_bytes_per_token()
    )
