"""Calibration, on a device whose rates are known: it finds them again, whatever fails and however short the time."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import iomodel
from iomodel.devices.calibration import torch as calibrate_torch
from iomodel.devices.calibration.base import CALIBRATED, DRIVER_NAMES, recognised
from iomodel.devices.calibration.calibrate import calibrated
from iomodel.devices.calibration.experiments import GROUPS, ExperimentSizes, Facts, experiments
from iomodel.devices.calibration.measured_figures import LEAST, REPEAT
from iomodel.devices.calibration.torch import Timer, facts_of
from iomodel.devices.device_fields import Measured
from tests.support.inside import main, parse

H200 = Facts(
    name="NVIDIA H200", vendor="NVIDIA", architecture="sm_90", capability="9.0", units=132, l2_bytes=60 * 2**20,
    memory=150 * 10**9, memory_free=149 * 10**9, sram_per_block=232448, sram_per_block_static=49152,
    sram_per_sm=233472, registers_per_sm=65536, threads_per_sm=2048, threads_per_block=1024, warp_size=32,
    driver="570.1", software="torch 2.9", triton=True,
)  # fmt: skip
RATES = {
    "hbm": 4.1e12, "l2": 9.8e12, "bf16": 7.1e14, "fp16": 7.2e14, "tf32": 3.9e14, "fp8": 1.3e15, "exp": 4.2e12,
    "launch": 2.4e-6, "node": 1.3e-6, "attention": 5.5e14,
}  # fmt: skip
TINY = ExperimentSizes(hbm=2**20, gemm=32, lengths=(16,), tokens=32, width=128, launches=5, nodes=5)
FIELDS = [field for fields in GROUPS.values() for field in fields]


class Fake:
    """Takes the time that its rates say; it knows from the buffers alone, not from `work`, what a call does."""

    def __init__(self, facts=H200, rates=RATES, broken=(), pace=lambda n: 1.0, error=None):
        self.facts, self.rates, self.broken, self.pace = facts, rates, broken, pace
        self.error = error or RuntimeError("out of memory")
        self.clock, self.runs, self.tried = 1000.0, 0, []

    def now(self):
        return self.clock

    @contextmanager
    def load(self, experiment):
        self.tried.append(experiment)
        self.clock += 0.01  # to allocate
        if experiment.field in self.broken:
            raise self.error
        yield lambda calls: self.run(experiment, calls)

    def run(self, experiment, calls):
        self.runs += 1
        took = calls * self.seconds(experiment) * self.pace(self.runs)
        self.clock += max(0.0, took)
        return took

    def seconds(self, experiment):
        """Time of one call."""
        sizes, rates = experiment.parameters, self.rates
        kind = experiment.kind
        if kind in ("copy", "read", "sum"):
            moved = 4 * sizes["elements"] * (2 if kind == "copy" else 1)
            cached = moved * sizes["buffers"] <= (self.facts.l2_bytes or 0)
            return moved / (9 * rates["l2"] if cached else rates["hbm"])
        if kind == "walk":
            assert sizes["elements"] == sizes["blocks"] * 4096
            moved = sizes["programs"] * sizes["steps"] * 4096 * 4
            return moved / (rates["l2"] if 4 * sizes["elements"] <= self.facts.l2_bytes / 2 else rates["hbm"])
        if kind == "gemm":
            return 2 * sizes["batch"] * sizes["m"] * sizes["n"] * sizes["k"] / rates[sizes["dtype"]]
        if kind == "chain":
            return sizes["programs"] * 4096 * 8 * sizes["steps"] / rates["exp"]
        if kind in ("launch", "graph"):
            return experiment.work * rates["launch" if kind == "launch" else "node"]
        return useful_flops(sizes) / rates["attention"]


@cache
def visible(mask, n):
    return sum(n if mask == "full" else row + 1 for row in range(n))


def useful_flops(sizes):
    """Two products of a row and a column for each visible pair; the backward pass has five."""
    pairs = visible(sizes["mask"], sizes["length"])
    products = 5 if sizes["direction"] == "backward" else 2
    return 2 * products * sizes["batch"] * sizes["heads"] * pairs * sizes["head_dim"]


EXPECTED = {
    **dict.fromkeys(("hbm_copy", "hbm_read"), "hbm"),
    "l2_bandwidth": "l2",
    **{f"gemm_{dtype}": dtype for dtype in ("bf16", "fp16", "tf32", "fp8")},
    **dict.fromkeys(("gemm_qk_bf16", "gemm_pv_bf16"), "bf16"),
    "exp": "exp",
    "kernel_launch": "launch",
    "graph_node": "node",
    **dict.fromkeys(("attention_forward", "attention_backward"), "attention"),
}
MEBI = 2**20
FACTS = st.builds(
    lambda l2, more, units, triton: replace(
        H200, l2_bytes=l2 * MEBI, memory_free=l2 * MEBI * more, units=units, triton=triton, name="Some GPU"
    ),
    st.integers(1, 256),
    st.integers(32, 2000),
    st.integers(1, 300),
    st.just(True),
)
SPEEDS = st.fixed_dictionaries({name: st.floats(0.05, 20).map(lambda x, r=rate: x * r) for name, rate in RATES.items()})


@given(FACTS, SPEEDS)
def test_the_rates_of_a_device_are_found_again(facts, rates):
    found = calibrated(Fake(facts, rates), budget=1e4)
    assert not found.failed
    measured = found.hardware.measured
    for field, rate in EXPECTED.items():
        assert getattr(measured, field).value == pytest.approx(rates[rate], rel=2e-5), field
    for call in measured.attention:
        sizes = {"length": call.q_len, **call.model_dump()}
        assert call.time.value == pytest.approx(useful_flops(sizes) / rates["attention"], rel=2e-5)
    for figure in found.figures.values():
        assert figure.rate is None or figure.rate == pytest.approx(rates["attention"], rel=2e-5)
    assert set(EXPECTED) == set(FIELDS) <= set(Measured.model_fields)
    lengths = {(c.direction, c.mask, c.head_dim, c.q_len) for c in measured.attention}
    assert len(lengths) == len(measured.attention) == 2 * 2 * 2 * 3


@given(FACTS)
def test_hbm_is_never_read_from_the_l2_nor_the_l2_from_hbm(facts):
    for found in experiments(facts):
        together = found.parameters["bytes"] * found.parameters["buffers"]
        if found.field in GROUPS["hbm"]:
            assert 4 * facts.l2_bytes <= together <= facts.memory_free // 4
            assert found.parameters["buffers"] >= 2
        if found.field == "l2_bandwidth":
            assert together <= max(facts.l2_bytes // 8, 2**18)


@given(st.lists(st.floats(0.5, 2), min_size=3, max_size=7))
def test_the_median_lies_within_the_spread(paces):
    found = calibrated(Fake(pace=lambda n: paces[n % len(paces)]), only=["hbm", "launch", "attention"])
    for figure in found.figures.values():
        least, most = figure.spread
        assert least <= figure.value <= most
        true = RATES[EXPECTED[figure.field]] if figure.rate is None else figure.value / figure.rate
        if figure.rate is None:
            assert 0.499 * true <= least <= most <= 2.001 * true
    for quantity in found.hardware.quantities.values():
        if getattr(quantity, "spread", None):
            assert quantity.spread[0] <= quantity.value <= quantity.spread[1]


def test_one_slow_repeat_moves_the_spread_and_not_the_median():
    found = calibrated(Fake(pace=lambda n: 10.0 if n % 12 == 0 else 1.0), only="hbm_copy").figures["hbm_copy"]
    assert found.value == pytest.approx(RATES["hbm"], rel=1e-5)
    assert found.spread[0] == pytest.approx(RATES["hbm"] / 10, rel=1e-5)


@given(st.sets(st.sampled_from(FIELDS), max_size=len(FIELDS) - 1))
def test_what_fails_is_recorded_and_the_others_go_on(broken):
    found = calibrated(Fake(broken=broken, error=RuntimeError("CUDA error:\n\tout of\x1b memory " + "x" * 999)))
    assert {figure.field for figure in found.figures.values()} == set(FIELDS) - broken
    names = {experiment.name for experiment in experiments(H200) if experiment.field in broken}
    assert set(found.failed) == names
    for name, reason in found.failed.items():
        assert reason.startswith("RuntimeError: CUDA error: out of memory x")
        assert reason.isprintable()
        assert len(reason) <= 200
        assert f"{name}: {reason}" in found.hardware.measured.provenance.failed
    theirs = iomodel.hardware("h200-sxm").measured
    for field in broken:  # the shipped figure stays, with its source
        assert getattr(found.hardware.measured, field) == getattr(theirs, field)


@pytest.mark.parametrize("pace", [0.0, -1.0, float("nan"), float("inf"), 1e-12])
def test_a_clock_that_gives_no_sense_is_a_failure_of_that_figure(pace):
    class Odd(Fake):
        def run(self, experiment, calls):
            return super().run(experiment, calls) if experiment.field != "exp" else pace * 1e-3

    found = calibrated(Odd(), only=["exp", "gemm_bf16"])
    assert list(found.figures) == ["gemm_bf16"]
    assert list(found.failed) == ["exp"]
    assert ("the clock gave" in found.failed["exp"]) == (pace != 1e-12)


def test_nothing_measured_is_an_error():
    with pytest.raises(
        iomodel.InputError, match="nothing could be measured on NVIDIA H200; hbm_copy: RuntimeError: out"
    ):
        calibrated(Fake(broken=FIELDS))


@given(st.floats(0.001, 30), st.floats(0.001, 1))
def test_the_budget_is_kept(budget, speed):
    device = Fake(rates={k: v / speed if k in ("launch", "node") else v * speed for k, v in RATES.items()})
    try:
        found = calibrated(device, budget=budget)
    except iomodel.InputError:
        pytest.fail("the first experiment is always begun")
    each = [device.seconds(experiment) for experiment in device.tried]
    least = [0.01 + 2 * x + (1 + LEAST) * (x + REPEAT) for x in each]  # of an experiment once begun
    assert found.seconds <= budget + max(least) + 1e-3
    spent = [name for name, reason in found.failed.items() if reason == "left out, the budget is spent"]
    order = [experiment.name for experiment in experiments(H200)]
    assert [*found.figures, *spent] == order
    assert set(spent) == set(found.failed)
    assert not spent or found.seconds >= budget - 1e-3


def test_a_long_budget_is_not_used_up():
    assert calibrated(Fake(), budget=3600).seconds < 60


def test_without_triton_what_needs_it_is_left_out():
    found = calibrated(Fake(replace(H200, triton=False)))
    assert set(found.failed) == {"l2_bandwidth", "exp"}
    assert all("Triton is not installed" in reason for reason in found.failed.values())
    assert "sum" in found.figures["hbm_read"].method
    assert calibrated(Fake(replace(H200, l2_bytes=None))).failed == {
        "l2_bandwidth": "the driver does not tell the size of the L2"
    }


@pytest.mark.parametrize("facts", [H200, replace(H200, name="Some GPU"), replace(H200, architecture="sm_77")])
def test_the_file_reads_back_as_it_was_written(tmp_path, facts):
    found = calibrated(Fake(facts, pace=lambda n: 1 + n % 7 / 100), only=["hbm", "exp", "attention"])
    path = tmp_path / "mine.yaml"
    found.write(path)
    again = iomodel.hardware(path)
    assert again == found.hardware
    assert again.to_dict() == found.hardware.to_dict()
    assert parse(path.read_bytes(), "x") == yaml.safe_load(path.read_text())
    assert again.measured.provenance == found.provenance
    for name in ("hbm_copy", "hbm_read", "exp"):
        kept, figure = getattr(again.measured, name), found.figures[name]
        assert (kept.value, kept.spread, kept.unit) == (figure.value, figure.spread, figure.unit)
        assert kept.source == (f"iomodel calibrate {found.provenance.date}",)
        assert figure.method in kept.note
        assert not [path for path in again.unverified if path.startswith("measured")]
    timed = [(call.time.value, call.time.spread) for call in again.measured.attention]
    assert timed == [(f.value, f.spread) for f in found.figures.values() if f.rate]
    check = pytest.importorskip("jsonschema").Draft202012Validator(iomodel.Hardware.file_schema())
    check.validate(found.hardware.to_dict())
    assert "measured.attention.0.time" in again.quantities
    assert " to " in str(again)


def test_a_spread_has_the_unit_of_its_figure():
    kept = Measured(hbm_copy={"value": 4, "unit": "TB/s", "spread": [3.5, "4100 GB/s"]}).hbm_copy
    assert (kept.value, kept.spread) == (4 * 10**12, (3.5e12, 4.1e12))
    for spread in ([4.1, 4.2], [3, 3.5], [5, 3], [3], [3, 4, 5], [0, 5], ["3 s", 5]):
        with pytest.raises(iomodel.InputError, match="hbm_copy"):
            Measured(hbm_copy={"value": 4, "unit": "TB/s", "spread": spread})


def test_a_calibration_is_a_value():
    found, same = (calibrated(Fake(), only="hbm") for _ in range(2))
    same = replace(same, provenance=found.provenance, hardware=found.hardware)
    assert found == same
    assert hash(found) == hash(same)
    assert pickle.loads(pickle.dumps(found)) == found
    assert json.loads(found.to_json())["figures"]["hbm_copy"]["unit"] == "B/s"
    assert "4.1 TB/s" in str(found)
    with pytest.raises(AttributeError):
        found.seconds = 3


def test_a_recognised_device_keeps_its_file():
    found, shipped = calibrated(Fake(), only="hbm_copy").hardware, iomodel.hardware("h200-sxm")
    for group in ("memory", "limits", "compute", "interconnect", "power", "architecture", "notes"):
        assert getattr(found, group) == getattr(shipped, group)
    assert found.name == shipped.name + CALIBRATED
    assert found.measured.provenance.base == "h200-sxm"
    assert found.measured.hbm_copy.value == pytest.approx(RATES["hbm"])
    assert found.measured.gemm_bf16 == shipped.measured.gemm_bf16


def test_a_file_can_be_measured_on():
    first = calibrated(Fake(), only="gemm").hardware
    second = calibrated(Fake(), base=first, only="hbm").hardware
    assert second.name == first.name
    assert second.measured.gemm_fp8 == first.measured.gemm_fp8
    assert second.measured.hbm_read.value == pytest.approx(RATES["hbm"])


def test_an_unknown_device_has_the_limits_of_its_driver():
    facts = replace(H200, name="NVIDIA H100 NVL", units=114)
    found = calibrated(Fake(facts), only="hbm").hardware
    assert found.measured.provenance.base is None
    assert found.sram_per_block == 232448
    assert found.architecture == "sm_90"
    assert found.compute.units.value == 114
    assert found.memory.hbm.capacity_reported.value == 150 * 10**9
    assert found.memory.hbm.bandwidth is None
    assert found.compute.mma.rows == iomodel.hardware("h100-sxm5").compute.mma.rows
    alone = replace(facts, architecture="sm_77", capability="7.7", sram_per_block=None)
    assert calibrated(Fake(alone), only="hbm").hardware.sram_per_block == 49152
    with pytest.raises(iomodel.errors.SpecError, match=r"memory\.sram\.per_block"):
        calibrated(Fake(replace(alone, sram_per_block_static=None)), only="hbm")


@pytest.mark.parametrize(
    "change",
    [{"units": 60}, {"capability": "8.0"}, {"name": "NVIDIA H200 MIG 1g.18gb"}, {"name": "NVIDIA H200 Laptop GPU"}],
)
def test_a_part_of_a_card_is_not_taken_for_it(change):
    assert calibrated(Fake(replace(H200, **change)), only="hbm").hardware.measured.provenance.base is None


def test_a_base_must_be_such_a_device():
    device = Fake()
    with pytest.raises(iomodel.InputError, match=r"base: a100-sxm4-80gb has compute capability 8\.0, and NVIDIA H200"):
        calibrated(device, base="a100-sxm4-80gb")
    with pytest.raises(iomodel.UnknownNameError, match="did you mean 'h100-sxm5'"):
        calibrated(device, base="h100-sxm4")
    assert device.runs == 0
    assert calibrated(device, base="h100-sxm5", only="hbm").hardware.measured.provenance.base == "h100-sxm5"
    assert set(DRIVER_NAMES.values()) <= set(iomodel.list_hardware())


DRIVERS = [
    ("NVIDIA GeForce RTX 4070 Ti SUPER", "8.9", 66, "rtx4070ti-super"),
    ("NVIDIA GeForce RTX 4060 Ti", "8.9", 34, "rtx4060ti-16gb"),
    ("NVIDIA GeForce RTX 3080", "8.6", 68, "rtx3080"),
    ("NVIDIA GeForce RTX 3080", "8.6", 70, None),  # the card of 12 GB
    ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6", 68, None),
    ("NVIDIA A100-SXM4-80GB", "8.0", 108, "a100-sxm4-80gb"),
    ("NVIDIA H200 NVL", "9.0", 132, "h200-nvl"),
    ("Tesla T4", "7.5", 40, "t4"),
]


@pytest.mark.parametrize(("name", "capability", "units", "device"), DRIVERS)
def test_a_card_is_known_by_the_name_of_its_driver(name, capability, units, device):
    assert recognised(replace(H200, name=name, capability=capability, units=units)) == device


@pytest.mark.parametrize("only", [["gemm"], ["gemm_bf16", "exp"], "launch", ["attention_forward"], list(GROUPS)])
def test_only_what_is_named_is_run(only):
    names = [only] if isinstance(only, str) else only
    wanted = {field for name in names for field in GROUPS.get(name, (name,))}
    device = Fake()
    found = calibrated(device, only=only)
    assert {e.field for e in device.tried} == {f.field for f in found.figures.values()} == wanted


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf"), "60", True, None, 10**9])
def test_a_bad_budget_is_told(budget):
    with pytest.raises(iomodel.InputError, match=r"budget: .* given; allowed: seconds, above 0"):
        iomodel.devices.calibrate(time_budget=budget)


# ------------------------------------------------------------------------------------------------ the file


@pytest.fixture
def found():
    return calibrated(Fake(), only="hbm")


def test_a_file_is_replaced_only_if_asked(found, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("keep")
    with pytest.raises(iomodel.InputError, match="already exists; allowed: another name, or --force"):
        found.write(path)
    assert path.read_text() == "keep"
    path.chmod(0o640)
    found.write(path, force=True)
    assert path.read_text() == found.to_yaml()
    assert path.stat().st_mode & 0o777 == 0o640
    for bad in ("mine.txt", "nothing/mine.yaml", "mine\0.yaml"):
        with pytest.raises(iomodel.InputError, match="out: "):
            found.write(f"{tmp_path}/{bad}")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(iomodel.InputError, match="is a directory; allowed: another name"):
        found.write(tmp_path / "folder.yaml", force=True)


@pytest.mark.parametrize("step", ["pathlib.Path.write_bytes", "pathlib.Path.replace"])
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_stop_leaves_nothing_half_written(found, tmp_path, monkeypatch, step, there, error):
    path = tmp_path / "mine.yaml"
    if there:
        path.write_text("keep")

    def stop(*_):
        raise error

    monkeypatch.setattr(step, stop)
    with pytest.raises((KeyboardInterrupt, iomodel.InputError)):
        found.write(path, force=True)
    assert os.listdir(tmp_path) == ["mine.yaml"] * there  # noqa: PTH208
    assert not there or path.read_text() == "keep"


# ------------------------------------------------------------------------------------------------ the command


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(line, device=None):
        if device is not None:
            monkeypatch.setattr(calibrate_torch, "torch_device", lambda index: device)
        code = main(["calibrate", *line.split()])
        return code, *capsys.readouterr()

    return call


def test_the_command_writes_a_file_that_the_others_read(run, tmp_path):
    code, out, err = run("--output mine.yaml --only hbm --only gemm_bf16 --budget 2min", Fake())
    assert (code, err) == (0, "")
    assert "hbm_copy" in out
    assert "4.1 TB/s" in out
    assert iomodel.hardware(tmp_path / "mine.yaml").measured.hbm_copy.value == pytest.approx(4.1e12)
    code, out, err = run("--output mine.yaml --only exp", device := Fake())
    assert (code, out) == (2, "")
    assert "already exists" in err
    assert device.runs == 0
    code, out, err = run("--output mine.yaml --only exp --force --json", Fake())
    assert (code, err) == (0, "")
    assert json.loads(out)["figures"]["exp"]["value"] == pytest.approx(4.2e12)
    assert iomodel.hardware(tmp_path / "mine.yaml").measured.exp.value == pytest.approx(4.2e12)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_goes_to_a_terminal_on_stderr_alone(run, monkeypatch, terminal):
    class Stream(io.StringIO):
        def isatty(self):
            return terminal

    monkeypatch.setattr(sys, "stderr", stream := Stream())
    code, out, _ = run("--only hbm --json", Fake())
    assert code == 0
    assert json.loads(out)
    assert bool(stream.getvalue()) is terminal


def test_ctrl_c_leaves_no_file(run, tmp_path):
    code, out, err = run("--output mine.yaml", Fake(broken=["gemm_bf16"], error=KeyboardInterrupt()))
    assert (code, out, err) == (130, "", "")
    assert not list(tmp_path.iterdir())


BAD = {
    "--only gem": "only: 'gem' is unknown; did you mean 'gemm', 'gemm_bf16', ",
    "--budget x": "budget: 'x' given; allowed: seconds or minutes, such as 60s or 2min",
    "--budget 0": "time_budget: 0.0 given; allowed: seconds, above 0",
    "--device x": "device: 'x' given; allowed: an integer in digits",
    "--base h1000": "base: 'h1000' is unknown",
    "--output mine.txt": "out: 'mine.txt' given; allowed: a file that ends in .yaml",
    "--output no/mine.yaml": "no is not a directory",
    "more": "unexpected extra argument",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_told_in_one_line(run, line):
    code, out, err = run(line, device := Fake())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert BAD[line].replace("base: 'h1000'", "'h1000'") in err
    assert device.runs == 0


def test_without_torch_one_line_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, out, err = run("--output mine.yaml")
    assert (code, out) == (2, "")
    assert err == "iomodel: torch: not installed; calibrate needs it: pip install 'iomodel[calibrate]'\n"


def torch_with(count, cuda="12.8"):
    seen = SimpleNamespace(is_available=lambda: count > 0, device_count=lambda: count)
    return SimpleNamespace(__version__="2.9.0", cuda=seen, version=SimpleNamespace(cuda=cuda, hip=None), device=tuple)


def test_without_a_gpu_one_line_says_so(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch_with(0, None))
    code, out, err = run("")
    assert (code, out) == (2, "")
    assert err == "iomodel: device: 0 given; torch 2.9.0 sees no GPU, this build of torch is for CPUs\n"
    monkeypatch.setitem(sys.modules, "torch", torch_with(0))
    assert "its driver does not answer, or there is none" in run("")[2]
    monkeypatch.setitem(sys.modules, "torch", torch_with(2))
    assert run("--device 2")[2] == "iomodel: device: 2 given; allowed: an integer from 0 to 1\n"
    with pytest.raises(iomodel.InputError, match="device: True given"):
        iomodel.devices.calibrate(True)


@pytest.mark.parametrize(
    ("name", "memory_clock", "bus"),
    [("h100-sxm5", 2619000, 5120), ("a100-sxm4-80gb", 1593000, 5120), ("rtx4090", 10501000, 384), ("t4", 5001000, 256)],
)
def test_the_driver_tells_the_bandwidth_of_the_datasheet(name, memory_clock, bus, monkeypatch):
    shipped = iomodel.hardware(name)
    major, minor = map(int, shipped.compute_capability.split("."))
    told = SimpleNamespace(
        name="Some GPU", major=major, minor=minor, multi_processor_count=shipped.compute.units.value,
        total_memory=80 * 10**9, memory_clock_rate=memory_clock, memory_bus_width=bus, clock_rate=1980000,
        shared_memory_per_block_optin=shipped.sram_per_block, L2_cache_size=0, warp_size=32,
    )  # fmt: skip
    torch = torch_with(1)
    torch.cuda.get_device_properties, torch.cuda.mem_get_info = lambda _: told, lambda _: (70 * 10**9, 80 * 10**9)
    monkeypatch.setenv("PATH", "")  # no nvidia-smi
    facts = facts_of(torch, SimpleNamespace(type="cuda"))
    assert facts.hbm_bandwidth == pytest.approx(shipped.memory.hbm.bandwidth.value, rel=0.003)
    assert (facts.architecture, facts.capability) == (shipped.architecture, shipped.compute_capability)
    assert (facts.clock, facts.l2_bytes, facts.driver, facts.threads_per_sm) == (1.98e9, None, None, None)
    found = calibrated(Fake(facts), only="hbm").hardware
    assert found.memory.hbm.bandwidth.value == facts.hbm_bandwidth
    assert found.sram_per_block == shipped.sram_per_block


def test_importing_the_library_imports_no_torch():
    code = "import sys, iomodel, iomodel.cli; sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------------------------------------ the clock


class Gpu:
    """A queue that a host fills: each launch takes the host `host` [s] and the device `device` [s]."""

    LIMIT = 1024

    def __init__(self, host, device):
        self.host, self.device = host, device
        self.now = self.free = 0.0  # of the host; when the device has done all
        self.ends = []

    def Event(self, enable_timing):
        event = SimpleNamespace(at=None)
        event.record = lambda: setattr(event, "at", max(self.now, self.free))
        event.query = lambda: event.at <= self.now
        event.elapsed_time = lambda end: 1000 * (end.at - event.at)
        return event

    def synchronize(self):
        self.now, self.ends = max(self.now, self.free), []

    def launch(self, seconds):
        self.ends = [end for end in self.ends if end > self.now]
        if len(self.ends) >= self.LIMIT:
            self.now = max(self.now, self.ends[-self.LIMIT])
        self.now += self.host
        self.free = max(self.free, self.now) + seconds
        self.ends.append(self.free)

    def _sleep(self, cycles):
        self.launch(cycles / 1.7e9)

    def __call__(self):
        self.launch(self.device)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.floats(1e-6, 1e-3), st.floats(1e-7, 1e-2), st.integers(1, 400), st.integers(1, 3))
def test_the_clock_shows_the_device_and_never_the_host(host, device, calls, times):
    assume(host * calls < 0.4)
    gpu = Gpu(host, device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate_torch.time, "perf_counter", lambda: gpu.now)
        timer = Timer(SimpleNamespace(cuda=gpu), [gpu])
        for _ in range(times):
            assert timer(calls) == pytest.approx(calls * device, rel=1e-6)


def test_a_queue_that_runs_full_fails_rather_than_showing_the_host(monkeypatch):
    gpu = Gpu(1e-4, 1e-6)
    monkeypatch.setattr(calibrate_torch.time, "perf_counter", lambda: gpu.now)
    with pytest.raises(RuntimeError, match="the host queues calls more slowly"):
        Timer(SimpleNamespace(cuda=gpu), [gpu])(3000)


# ---------------------------------------------------------------------------------------------------------- Triton


@pytest.mark.filterwarnings("ignore")
def test_the_chain_is_exponentials_and_nothing_else(tmp_path, monkeypatch):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from iomodel.devices.calibration import kernels

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def ptx(function, types, **constants):
        source = ASTSource(kernels.kernel(function), {**types, **dict.fromkeys(constants, "constexpr")}, constants)
        return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8}).asm["ptx"]

    pointers = {"SUMS": "*fp32", "steps": "i32"}
    text = ptx(kernels.chain, pointers, BLOCK=4096, UNROLL=8)
    assert text.count("ex2.approx.ftz.f32") == 4096 // 256 * 8  # all unrolled, one an element and round
    assert text.count("mul.f32") <= 4096 // 256  # the first values alone
    assert not re.search(r"\b(ld|st)\.local\b", text)
    reading = {"X": "*fp32", "SUMS": "*fp32", "blocks": "i32"}
    assert "ld.global" in ptx(kernels.read, reading, BLOCK=4096)
    text = ptx(kernels.walk, {**reading, "steps": "i32"}, BLOCK=4096)
    assert text.count("ld.global") == text.count("ld.global.cg") > 0
