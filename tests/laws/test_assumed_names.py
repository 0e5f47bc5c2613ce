"""The name of a family in any question: the answer of the device that is taken, which says so among its assumptions."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import iomodel
from tests.support.inside import main

CALL = iomodel.Attention(heads=16, q_len=4096, head_dim=128, mask="causal")
TILES = {"block_q": 128, "block_kv": 128}
LOAD: dict[str, Any] = {"prompt": 512, "output": 64}
NOTE = "h100: taken as h100-sxm5; also h100-nvl, h100-pcie"
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "estimate": lambda device: iomodel.estimate("flash3", CALL, device),
    "solve": lambda device: iomodel.solve("flash3", CALL, device),
    "check": lambda device: iomodel.check("flash3", CALL, device, TILES),
    "compare": lambda device: iomodel.compare(CALL, device),
    "diagnose": lambda device: iomodel.diagnose("flash3", CALL, device, 1e-3),
    "lower bounds": lambda device: iomodel.solve("standard", CALL, device, objective="traffic"),
    "step": lambda device: iomodel.step("llama-3-8b", device, batch=4, q_len=1, kv_len=512),
    "plan": lambda device: iomodel.plan("llama-3-8b", device, **LOAD),
    "fleet": lambda device: iomodel.fleet("llama-3-8b", hardware=[device], load=2, ttft=1, tpot=0.05, **LOAD),
    "disaggregate": lambda device: iomodel.disaggregate("llama-3-8b", prefill=device, decode=device, **LOAD),
    "simulate": lambda device: iomodel.simulate("llama-3-8b", device, load=2, requests=10, **LOAD),
}


@pytest.mark.parametrize("verb", QUESTIONS)
def test_every_answer_says_which_device_of_a_family_it_took(verb: str) -> None:
    full, family = (QUESTIONS[verb](name) for name in ("h100-sxm5", "h100"))
    assert NOTE in json.dumps(family.to_dict()["assumed"])
    assert NOTE in " ".join(str(family).split())
    assert NOTE not in str(full)
    assert json.dumps(family.to_dict()).count(NOTE) == 1
    assert QUESTIONS[verb](iomodel.hardware("H100")).to_dict() == {
        **family.to_dict(),
        "assumed": json.loads(json.dumps(family.to_dict()["assumed"]).replace("h100: taken", "H100: taken")),
    }
    for copied in (type(family).from_dict(family.to_dict()), pickle.loads(pickle.dumps(family))):
        assert copied.to_dict() == family.to_dict()
    bare = json.loads(json.dumps(family.to_dict()).replace(f'"{NOTE}"', "").replace("[, ", "["))
    assert {**bare, "assumed": bare["assumed"] or None} == {
        **full.to_dict(),
        "assumed": full.to_dict().get("assumed") or None,
    }


def test_the_command_says_which_device_of_a_family_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("tiles flash3 --hardware h100 --q-len 4096 --head-dim 128", "hardware h100"):
        assert main(words.split()) == 0
        assert NOTE in " ".join(capsys.readouterr().out.split())
    assert main(["hardware", "v100-pcie"]) == 0
    assert "taken" not in capsys.readouterr().out
