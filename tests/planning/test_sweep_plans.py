"""Sweeps of plans, fleets and training steps: each point equals the function, on threads, on Dask, and in files."""

import math

import pytest

import iomodel
from tests.support.inside import main

pytest.importorskip("xarray")
pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")
ASKED = {"model": "llama-3-8b", "hardware": ["h100-sxm5", "a100-sxm4-80gb"], "output": 256}
PROMPTS = [512, 2048]
FILE = """question: plan
model: llama-3-8b
hardware: [h100-sxm5, a100-sxm4-80gb]
prompt: {from: 512, to: 2048, factor: 4}
output: 256
batch: 4
figures: [ttft, joules_per_token, memory.weights]
"""


def test_every_point_is_that_of_plan():
    figures = ["ttft", "tokens_per_second", "memory.weights", "joules_per_token"]
    swept = iomodel.sweep("plan", prompt=PROMPTS, batch=4, figures=figures, **ASKED)
    assert dict(swept.sizes) == {"hardware": 2, "prompt": 2}
    assert swept.attrs == {"question": "plan", "model": "llama-3-8b", "output": 256, "batch": 4}
    assert swept.ttft.attrs["units"] == "s"
    assert (swept.refused == "").all()
    for device in ASKED["hardware"]:
        for prompt in PROMPTS:
            alone = iomodel.plan("llama-3-8b", device, prompt=prompt, output=256, batch=4)
            here = swept.sel(hardware=device, prompt=prompt)
            assert here.ttft.item() == alone.ttft
            assert here["memory.weights"].item() == alone.memory.weights
            tdp = iomodel.hardware(device).power.tdp.value
            assert here.joules_per_token.item() == alone.joules_per_token == tdp / alone.tokens_per_second


def test_fields_of_a_layout_make_the_layout_and_points_without_an_answer_say_why():
    swept = iomodel.sweep(
        "train_step", model="llama-3-8b", hardware="h100-sxm5", batch=8, seq_len=512, tensor_parallel=[1, 3, 8]
    )
    three = swept.sel(tensor_parallel=3)
    assert math.isnan(three.seconds)
    assert three.refused.item().startswith("tensor_parallel: 3 given")
    wide = iomodel.train_step("llama-3-8b", "h100-sxm5", batch=8, seq_len=512, layout=iomodel.Layout(tensor_parallel=8))
    assert swept.sel(tensor_parallel=8).seconds.item() == wide.seconds
    assert swept["memory.total"].attrs["units"] == "B"


def test_a_field_with_a_list_is_one_value_and_a_list_of_lists_a_dimension():
    asked = {"model": "llama-3-8b", "hardware": "h100-sxm5", "batch": 8, "seq_len": 512, "data_parallel": 2}
    one = iomodel.sweep("train_step", overlap=["data"], **asked)
    both = iomodel.sweep("train_step", overlap=[["data"], []], **asked)
    assert one.sizes == {}
    assert list(both.overlap.values) == ["data", ""]
    assert both.seconds[0] == one.seconds < both.seconds[1]


def test_a_fleet_grows_with_its_load():
    asked = {"model": "llama-3-8b", "hardware": ["h100-sxm5"], "prompt": 512, "output": 256, "ttft": 1.0, "tpot": 0.05}
    swept = iomodel.sweep("fleet", load=[5.0, 100.0, 1000.0], price={"h100-sxm5": 2.5}, **asked)
    devices = list(swept["best.devices"].values)
    assert devices == sorted(devices)
    assert devices[0] < devices[-1]
    assert (swept["best.price_per_hour"] == 2.5 * swept["best.devices"]).all()


def test_a_cluster_answers_the_same():
    asked = {"prompt": PROMPTS, "batch": [1, 4], **ASKED}
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        assert iomodel.sweep("plan", scheduler=client, **asked).identical(iomodel.sweep("plan", **asked))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": "plans"}, "question: 'plans' is unknown; did you mean 'plan'"),
        ({"promt": [1]}, "field: 'promt' is unknown; did you mean 'prompt'"),
        ({"prompt": []}, "prompt: an empty list given"),
        ({"prompt": [0]}, "prompt: 0 given"),
        ({"figures": "ttft"}, "figures: 'ttft' given; allowed: a list of names"),
        ({"figures": ["tpott"]}, "figures: 'tpott' is unknown; did you mean 'tpot'"),
        ({"figures": ["memory"]}, "figures: memory given, which is Fit; allowed: numbers"),
        ({"figures": ["prompt"], "prompt": [1, 2]}, "figures: prompt given, which is a dimension"),
        ({"layout": iomodel.Layout(), "tensor_parallel": 2}, "tensor_parallel: given with layout"),
        ({"output": range(1, 1_000_000)}, "hardware: 1,999,998 points given; allowed: up to 1,000,000"),
        ({"output": range(10**30)}, "output: more than 1,000,000 values given; allowed: up to 1,000,000"),
    ],
)
def test_bad_questions_are_refused_in_one_line(changes, message):
    asked = {"question": "plan", **ASKED, "prompt": 512, **changes}
    with pytest.raises(iomodel.IOModelError) as refused:
        iomodel.sweep(**asked)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_the_summary_names_the_reasons_of_refused_points(tmp_path, capsys):
    (tmp_path / "plans.yaml").write_text(FILE.replace("a100-sxm4-80gb", "v100-pcie"))
    assert main(["sweep", str(tmp_path / "plans.yaml")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "plan: 2 of 4 points answered" in out
    assert "refused at 2 of 4 points: hardware: 'v100-pcie' is ambiguous: v100-pcie-16gb, v100-pcie-32gb; " in out


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_writes_a_table(tmp_path, capsys, suffix):
    (tmp_path / "plans.yaml").write_text(FILE)
    out = tmp_path / f"plans.{suffix}"
    assert main(["sweep", str(tmp_path / "plans.yaml"), "--out", str(out)]) == 0
    assert "plan: 4 of 4 points answered (hardware 2, prompt 2)" in capsys.readouterr().out
    table = pandas.read_csv(out) if suffix == "csv" else pandas.read_parquet(out)
    alone = iomodel.plan("llama-3-8b", "a100-sxm4-80gb", prompt=2048, output=256, batch=4)
    assert list(table.columns[:3]) == ["hardware", "prompt", "ttft"]
    assert table[(table.hardware == "a100-sxm4-80gb") & (table.prompt == 2048)].ttft.item() == alone.ttft
    assert main(["sweep", str(tmp_path / "plans.yaml"), "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["sweep", str(tmp_path / "plans.yaml"), "--out", str(out), "--fresh"]) == 0


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("question: plan\nmodel: llama-3-8b\n", [], "missing a required argument: 'hardware'"),
        (FILE.replace("512", "a"), [], "prompt.from: 'a' given"),
        (FILE, ["--out", "plans.zarr"], "out: '.zarr' is unknown"),
        (FILE, ["--dry-run"], "dry_run: given; allowed: for a sweep of counts"),
    ],
)
def test_the_command_refuses_in_one_line(tmp_path, capsys, monkeypatch, text, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plans.yaml").write_text(text)
    assert main(["sweep", "plans.yaml", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_one_sweep_asks_any_question() -> None:
    grid = {"q_len": [64, 128], "head_dim": 8, "progress": False}
    counts = iomodel.sweep("cost", algorithm="flash2", figures=["flops"], block_q=8, block_kv=8, **grid)
    assert list(counts.data_vars) == ["flops"]
    with pytest.warns(DeprecationWarning, match=r"use iomodel.sweep\('cost', algorithm=...\)") as warned:
        old = iomodel.sweep("flash2", quantities=["flops"], block_q=8, block_kv=8, **grid)
    assert old.identical(counts)
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"use iomodel.sweep\('solve', algorithm=...\)"):
        old = iomodel.sweep("flash2", solve=True, sram_bytes=20_000, **grid)
    assert old.identical(iomodel.sweep("solve", algorithm="flash2", sram_bytes=20_000, **grid))
    with pytest.warns(DeprecationWarning, match="iomodel.sweep_plans: deprecated"):
        assert iomodel.sweep_plans is iomodel.planning.sweep_plans  # type: ignore[attr-defined]
    for wrong, says in (
        (lambda: iomodel.sweep("costs", algorithm="flash2"), "question: 'costs' is unknown; did you mean 'cost'"),
        (lambda: iomodel.sweep("cost", q_len=8), "algorithm: not given"),
        (lambda: iomodel.sweep("solve", algorithm="flash2", quantities="flops"), "quantities: given with 'solve'"),
        (lambda: iomodel.sweep("plan", store="there"), "store: given with 'plan'"),
    ):
        with pytest.raises(iomodel.InputError if "unknown" not in says else iomodel.UnknownNameError, match=says):
            wrong()
