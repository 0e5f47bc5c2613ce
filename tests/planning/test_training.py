"""Laws of a training step: memory, time, FLOPs, bubble; the table of the docs, recomputed."""

from pathlib import Path

import pytest

import iomodel
from benchmarks.training_accuracy import GPT3, LLAMA2, SHAPES, model_of, mpt, rows, table
from iomodel.planning.training.memory import SHARDS, layer_activations

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
GPU = "h100-sxm5"
MODEL = mpt("125m", 512)
ASKED = {"batch": 32, "seq_len": 512}


def run(**changes):
    return iomodel.train_step(MODEL, GPU, **{**ASKED, **changes})


def test_the_table_is_what_the_benchmark_prints():
    assert "\n".join(table()) in PAGE


def test_models_have_the_published_number_of_parameters():
    for row in rows():
        if row["parameters"]:
            assert model_of(row).parameters == int(row["parameters"])


def test_models_have_the_published_work_for_a_token():
    """Both tables give FLOPs and tokens per second: 6 per weight, and attention over all pairs, or the visible half."""
    held = [row for row in rows() if row["published_tflops"]]
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


@pytest.mark.parametrize("name", SHAPES)
def test_activations_are_those_of_korthikanti(name):
    """34 sbh of a layer, without 2 sbh of dropout masks and with 4 bytes of statistics for each row and head."""
    model, tokens, ranks = mpt(name, 512), 3 * 512, 2
    _, hidden, heads = SHAPES[name]
    layout = iomodel.Layout(tensor_parallel=ranks)
    kept = layer_activations(model.layers[0], hidden, tokens, layout, False)
    assert kept * ranks == tokens * hidden * (34 - 2) + 4 * tokens * heads
    assert layer_activations(model.layers[0], hidden, tokens, layout, True) * ranks == 2 * tokens * hidden


@pytest.mark.parametrize(("gradient_dtype", "size"), [("fp32", 18), ("bf16", 16)])
def test_one_device_holds_every_weight(gradient_dtype, size):
    memory = run(shard="none", gradient_dtype=gradient_dtype).memory
    assert memory.total - memory.activations == size * MODEL.parameters


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
    kept, again = (run(layout=layout, recompute=recompute) for recompute in ("none", "full"))
    assert again.memory.total < kept.memory.total
    assert again.seconds > kept.seconds
    assert again.model_flops == kept.model_flops


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
    kept = layer_activations(MODEL.layers[0], MODEL.hidden_size, 512, layout, False) * 12 // stages
    more = stages * (1 + (stages - 1) / (stages * chunks)) if chunks > 1 else stages
    assert step.memory.activations == pytest.approx(kept * more)
    assert step.model_flops == one.model_flops


def test_a_virtual_stage_sends_to_both_of_its_neighbours():
    """Of two devices each has one end of the model, which has one neighbour less."""
    layout = iomodel.Layout(pipeline_parallel=2)
    sends = [run(layout=layout, virtual_stages=v).breakdown["sends between stages"] for v in (1, 3)]
    assert sends[1] == pytest.approx(5 * sends[0])


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
        ({"layout": iomodel.Layout(pipeline_parallel=5)}, "pipeline_parallel: 5"),
        ({"layout": iomodel.Layout(tensor_parallel=5)}, "tensor_parallel: 5"),
        ({"micro_batch": 3}, "batch: 32"),
        ({"shard": "zero"}, "shard"),
        ({"virtual_stages": 2}, "virtual_stages: 2 given; allowed: 1"),
        ({"virtual_stages": 5, "layout": iomodel.Layout(pipeline_parallel=2)}, "virtual_stages: 5"),
        ({"virtual_stages": 2, "layout": iomodel.Layout(pipeline_parallel=3)}, "batch: 32"),
        ({"precision": "fp16"}, "precision"),
        ({"precision": "fp8", "hardware": "a100-sxm4-80gb"}, "precision: fp8 given, .* allowed: bf16"),
        ({"model": "deepseek-v3"}, "model"),
    ],
)
def test_what_does_not_divide_is_refused_in_one_line(changes, field):
    with pytest.raises(iomodel.IOModelError, match=field) as refused:
        iomodel.train_step(**{"model": MODEL, "hardware": GPU, **ASKED, **changes})
    assert "\n" not in str(refused.value)
