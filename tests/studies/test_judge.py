"""The time model against the calls that a device's file has timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iomodel
from tests.support.inside import main

SIZES = {"dtype": "bf16", "batch": 4, "heads": 16, "kv_heads": 16, "head_dim": 128, "kernel": "torch flash"}


def call(length: int, share: float, **more: Any) -> tuple[dict[str, Any], float]:
    """A timed call, so many times as long as its estimate."""
    sizes = {"direction": "forward", "mask": "causal", **SIZES, "q_len": length, "kv_len": length, **more}
    w = iomodel.Attention(**{name: value for name, value in sizes.items() if name != "kernel"})
    seconds = iomodel.estimate("flash2", w, "h100-sxm5").seconds * share
    return {**sizes, "time": {"value": seconds, "unit": "s", "source": "test"}}, seconds


@pytest.fixture
def file(tmp_path: Path) -> Path:
    timed = [call(512, 2.0)[0], call(1024, 1.0)[0], call(2048, 0.8, direction="backward")[0]]
    device = iomodel.hardware("h100-sxm5").to_dict()
    device["measured"]["attention"] = timed
    path = tmp_path / "mine.yaml"
    path.write_text(iomodel.Hardware(**device).to_yaml(), encoding="utf-8")
    return path


def test_each_call_is_held_against_its_estimate(file: Path) -> None:
    found = iomodel.devices.judge(None, iomodel.hardware(file))
    assert [one.error for one in found.calls] == pytest.approx([-0.5, 0.0, 0.25], abs=1e-6)
    assert found.median_error == pytest.approx(0.25, abs=1e-6)
    assert found.worst_error == pytest.approx(0.5, abs=1e-6)
    assert found.to_dict()["calls"][0]["q_len"] == 512
    assert "+25" in str(found)


def test_calls_without_a_time_are_listed(file: Path) -> None:
    found = iomodel.devices.judge("split_kv", iomodel.hardware(file))
    assert len(found.calls) == 2
    assert [text.split(",")[0] for text in found.left_out] == ["backward"]
    forward = iomodel.hardware(file).to_dict()
    forward["measured"]["attention"] = forward["measured"]["attention"][:2]
    device = iomodel.Hardware(**forward)
    with pytest.raises(iomodel.InputError, match="algorithm: 'two_pass' given; it has a time for none") as caught:
        iomodel.devices.judge("two_pass", device)
    assert "\n" not in str(caught.value)


def test_the_command(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "flash2", "--hardware", str(file)]) == 0
    assert "median error 25 %" in capsys.readouterr().out
    assert main(["judge", "flash2", "--hardware", "h100-sxm5"]) == 2
    assert "has no timed call" in capsys.readouterr().err
