"""Memory of a plan without its times, and what the command answers where times are unknown."""

import json
import re

import pytest

from iomodel import Layout, plan
from iomodel.errors import IOModelError
from iomodel.planning.memory_plan import memory_plan
from tests.support.inside import MissingRateError, main

CHAT = {"prompt": 2048, "output": 256}


@pytest.mark.parametrize("engine", [None, "vllm", "sglang"])
def test_memory_alone_is_that_of_a_plan(engine):
    whole, alone = (ask("llama-3.1-8b", "h100-sxm5", engine=engine, **CHAT) for ask in (plan, memory_plan))
    assert (alone.memory, alone.batch, alone.layout) == (whole.memory, whole.batch, whole.layout)
    assert sum(part.bytes for part in alone.memory.parts) == alone.memory.usable


@pytest.mark.parametrize(
    ("model", "device", "kind"),
    [
        ("qwen3-8b", "p40", MissingRateError),
    ],
)
def test_what_has_no_time_has_memory(model, device, kind, capsys):
    asked = {"prompt": 2048, "output": 256, "weight_dtype": "int4-g128"}
    with pytest.raises(kind):
        plan(model, device, **asked)
    found = memory_plan(model, device, **asked)
    assert found.memory.fits > 0
    words = ["--prompt", "2048", "--output", "256", "--weight-dtype", "int4-g128", "--hardware", device, "--json"]
    assert main(["plan", model, *words]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["memory"]["fits"] == found.memory.fits
    assert answer["missing"]


def test_a_wrong_argument_is_no_missing_time(capsys):
    assert main(["plan", "deepseek-v4-flash", "--hardware", "b200", "--prompt", "0", "--output", "1"]) != 0
    assert "prompt: 0 given" in capsys.readouterr().err
    with pytest.raises(IOModelError):
        memory_plan("deepseek-v4-flash", "b200", prompt=8, output=0)


@pytest.mark.parametrize(
    ("typed", "length", "log"),
    [
        ("llama-3-8b", 8192, True),
        ("llama-server -m llama-3-8b --port 80", 8192, False),
        ("vllm serve meta-llama/Meta-Llama-3-8B --tp 2 --max-model-len 4096 --port 80", 4096, True),
    ],
)
def test_without_lengths_the_memory_is_answered_at_the_longest_request(typed, length, log, capsys):
    assert main(["plan", typed, "--hardware", "h100-sxm5"]) == 0
    text = capsys.readouterr().out
    found = memory_plan(typed, "h100-sxm5")
    assert found.prompt + found.output == length
    for row in (f"requests of {length:,} tokens that fit", f"{found.memory.tokens:,}", "missing: times"):
        assert row in text
    assert ("GPU KV cache size" in text) is log
    assert found.assumed == (("without an effect on a plan: --port",) if "--port" in typed else ())
    assert main(["plan", typed, "--hardware", "h100-sxm5", "--clients", "8"]) == 2
    assert "prompt, output: not given, but required" in capsys.readouterr().err


def test_the_memory_of_all_counted_devices_is_used():
    asked = {"count": 4, "precision": "fp8", "kv_dtype": "bf16"}
    four = memory_plan("qwen3-235b-a22b", "mi300x", **asked)
    assert (four.layout.tensor_parallel, four.replicas) == (4, 1)
    weights, token = 235.1e9, 94 * 4 * 128 * 2 * 2  # [B]: fp8 parameters; layers x heads x width x K and V x bf16
    assert (4 * 0.85 * 192e9 - weights) / token < four.memory.tokens < (4 * 0.9 * 206e9 - weights) / token
    pairs = memory_plan("qwen3-235b-a22b", "mi300x", layout=Layout(tensor_parallel=2), **asked)
    assert pairs.replicas == 2
    assert 2 * pairs.memory.fits < four.memory.fits
    assert "on 4 x mi300x (2 replicas of TP 2)" in str(pairs)
    with pytest.raises(IOModelError, match="allowed: a multiple, such as 2 or 4"):
        memory_plan("llama-3.1-8b", "h100-sxm5", count=3, layout=Layout(tensor_parallel=2))


def test_where_latents_are_copied_more_replicas_hold_more():
    each = memory_plan("deepseek-v2-lite", "h100-sxm5", count=2, prompt=2048, output=256)
    assert (each.layout.tensor_parallel, each.replicas) == (1, 2)
    assert memory_plan("deepseek-v2-lite", "h100-sxm5", prompt=2048, output=256).replicas == 1


def test_a_device_without_a_peak_has_the_least_time_of_a_step(capsys):
    llama = memory_plan("llama-3-8b", "M2 Max 64GB", prompt=100, output=100)
    read = 8_030_261_248 - 128_256 * 4096  # the embedding is looked up
    assert llama.least_step == read * 2 / 400e9
    qwen = memory_plan("qwen3-30b-a3b", "M4 Max 64GB", prompt=100, output=100)
    assert 0.98 < qwen.least_step * 546e9 / 2 / (3_353_032_704 - 151_936 * 2048) < 1  # 8 of 128 experts
    assert memory_plan("llama-3-8b", "M2 Max 64GB").least_step is None
    assert main(["plan", "llama-3-8b", "--hardware", "M2 Max 64GB", "--prompt", "100", "--output", "100"]) == 0
    text = capsys.readouterr().out
    assert "output tokens/s of one request, at most" in text
    assert "26.6" in text
    assert main(["plan", "llama-3-8b", "--hardware", "M2 Max 64GB"]) == 0
    assert "at most" not in capsys.readouterr().out


def test_the_room_under_each_layout_is_listed():
    found = memory_plan("qwen2.5-32b", "rtx4090", weight_dtype="int4")
    rooms = {room.layout.tensor_parallel: room for room in found.layouts}
    assert (found.layout.tensor_parallel, rooms[1].fits, rooms[4].fits) == (4, 0, found.memory.fits)
    alone = memory_plan("qwen2.5-32b", "rtx4090", weight_dtype="int4", count=1)
    assert rooms[1].tokens == alone.memory.tokens > 0
    assert "Layouts of a replica" in str(found)
    assert type(found).from_json(found.to_json()) == found
    assert not memory_plan("qwen2.5-32b", "rtx4090", layout=Layout(tensor_parallel=4)).layouts


def test_tokens_of_requests_where_layers_share_blocks():
    """As many as whole requests hold, at least those that fit; a model of one kind of layers has no such row."""
    hybrid = memory_plan("qwen3.6-27b", "h100-sxm5", prompt=100_000, output=1000, weight_dtype="fp8", engine="vllm")
    found = re.search(r"of requests of 101,000 tokens, as layers share blocks +([\d,]+)", str(hybrid))
    assert found is not None
    assert int(found[1].replace(",", "")) >= 101_000 * hybrid.memory.fits > hybrid.memory.tokens
    plain = memory_plan("llama-3.1-8b", "h100-sxm5", prompt=100_000, output=1000, engine="vllm")
    assert "share blocks" not in str(plain)


@pytest.mark.parametrize("name", ["apple-m1", "apple-m4-pro"])
def test_a_machine_of_unknown_memory_is_told_what_holds_for_any(name):
    """The weights, and the rate at which they can be read, as for the machine with its memory."""
    asked = {"prompt": 512, "output": 128, "weight_dtype": "int4"}
    with pytest.raises(IOModelError, match=r"memory\.hbm\.capacity") as refused:
        plan("llama-3.1-8b", name, **asked)
    known = memory_plan("llama-3.1-8b", f"{name} 16GB", **asked)
    assert known.least_step is not None
    assert f"weights take {known.memory.weights / 1e9:.2f} GB" in str(refused.value)
    assert f"one request at most {1 / known.least_step:,.1f} tokens/s" in str(refused.value)
