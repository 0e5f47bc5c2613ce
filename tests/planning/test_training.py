"""Laws of a training step: memory, time, FLOPs, bubble; the table of the docs, recomputed."""

from pathlib import Path

import pytest

import iomodel
from benchmarks.training_accuracy import SHAPES, mpt, rows, table
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
        assert mpt(row["model"], int(row["seq_len"])).parameters == int(row["parameters"])


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
        ({"model": "deepseek-v3"}, "model"),
    ],
)
def test_what_does_not_divide_is_refused_in_one_line(changes, field):
    with pytest.raises(iomodel.IOModelError, match=field) as refused:
        iomodel.train_step(**{"model": MODEL, "hardware": GPU, **ASKED, **changes})
    assert "\n" not in str(refused.value)
