"""Laws of a training step: memory, time, FLOPs, bubble; the table of the docs, recomputed."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import iomodel
from benchmarks.training_accuracy import (
    GPT3,
    LLAMA2,
    SHAPES,
    errors,
    gpt,
    llama,
    memory_table,
    model_of,
    mpt,
    predicted,
    rows,
    table,
    utilisation,
)
from iomodel.planning.layouts import every_layout
from iomodel.planning.training.passes import SUSTAINED
from iomodel.planning.training.stage_times import Collective, Exposure
from iomodel.planning.training.strategy import FRAMEWORKS, OVERLAPS, RECOMPUTE, SHARDS
from iomodel.planning.training.training_memory import GATHERED, layer_activations
from tests.support.device_edits import edited

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
GPU = "h100-sxm5"
MODEL = mpt("125m", 512)
ASKED = {"batch": 32, "seq_len": 512}


def run(**changes):
    return iomodel.train_step(MODEL, GPU, **{**ASKED, **changes})


def test_the_table_is_what_the_benchmark_prints():
    assert "\n".join(table()) in PAGE


def test_the_table_of_memory_is_what_the_benchmark_prints():
    assert "\n".join(memory_table()) in PAGE


def test_rows_of_many_devices_are_as_wrong_as_the_page_says():
    held = [row for row in rows() if row["table"] == "H100 80GB (nanotron)"]
    few, many = (
        median(abs(errors(row)[0]) for row in held if (int(row["devices"]) <= 64) == below) for below in (True, False)
    )
    assert f"error is {100 * few:.1f} %, beyond them {100 * many:.1f} %" in PAGE
    assert f"up to {100 * max(errors(row)[0] for row in held):.0f} % where" in PAGE


def test_large_errors_of_fully_sharded_steps_are_those_of_long_sequences():
    held = [row for row in rows() if row["table"] in ("H100 80GB (128 and more)", "H100 80GB")]
    large = [(errors(row)[0], int(row["seq_len"])) for row in held if abs(errors(row)[0]) > 0.2]
    assert large
    assert all(error < 0 and length >= 8192 for error, length in large)


def test_a_constant_of_the_other_device_is_as_wrong_as_the_page_says():
    shares = {}
    for row in rows():
        shares.setdefault(row["table"], []).append(utilisation(row))
    constant = median(shares["A100 80GB"])
    assert f"the median of the A100, {constant:.0%}".replace("%", " %") in PAGE
    off = [
        median(abs(constant / share - 1) for share in shares[name])
        for name in ("H100 80GB (128 and more)", "H100 80GB")
    ]
    assert f"would be {100 * off[0]:.0f} and {100 * off[1]:.0f} % off" in PAGE


def test_the_overheads_are_those_of_the_calibration_rows():
    """That of the A100 leaves no median error, that of the H100 none of the ratio to the A100 with the same scripts."""
    errors_of = {}
    for row in rows():
        errors_of.setdefault(row["table"], []).append(errors(row)[0])
    assert abs(median(errors_of["A100 80GB"])) < 0.005
    pairs = zip(errors_of["H100 80GB, compiled"], errors_of["A100 80GB, compiled"], strict=True)
    assert median((1 + wide) / (1 + narrow) for wide, narrow in pairs) == pytest.approx(1, abs=0.005)


def test_models_have_the_published_number_of_parameters():
    for row in rows():
        if row["parameters"]:
            assert model_of(row).parameters == int(row["parameters"])


def test_models_have_the_published_work_for_a_token():
    """Both tables give FLOPs and tokens per second: 6 per weight, and attention over all pairs, or the visible half."""
    held = [row for row in rows() if row["published_tflops"] and row["expert_parallel"] == "1"]
    assert len(held) == 12
    for row in held:
        model, positions = model_of(row), int(row["seq_len"])
        width, layers = model.hidden_size, len(model.layers)
        table = model.vocab_size * width
        weights = model.parameters - model.other_weights - table * (not model.tied_embeddings)
        pairs = positions if row["model"] in {*GPT3, *LLAMA2} else positions / 2
        work = 6 * weights + 12 * layers * width * pairs
        published = float(row["published_tflops"]) * 1e12 / float(row["tokens_per_second_per_device"])
        assert work == pytest.approx(published, rel=0.01), row["model"]


def test_models_with_experts_have_the_published_work_for_a_token():
    """But for gpt-oss, which the table counts at 27 GFLOP for each token, five sixths of its active weights' work."""
    held = {row["model"]: row for row in rows() if row["expert_parallel"] != "1" and "gpt-oss" not in row["model"]}
    assert len(held) == 3
    for row in held.values():
        step = predicted(row)
        work = step.model_flops / step.batch / step.seq_len
        published = float(row["published_tflops"]) * 1e12 / float(row["tokens_per_second_per_device"])
        assert work == pytest.approx(published, rel=0.02), row["model"]


EXPERTS = {"batch": 64, "seq_len": 1024, "shard": "optimizer"}


def experts(model="qwen3-30b-a3b", ranks=8, **changes):
    layout = iomodel.Layout(expert_parallel=ranks, devices_per_node=8)
    return iomodel.train_step(model, GPU, **{**EXPERTS, "layout": layout, **changes})


def test_ranks_divide_experts_and_replicas_the_rest():
    """Weights of 2 bytes: the experts of a rank and all others; states of 12, the others divided among all devices."""
    model = iomodel.model("qwen3-30b-a3b")
    routed = 48 * 128 * 3 * 2048 * 768
    for ranks, replicas in ((1, 1), (8, 1), (8, 2), (16, 4)):
        memory = experts(ranks=ranks, data_parallel=replicas).memory
        dense, own = model.parameters - routed, routed // ranks
        assert memory.parameters == 2 * (dense + own)
        assert memory.optimizer == 12 * (-(-dense // (ranks * replicas)) + -(-own // replicas))


def test_more_ranks_of_experts_keep_the_work_and_add_an_exchange():
    one, eight, sixteen = (experts(ranks=ranks) for ranks in (1, 8, 16))
    assert one.model_flops == pytest.approx(eight.model_flops, rel=1e-3)
    assert one.breakdown["exchange of experts"] == 0 < eight.breakdown["exchange of experts"]
    assert eight.bubble == 0
    assert sixteen.devices == 16


def test_each_node_of_a_token_adds_the_same_time():
    """Up to the nodes there are; on one node, where a row crosses no network, a limit changes nothing."""
    name = "exchange of experts"
    times = [experts(ranks=32, nodes_per_token=nodes).breakdown[name] for nodes in (1, 2, 3, 4, 8)]
    steps = [more - less for less, more in pairwise(times)]
    assert steps[:3] == pytest.approx([steps[0]] * 3)
    assert steps[0] > 0 == steps[3]
    assert experts(nodes_per_token=1).breakdown[name] == pytest.approx(experts().breakdown[name])


def test_rows_that_cross_the_network_once_for_each_node_take_less_time():
    assert experts(ranks=32, nodes_per_token=4).seconds < experts(ranks=32).seconds
    beside, alone = (experts(ranks=32, overlap=overlap) for overlap in (["data", "experts"], ["data"]))
    assert beside.seconds < alone.seconds < beside.serial_seconds == alone.serial_seconds


def test_latents_are_expanded():
    """DeepSeek-V2-Lite: six times the products of a token, and queries and keys of 192, values of 128 elements."""
    step = experts("deepseek-v2-lite", seq_len=128)
    attention = 2048 * 16 * 192 + 2048 * (512 + 64) + 512 * 16 * (128 + 128) + 16 * 128 * 2048
    mlps = 3 * 2048 * 10944 + 26 * (2048 * 64 + 3 * 2048 * 1408 * (6 + 2))
    tokens, pairs = 64 * 128, 64 * 128 * 129 // 2
    work = 6 * (27 * attention + mlps + 2048 * 102400) * tokens + 3 * 2 * 27 * 16 * (192 + 128) * pairs
    assert step.model_flops == pytest.approx(work, rel=1e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_activations_are_those_of_korthikanti(name):
    """34 sbh of a layer, without 2 sbh of dropout masks and with 4 bytes of statistics for each row and head."""
    model, tokens, ranks = mpt(name, 512), 3 * 512, 2
    _, hidden, heads = SHAPES[name]
    layout = iomodel.Layout(tensor_parallel=ranks)
    kept = layer_activations(model.layers[0], hidden, tokens, layout)
    assert kept * ranks == tokens * hidden * (34 - 2) + 4 * tokens * heads
    assert layer_activations(model.layers[0], hidden, tokens, layout, "full") * ranks == 2 * tokens * hidden


@pytest.mark.parametrize(("gradient_dtype", "size"), [("fp32", 18), ("bf16", 16)])
def test_one_device_holds_every_weight(gradient_dtype, size):
    memory = run(shard="none", gradient_dtype=gradient_dtype).memory
    assert memory.total - memory.activations == size * MODEL.parameters


@pytest.mark.parametrize(
    ("shard", "gigabytes"), [("none", 120), ("optimizer", 31.4), ("gradients", 16.6), ("parameters", 1.9)]
)
def test_states_are_those_of_zero(shard, gigabytes):
    """Rajbhandari et al. 2020, Figure 1: 7.5 billion weights on 64 replicas."""
    layers = gpt("7.5b", (37, 4096, 32), 51200, 0)
    layers = layers.model_copy(update={"tied_embeddings": True})
    size = layers.parameters
    memory = iomodel.train_step(
        layers, GPU, batch=64, seq_len=128, data_parallel=64, shard=shard, gradient_dtype="bf16",
        layout=iomodel.Layout(),
    ).memory  # fmt: skip
    widest = 2 * GATHERED * (12 * 4096**2 + 13 * 4096) if shard == "parameters" else 0
    states = memory.parameters + memory.gradients + memory.optimizer - widest
    assert states * 7.5 / (size / 1e9) / 1e9 == pytest.approx(gigabytes, abs=0.05)


def test_eager_kernels_keep_logits_gates_and_gradients():
    model, tokens = llama("llama-8.86b"), 4096
    asked = {"batch": 1, "seq_len": tokens, "shard": "none", "layout": iomodel.Layout()}
    fused, eager = (iomodel.train_step(model, GPU, **asked, kernels=kernels).memory for kernels in ("fused", "eager"))
    assert eager.gradients - fused.gradients == 2 * model.parameters
    assert eager.activations - fused.activations == 10 * tokens * 131072 + 2 * tokens * 14336 * 32


@pytest.mark.parametrize("shard", SHARDS)
def test_more_replicas_never_need_more_memory(shard):
    sizes = [run(shard=shard, data_parallel=n).memory.total for n in (1, 2, 4, 8, 16, 32)]
    assert sizes == sorted(sizes, reverse=True)
    if shard != "none":
        assert sizes[-1] < sizes[0]


def test_each_stage_of_sharding_needs_no_more_memory():
    sizes = [run(shard=shard, data_parallel=8).memory.total for shard in SHARDS]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(SHARDS)


@pytest.mark.parametrize("stages", [1, 4])
def test_recomputation_saves_memory_and_takes_time(stages):
    layout = iomodel.Layout(pipeline_parallel=stages)
    steps = [run(layout=layout, recompute=recompute) for recompute in RECOMPUTE]
    times, sizes = [step.seconds for step in steps], [step.memory.total for step in steps]
    assert times == sorted(set(times))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes) - 1, "an early stop keeps what full recomputation keeps"
    assert len({step.model_flops for step in steps}) == 1


def test_selective_recomputation_runs_every_second_product_again():
    """k, o and the up projection of Llama 3 8B: 0.365 of the FLOPs of its matrices."""
    llama, asked = iomodel.model("llama-3-8b"), {"batch": 8, "seq_len": 2048}
    selective, early = (iomodel.train_step(llama, GPU, recompute=name, **asked) for name in ("selective", "early-stop"))
    share = selective.breakdown["recomputation"] / early.breakdown["recomputation"]
    matrices = [matrix.elements for matrix in llama.layers[0].linears(4096)]
    q, k, v, o, gate, up, _ = matrices
    assert (k + o + up) / sum(matrices) == pytest.approx(0.365, abs=0.001)
    assert share == pytest.approx((k + o + up) / (q + k + v + o + gate + up), abs=0.15)


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_ranks_that_divide_a_sequence_keep_the_work_and_divide_the_activations(recompute):
    asked = {"batch": 8, "seq_len": 4096, "recompute": recompute}
    layouts = [iomodel.Layout(context_parallel=ranks) for ranks in (1, 2, 4)]
    steps = [iomodel.train_step("llama-3.2-1b", GPU, layout=layout, **asked) for layout in layouts]
    assert [step.devices for step in steps] == [1, 2, 4]
    assert len({step.model_flops for step in steps}) == 1
    kept = [step.memory.activations for step in steps]
    assert [each / kept[0] for each in kept] == pytest.approx([1, 1 / 2, 1 / 4], rel=0.01)
    times = [step.seconds for step in steps]
    assert times[0] > times[1] > times[2] > times[0] / 4
    alone = iomodel.train_step("llama-3.2-1b", GPU, layout=layouts[2], overlap=["data"], **asked)
    assert alone.breakdown["exchange of keys and values"] > 0 == steps[0].breakdown["exchange of keys and values"]


@pytest.mark.parametrize("shard", SHARDS)
def test_ranks_that_divide_a_sequence_hold_what_replicas_hold(shard):
    asked = {"batch": 8, "seq_len": 4096, "shard": shard}
    parts, replicas = (
        iomodel.train_step("llama-3.2-1b", GPU, **asked, **more)
        for more in ({"layout": iomodel.Layout(context_parallel=4)}, {"data_parallel": 4})
    )
    for held in ("parameters", "gradients", "optimizer"):
        assert getattr(parts.memory, held) == getattr(replicas.memory, held)
    assert parts.breakdown["optimizer"] == replicas.breakdown["optimizer"]
    assert parts.breakdown["exposed data-parallel collectives"] > 0


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_gives_what_is_not_given(framework):
    asked = {**ASKED, "data_parallel": 2}
    named = iomodel.train_step(MODEL, GPU, framework=framework, **asked)
    for field, value in FRAMEWORKS[framework].items():
        assert getattr(named, field) == value
    assert iomodel.train_step(MODEL, GPU, framework=framework, recompute="full", **asked).recompute == "full"


def test_published_steps_of_torchtitan():
    """Llama 2 and 3 on 64 A100 without compilation (docs/performance.md of pytorch/torchtitan)."""
    published = [
        ("llama-2-13b", 4096, 2, "none", 2162),
        ("llama-2-13b", 4096, 2, "selective", 1904),
        ("llama-2-70b", 4096, 1, "selective", 355),
        ("llama-2-70b", 4096, 2, "full", 353),
        ("llama-3-8b", 8192, 1, "selective", 2973),
        ("llama-3-70b", 8192, 1, "full", 331),
    ]
    found = [
        iomodel.train_step(
            name, "a100-sxm4-80gb", batch=64 * micro, micro_batch=micro, seq_len=length, data_parallel=64,
            framework="torchtitan", recompute=recompute,
        ).tokens_per_second_per_device
        / rate
        - 1
        for name, length, micro, recompute, rate in published
    ]  # fmt: skip
    off = sorted(abs(error) for error in found)
    assert f"within {100 * off[-1]:.0f} %, {100 * median(off):.1f} % in the median" in PAGE


@pytest.mark.parametrize("stages", [1, 5])
def test_more_layers_that_run_again_take_more_time_and_keep_less(stages):
    """Five stages of the twelve layers have three or two each."""
    layout = iomodel.Layout(pipeline_parallel=stages)
    most = -(-12 // stages)
    steps = [
        run(layout=layout), *(run(layout=layout, recompute="full", recompute_layers=n) for n in range(1, most + 1))
    ]  # fmt: skip
    kept = [step.memory.activations for step in steps]
    assert kept[1:] == sorted(kept[1:], reverse=True)
    assert [step.seconds for step in steps] == sorted(step.seconds for step in steps)
    whole = run(layout=layout, recompute="full")
    assert (steps[-1].seconds, steps[-1].memory) == (whole.seconds, whole.memory)
    assert {step.model_flops for step in steps} == {whole.model_flops}


def test_a_part_of_the_layers_runs_again_in_that_share_of_the_time():
    whole = run(recompute="full").breakdown["recomputation"]
    for layers in (3, 6):
        part = run(recompute="full", recompute_layers=layers).breakdown["recomputation"]
        assert part == pytest.approx(whole * layers / 12)


@pytest.mark.parametrize("layers", [1, 3, 12])
def test_layers_that_run_again_keep_their_inputs(layers):
    """Two bytes for each token and channel, in place of all that a layer keeps; one at a time is whole again."""
    none, again = run(recompute="none"), run(recompute="full", recompute_layers=layers)
    layer, tokens = MODEL.layers[0], 512 * again.micro_batch
    every = layer_activations(layer, MODEL.hidden_size, tokens, iomodel.Layout())
    saved = every - 2 * tokens * MODEL.hidden_size
    assert none.memory.activations - again.memory.activations == (layers - 1) * saved
    assert again.memory.parameters == none.memory.parameters


def test_an_early_stop_leaves_out_the_last_product():
    """Of the 12 h^2 weights of a layer of a GPT, the last product has 4."""
    model = mpt("13b", 512)
    early, full = (
        iomodel.train_step(model, GPU, batch=16, seq_len=512, micro_batch=16, recompute=recompute)
        for recompute in ("early-stop", "full")
    )
    assert early.breakdown["recomputation"] / full.breakdown["recomputation"] == pytest.approx(2 / 3, abs=0.03)


def test_flops_are_those_of_weights_and_visible_pairs():
    step = run(micro_batch=4)
    heads, width, tokens = 12, 64, 32 * 512
    multiplied = 12 * 12 * 768**2 + 768 * 50368
    pairs = 32 * 512 * 513 // 2
    assert step.model_flops == 6 * multiplied * tokens + 3 * 4 * 12 * heads * width * pairs
    for layout in (iomodel.Layout(tensor_parallel=4), iomodel.Layout(pipeline_parallel=3)):
        assert run(layout=layout).model_flops == step.model_flops


@pytest.mark.parametrize("stages", [1, 2, 6])
def test_bubble_is_the_closed_form(stages):
    step = run(layout=iomodel.Layout(pipeline_parallel=stages), micro_batch=2)
    assert step.bubble == (stages - 1) / 16
    working = sum(step.breakdown.values()) - step.breakdown["pipeline bubble"] - step.breakdown["optimizer"]
    assert step.breakdown["pipeline bubble"] == pytest.approx(step.bubble * working)


@pytest.mark.parametrize("chunks", [1, 3])
def test_virtual_stages_divide_the_bubble_and_multiply_sends_and_activations(chunks):
    """Activations of the first stage: Korthikanti et al. 2022, section 4.2.3."""
    stages = 4
    layout = iomodel.Layout(pipeline_parallel=stages)
    small = MODEL.model_copy(update={"vocab_size": 512})  # so that the logits of the last stage do not count
    asked = {**ASKED, "layout": layout}
    one, step = (iomodel.train_step(small, GPU, **asked, virtual_stages=v) for v in (1, chunks))
    assert step.bubble * chunks == pytest.approx(one.bubble)
    kept = layer_activations(MODEL.layers[0], MODEL.hidden_size, 512, layout) * 12 // stages
    more = stages * (1 + (stages - 1) / (stages * chunks)) if chunks > 1 else stages
    assert step.memory.activations == pytest.approx(kept * more)
    assert step.model_flops == one.model_flops


def test_a_virtual_stage_sends_to_both_of_its_neighbours():
    """Of two devices each has one end of the model, which has one neighbour less."""
    layout = iomodel.Layout(pipeline_parallel=2)
    sends = [run(layout=layout, virtual_stages=v, overlap=[]).breakdown["sends between stages"] for v in (1, 3)]
    assert sends[1] == pytest.approx(5 * sends[0])
    assert run(layout=layout, virtual_stages=3).breakdown["sends between stages"] == 0


WIDE = {
    "layout": iomodel.Layout(tensor_parallel=2, pipeline_parallel=2, devices_per_node=4),
    "data_parallel": 2,
    "virtual_stages": 3,
}


def test_collectives_of_a_pass_that_it_hides_hide_no_others():
    """With faster links a pass hides less of its own: what it does not hide of them alone makes room for gradients."""
    fast, layout = (
        edited(iomodel.hardware("b300"), {"interconnect.per_direction": 4e12}),
        iomodel.Layout(tensor_parallel=8),
    )
    asked = {"batch": 64, "seq_len": 4096, "layout": layout, "data_parallel": 2, "recompute": "early-stop"}
    given, faster = (iomodel.train_step("llama-3.2-3b", device, **asked) for device in ("b300", fast))
    assert given.breakdown["exposed data-parallel collectives"] > 0
    assert faster.seconds < given.seconds


@pytest.mark.parametrize("shard", SHARDS)
def test_overlap_never_takes_more_time_and_without_it_a_step_is_serial(shard):
    names = [(), ("data",), ("data", "tensor"), OVERLAPS]
    steps = [run(shard=shard, overlap=overlap, **WIDE) for overlap in names]
    times = [step.seconds for step in steps]
    assert times == sorted(times, reverse=True)
    assert times[-1] < times[0]
    assert all(step.serial_seconds == pytest.approx(times[0]) for step in steps)
    assert steps[0].breakdown["contention with collectives"] == 0 < steps[-1].breakdown["contention with collectives"]


def test_a_collective_has_one_unit_without_a_pass_beside_it():
    whole, unit = 10.0, 2.0
    for window, exposed in ((100.0, unit), (9.0, unit), (3.0, whole - 3)):
        beside, alone = Exposure(), Exposure()
        beside.add(Collective(whole, unit), window, True)
        alone.add(Collective(whole, unit), window, False)
        assert (beside.exposed, beside.hidden) == (exposed, whole - exposed)
        assert (alone.exposed, alone.hidden) == (whole, 0)


def test_more_replicas_take_more_latency_for_the_same_weights():
    """A ring has a step for each rank: the same batch for each replica takes longer on more of them."""
    asked = {"overlap": [], "shard": "parameters"}
    times = [run(batch=n, data_parallel=n, **asked).seconds for n in (8, 64, 512)]
    assert times == sorted(times)


def test_eager_kernels_stream_more():
    """A layer of a GPT: sums apart from norms, gradients of biases and Adam as operators; products are the same."""
    fused, eager = (run(kernels=kernels, micro_batch=8) for kernels in ("fused", "eager"))
    for cause in ("forward", "backward", "optimizer"):
        assert eager.breakdown[cause] > fused.breakdown[cause]
    assert eager.breakdown["optimizer"] / fused.breakdown["optimizer"] == pytest.approx(98 / 42, rel=0.05)
    assert eager.model_flops == fused.model_flops


def test_attention_is_that_of_the_kernels_asked_for():
    asked = {"seq_len": 16384, "batch": 1}
    fastest, second, first = (
        run(**asked, **attention)
        for attention in (
            {},
            {"attention_algorithm": "flash2", "attention_implementation": "flash-attention-2"},
            {"attention_algorithm": "flash1", "attention_implementation": "flash-attention-1-2023"},
        )
    )
    assert fastest.seconds < second.seconds < first.seconds
    assert fastest.model_flops == second.model_flops == first.model_flops


def test_products_are_no_faster_than_a_device_sustains():
    step = iomodel.train_step("llama-3-8b", GPU, batch=8, seq_len=4096, layout=iomodel.Layout())
    passes = sum(step.breakdown[cause] for cause in ("forward", "backward"))
    assert step.model_flops / passes < SUSTAINED["sm_90"]["bf16"] * 989.4e12


def test_fp8_takes_less_time_and_keeps_the_work_and_the_memory():
    wide, narrow = (iomodel.train_step("llama-3-8b", GPU, batch=8, seq_len=4096, precision=p) for p in ("bf16", "fp8"))
    assert 0.5 < narrow.seconds / wide.seconds < 0.9
    assert narrow.model_flops == wide.model_flops
    assert narrow.memory == wide.memory


def test_one_device_is_the_sum_of_its_parts():
    one = run()
    assert one.seconds == sum(one.breakdown.values())
    assert {cause for cause, seconds in one.breakdown.items() if seconds} == {
        "forward",
        "backward",
        "overhead",
        "gradients of a micro-batch",
        "optimizer",
    }
    assert run(batch=64).seconds - one.seconds == pytest.approx(one.seconds - one.breakdown["optimizer"])


@pytest.mark.parametrize("figure", ["memory.hbm.bandwidth", "compute.peak.bf16", "interconnect.per_direction"])
def test_a_faster_device_is_never_slower(figure):
    asked = {**ASKED, "data_parallel": 2, "layout": iomodel.Layout(tensor_parallel=2, devices_per_node=2)}
    times = []
    for factor in (1, 2):
        data = iomodel.hardware(GPU).to_dict()
        *path, last = figure.split(".")
        group = data
        for name in path:
            group = group[name]
        group[last]["value"] *= factor
        times.append(iomodel.train_step(MODEL, iomodel.Hardware.model_validate(data), **asked).seconds)
    assert times[1] <= times[0]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"layout": iomodel.Layout(pipeline_parallel=13)}, "pipeline_parallel: 13"),
        ({"layout": iomodel.Layout(expert_parallel=2)}, "expert_parallel: 2 given; allowed: 1, for MPT 125m"),
        ({"nodes_per_token": 0}, "nodes_per_token: 0"),
        ({"layout": iomodel.Layout(tensor_parallel=5)}, "tensor_parallel: 5"),
        ({"micro_batch": 3}, "batch: 32"),
        ({"shard": "zero"}, "shard"),
        ({"virtual_stages": 2}, "virtual_stages: 2 given; allowed: 1"),
        (
            {"virtual_stages": 7, "layout": iomodel.Layout(pipeline_parallel=2)},
            "virtual_stages: 7 given; allowed: up to 6",
        ),
        ({"virtual_stages": 2, "layout": iomodel.Layout(pipeline_parallel=3)}, "batch: 32"),
        ({"precision": "fp16"}, "precision"),
        ({"recompute": "early"}, "recompute: 'early' is unknown; did you mean 'early-stop'"),
        ({"recompute_layers": 2}, "recompute_layers: 2 given with recompute = 'none'; allowed: with 'full' or"),
        ({"recompute": "full", "recompute_layers": 13}, "recompute_layers: 13 given; allowed: up to 12, the layers"),
        ({"recompute": "full", "recompute_layers": 0}, "recompute_layers: 0"),
        (
            {"model": "deepseek-v2-lite", "layout": iomodel.Layout(tensor_parallel=4, decode_context_parallel=2)},
            "decode_context_parallel: 2 given; allowed: 1, in training",
        ),
        ({"kernels": "fuse"}, "kernels: 'fuse' is unknown; did you mean 'fused'"),
        ({"overlap": ["tensors"]}, "overlap: 'tensors' is unknown; did you mean 'tensor'"),
        ({"overlap": "data"}, "overlap: 'data' given; allowed: a list of data, tensor, pipeline"),
        ({"attention_algorithm": "standard"}, "attention_algorithm: 'standard' is unknown; .* flash1, flash2, flash3"),
        ({"attention_implementation": "cudnn"}, "attention_implementation: 'cudnn' given; allowed: with attention_alg"),
        (
            {"attention_algorithm": "flash2", "attention_implementation": "cudnn"},
            "for cudnn-blackwell of flash2; implementations that run: flash-attention-2",
        ),
        ({"precision": "fp8", "hardware": "a100-sxm4-80gb"}, "precision: fp8 given, .* allowed: bf16"),
        ({"model": "nemotron-h-56b"}, "model"),
        ({"model": "deepseek-v3.2"}, "model"),
    ],
)
def test_what_does_not_divide_is_refused_in_one_line(changes, field):
    with pytest.raises(iomodel.IOModelError, match=field) as refused:
        iomodel.train_step(**{"model": MODEL, "hardware": GPU, **ASKED, **changes})
    assert "\n" not in str(refused.value)


def test_a_step_beyond_the_memory_says_so():
    step = iomodel.train_step("llama-3.1-70b", "h100-sxm5", batch=1, seq_len=4096, layout=iomodel.Layout())
    excess = (step.memory.total - 80 * 2**30) / 1e9
    assert not step.fits
    assert f"does not fit: {excess:,.2f} GB beyond the 85.90 GB of a device" in str(step)
    assert "does not fit" not in str(iomodel.train_step(MODEL, GPU, **ASKED))


def test_a_step_prints_its_flops():
    found = run()
    assert f"FLOPs of the model in a step, on all devices: {found.model_flops:.4g}" in str(found)


def test_a_table_of_positions_has_weights_and_no_flops():
    """GPT-2 takes 6 FLOPs a weight and token, but for its two tables, and attention over the visible half."""
    asked = {"batch": 16, "seq_len": 1024}
    step, plain = (iomodel.train_step(iomodel.model("gpt2"), GPU, **asked), iomodel.model("gpt2"))
    work = 6 * (plain.parameters - 1024 * 768) + 6 * 12 * 768 * 1024
    assert step.model_flops / step.batch / step.seq_len == pytest.approx(work, rel=0.01)
    without = iomodel.train_step(plain.model_copy(update={"side": ()}), GPU, **asked)
    assert step.memory.optimizer - without.memory.optimizer == 12 * 1024 * 768


def test_a_side_layer_is_refused_by_name():
    with pytest.raises(iomodel.InputError, match=r"weights beside attention and MLPs \(.*altup"):
        iomodel.train_step("gemma-3n-e4b", GPU, batch=1, seq_len=1024)


def test_devices_give_the_replicas() -> None:
    asked: dict[str, Any] = {"batch": 128, "seq_len": 2048, "layout": iomodel.Layout(tensor_parallel=2)}
    step = iomodel.train_step("llama-3-8b", "h100-sxm5", count=16, **asked)
    assert step == iomodel.train_step("llama-3-8b", "h100-sxm5", data_parallel=8, **asked)
    for given, says in (({"count": 15}, "allowed: 14, or another multiple of the 2 devices"),
                        ({"count": 16, "data_parallel": 4}, "allowed: 8, or one of both alone")):  # fmt: skip
        with pytest.raises(iomodel.InputError, match=says):
            iomodel.train_step("llama-3-8b", "h100-sxm5", **given, **asked)


def test_a_measured_rate_has_its_utilisation():
    asked = {"batch": 8, "count": 8, "seq_len": 8192}
    predicted = iomodel.train_step("llama-3.1-8b", "h100-sxm5", **asked)
    own = predicted.tokens_per_second_per_device
    assert predicted.measured_mfu is None
    measured = iomodel.train_step("llama-3.1-8b", "h100-sxm5", measured=own, **asked)
    assert measured.measured_mfu == pytest.approx(predicted.mfu)
    faster = iomodel.train_step("llama-3.1-8b", "h100-sxm5", measured=9800, **asked)
    assert 0.49 < faster.measured_mfu < 0.61  # 51 to 58 GFLOP a token over 989 TFLOP/s
    assert f"measured: 9,800, an MFU of {100 * faster.measured_mfu:.1f} %" in str(faster)
    with pytest.raises(iomodel.errors.InputError, match=r"measured: -1 given; allowed: a number above 0"):
        iomodel.train_step("llama-3.1-8b", "h100-sxm5", measured=-1, **asked)


def test_kept_activations_under_full_recomputation_are_the_inputs_of_layers():
    found = iomodel.train_step(
        "llama-3.1-8b", "h100-sxm5", batch=1, seq_len=8192, recompute="full", layout=iomodel.Layout()
    )
    assert found.memory.kept == 32 * 8192 * 4096 * 2 < found.memory.activations
    assert "of layers, for backward passes     2.15" in str(found)


def test_a_layout_that_is_left_out_is_the_fastest_that_fits():
    asked = {"batch": 64, "seq_len": 4096, "count": 16}
    found = iomodel.train_step("llama-3.1-70b", GPU, recompute="full", **asked)
    assert found.fits
    assert found.devices == 16
    for layout in every_layout(found.model, 16):
        if layout.tensor_parallel <= 8 and not 16 % layout.devices:
            other = iomodel.train_step("llama-3.1-70b", GPU, recompute="full", layout=layout, **asked)
            assert not other.fits or found.seconds <= other.seconds
    assert found.assumed[0].endswith("layouts that fit")
    assert f"assumed: {found.assumed[0]}" in str(found)
    given = iomodel.train_step("llama-3.1-70b", GPU, recompute="full", layout=found.layout, **asked)
    assert replace(found, assumed=()) == given


def test_devices_that_are_left_out_are_the_fewest_that_hold_a_step():
    asked = {"batch": 32, "seq_len": 2048}
    found = iomodel.train_step("llama-3-8b", GPU, **asked)
    assert found.fits
    assert found.devices == 2
    assert "half as many do not hold the step" in found.assumed[0]
    assert not iomodel.train_step("llama-3-8b", GPU, count=1, **asked).fits
    one = iomodel.train_step(MODEL, GPU, **ASKED)
    assert (one.devices, one.assumed) == (1, ())
    replicas = iomodel.train_step("llama-3-8b", GPU, data_parallel=8, **asked)
    assert (replicas.layout, replicas.data_parallel, replicas.assumed) == (iomodel.Layout(), 8, ())


def test_a_batch_that_divides_among_no_layout_is_refused():
    with pytest.raises(iomodel.InputError, match=r"batch: 3 given; allowed: a multiple"):
        iomodel.train_step(MODEL, GPU, batch=3, seq_len=512, count=3 * 7, micro_batch=2)


def test_recomputation_runs_the_forward_pass_again():
    """Full recomputation as Megatron-LM runs it repeats each layer: 4/3 of the FLOPs of a model without an output layer
    (Korthikanti et al. 2022, section 5), and early stop leaves out the last product of each."""
    asked = {"batch": 64, "seq_len": 4096, "data_parallel": 8, "layout": iomodel.Layout()}
    steps = {name: iomodel.train_step("llama-3-8b", GPU, recompute=name, **asked) for name in RECOMPUTE}
    output = 3 * 2 * 64 * 4096 * 4096 * 128_256
    layers = steps["full"].model_flops - output
    assert steps["full"].recomputed_flops * 3 == layers
    assert steps["early-stop"].recomputed_flops * 3 == layers - 3 * 32 * 2 * 64 * 4096 * 14336 * 4096
    attention = 3 * 32 * 4 * 64 * 32 * 128 * (4096 * 4097 // 2)
    assert steps["attention"].recomputed_flops * 3 == attention
    assert steps["none"].recomputed_flops == 0
    assert steps["full"].hfu == pytest.approx(steps["full"].mfu * (1 + layers / 3 / steps["full"].model_flops))
    assert f"an HFU of {100 * steps['full'].hfu:.1f} %" in str(steps["full"])
    assert "HFU" not in str(steps["none"])


def test_the_shares_of_causes_add_up():
    layout = iomodel.Layout(pipeline_parallel=4)
    step = iomodel.train_step("llama-3-8b", "h100-sxm5", batch=16, seq_len=2048, layout=layout)
    rows = re.findall(r"^  (.+?) +([\d.]+) +([\d.]+)$", str(step).split("Memory of")[0], re.MULTILINE)
    shares = {cause: float(share) for cause, _, share in rows}
    assert shares.pop("all") == 100
    assert sum(shares.values()) == pytest.approx(100, abs=0.5)
    assert shares["pipeline bubble"] == pytest.approx(100 * step.breakdown["pipeline bubble"] / step.seconds, abs=0.051)
