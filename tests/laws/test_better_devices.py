"""Better devices: each figure declares its better direction; no call, step, plan or training step is slower by it."""

from __future__ import annotations

import pytest

import iomodel
from iomodel import IOModelError, hardware, list_hardware
from tests.support.device_edits import directions, edited, scaled
from tests.support.drawn_questions import Question
from tests.support.edited_answers import SHARES, answer, edits, seconds
from tests.support.inside import BANDWIDTH, matrix

ASKED = {"estimate": 16, "layers": 20, "solve time": 8, "step": 6, "train_step": 3, "plan": 2}
"""Questions of each kind; `python -m benchmarks.device_laws` asks many more."""
CALL = iomodel.Attention(heads=8, q_len=1024, head_dim=128)


def test_every_figure_of_the_schema_declares_its_better_direction() -> None:
    for path, (direction, reason) in directions().items():
        assert direction in ("higher", "lower", "none"), path
        assert bool(reason) == (direction == "none"), path


def test_every_figure_on_file_is_in_the_schema() -> None:
    figures = {path for name in list_hardware() for path in hardware(name).quantities if "attention." not in path}
    assert figures <= directions().keys()


@pytest.mark.parametrize(("kind", "number"), [(kind, number) for kind in SHARES for number in range(ASKED[kind])])
def test_no_better_figure_makes_an_answer_slower(kind: str, number: int) -> None:
    for edit in edits(0, number, each=3, kind=kind):
        assert edit.holds, edit


def test_a_step_is_timed_on_each_device_that_holds_it() -> None:
    """A larger memory takes fewer devices for longer, and no more of their time together."""
    question: Question = ("step", ["nemotron-super-49b", "tpu-v4"], {"batch": 1, "q_len": 128, "kv_len": 128})
    devices = hardware("tpu-v4"), scaled(hardware("tpu-v4"), "memory.hbm.capacity".__eq__, 3)
    given, larger = (answer(question, device) for device in devices)
    assert given.layout.devices > larger.layout.devices
    assert given.seconds < larger.seconds
    assert seconds(question, given, False) >= seconds(question, larger, False)


@pytest.mark.parametrize("rows", [1, 16384])
def test_products_are_faster_by_what_binds_them(rows: int) -> None:
    """Where one resource takes all of the time but the launch; elsewhere parts of a time add up."""
    bound, layer = set(), iomodel.Linear(rows=rows, in_features=16384, out_features=16384)
    for device in (hardware(name) for name in list_hardware() if "compute.peak.bf16" in hardware(name).quantities):
        found = iomodel.estimate("gemm", layer, device)
        figures = {"matrix": matrix(device), "hbm": BANDWIDTH}.get(found.limited_by, ())
        if found.breakdown[found.limited_by] + found.breakdown.get("launch", 0) > 0.99 * found.seconds and figures:
            bound.add(found.limited_by)
            faster = iomodel.estimate("gemm", layer, scaled(device, figures.__contains__, 2))
            assert faster.seconds < found.seconds, device.id
    assert bound == ({"hbm"} if rows == 1 else {"matrix", "hbm"})


@pytest.mark.parametrize("verb", ["solve", "estimate", "check"])
@pytest.mark.parametrize("name", ["flash2", "flash3", "split_kv"])
def test_a_block_of_too_few_threads_is_refused_by_its_field(verb: str, name: str) -> None:
    few = edited(hardware("h100-sxm5"), {"limits.threads_per_block": 16})
    tiles = [{"block_q": 64, "block_kv": 64}] if verb == "check" else []
    with pytest.raises(IOModelError, match=r"^limits\.threads_per_block: 16 threads on .*; allowed: \d+ or more"):
        getattr(iomodel, verb)(name, CALL, few, *tiles)
