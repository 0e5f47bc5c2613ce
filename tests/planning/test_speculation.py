"""Speculation: expected tokens against a simulation of draws, memory and times by hand, no gain without acceptance."""

import json
import random
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InputError, UnknownNameError, model
from iomodel.planning.engine_flags import engine_flags, hub_name
from iomodel.planning.engines import STEP_HOST
from iomodel.planning.fleet import fleet
from iomodel.planning.pareto import pareto
from iomodel.planning.plan import plan
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
from tests.support.inside import main

TINY, BIG, H100 = "llama-3.2-1b", "llama-3-8b", "h100-sxm5"
CHAT = {"prompt": 512, "output": 3, "engine": None}


@given(st.integers(1, 20), st.integers(0, 100))
def test_tokens_of_a_step_in_closed_form(tokens, percent):
    accepted = percent / 100
    found = Speculation(tokens=tokens, acceptance=accepted).tokens_per_step
    closed = tokens + 1 if accepted == 1 else (1 - accepted ** (tokens + 1)) / (1 - accepted)
    assert found == pytest.approx(closed)
    assert 1 <= found <= tokens + 1


def test_tokens_of_a_step_are_the_mean_of_draws():
    chance, rounds = random.Random(1), 40_000
    made = 0
    for _ in range(rounds):
        made += 1
        for _ in range(4):
            if chance.random() >= 0.7:
                break
            made += 1
    assert made / rounds == pytest.approx(Speculation(tokens=4, acceptance=0.7).tokens_per_step, rel=0.01)


def test_a_draft_model_by_hand():
    drafts = Speculation(tokens=3, acceptance=0.5, draft=TINY)
    found, plain = (plan(BIG, H100, batch=8, speculation=one, **CHAT) for one in (drafts, None))
    small = plan(TINY, H100, batch=8, **CHAT)
    assert found.memory.weights == plain.memory.weights + small.memory.weights
    assert found.memory.request_bytes == plain.memory.request_bytes + small.memory.request_bytes
    assert found.ttft == pytest.approx(plain.ttft + small.ttft - (1 + 7 / 2) * STEP_HOST, rel=1e-12)
    rounds = []
    for context in (513, 514):
        check = step(BIG, H100, batch=8, q_len=4, kv_len=context + 3, logits="all").seconds
        rounds.append(check + 3 * step(TINY, H100, batch=8, q_len=1, kv_len=context).seconds)
    assert found.figures.step == pytest.approx((sum(rounds) / 2 + STEP_HOST) / (1 + 0.5 + 0.25 + 0.125), rel=1e-12)
    assert found.decode.q_len == 4


def test_a_further_layer_by_hand():
    spec = model(BIG)
    found, plain = (
        plan(BIG, H100, batch=8, speculation=one, **CHAT) for one in (Speculation(tokens=1, acceptance=0.9), None)
    )
    layer = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336 + 2 * 4096
    assert found.memory.weights - plain.memory.weights == 2 * (layer + 2 * 4096 * 4096)
    assert found.memory.request_bytes * 32 == plain.memory.request_bytes * 33
    assert 0 < found.ttft - plain.ttft < 3 / len(spec.layers) * plain.ttft
    free = plan(BIG, H100, batch=8, speculation=Speculation(tokens=1, acceptance=0.9, draft="ngram"), **CHAT)
    assert (free.memory, free.ttft) == (plain.memory, plain.ttft)
    assert free.figures.step < found.figures.step


@pytest.mark.parametrize(
    ("name", "draft", "tokens", "batch"),
    [
        (TINY, "mtp", 1, 1),
        (TINY, "ngram", 8, 64),
        (TINY, "ngram", 1, 7),
        (TINY, TINY, 3, 7),
        ("gpt-oss-20b", "mtp", 2, 8),
    ],
)
def test_speculation_without_acceptance_never_gains(name, draft, tokens, batch):
    plain = plan(name, H100, batch=batch, **CHAT)
    found = plan(name, H100, batch=batch, speculation=Speculation(tokens=tokens, acceptance=0.0, draft=draft), **CHAT)
    assert found.tpot >= plain.tpot
    assert found.ttft >= plain.ttft
    assert found.memory.fits <= plain.memory.fits
    assert found.tokens_per_second <= plain.tokens_per_second


def test_more_acceptance_is_never_slower():
    times = [
        plan(TINY, H100, batch=4, speculation=Speculation(tokens=3, acceptance=percent / 100), **CHAT).tpot
        for percent in (0, 1, 50, 99, 100)
    ]
    assert times == sorted(times, reverse=True)


def test_groups_and_stages_draft_for_themselves():
    drafts = Speculation(tokens=2, acceptance=0.8)
    for layout in (Layout(tensor_parallel=2, expert_parallel=4), Layout(tensor_parallel=2, pipeline_parallel=2)):
        at = {"count": 4, "layout": layout, "batch": 32, **CHAT}
        plain, found = (plan("gpt-oss-20b", H100, speculation=one, **at) for one in (None, drafts))
        assert found.memory.fits <= plain.memory.fits
        assert found.figures.step * drafts.tokens_per_step > plain.figures.step


def test_fleets_and_fronts():
    drafts = Speculation(tokens=3, acceptance=0.9, draft="ngram")
    targets = {"load": 4, "ttft": 0.5, "tpot": 0.05, "layouts": [Layout()], "prompt": 512, "output": 32}
    fast, slow = (fleet(TINY, H100, speculation=one, **targets).best.operating.tpot for one in (drafts, None))
    assert fast < slow
    front = pareto(TINY, H100, speculation=drafts, batches=[4], replica_devices=1, **CHAT)
    assert front.front[0].tpot == plan(TINY, H100, batch=4, speculation=drafts, **CHAT).tpot


def test_command_lines():
    found = {draft: plan(BIG, H100, batch=8, speculation=Speculation(tokens=3, acceptance=0.5, draft=draft), **CHAT)
             for draft in ("mtp", "ngram", "llama-3.1-8b")}  # fmt: skip
    vllm = [shlex.split(engine_flags(one, "vllm").command)[-1] for one in found.values()]
    assert [json.loads(text) for text in vllm] == [
        {"method": "mtp", "num_speculative_tokens": 3},
        {"method": "ngram", "num_speculative_tokens": 3},
        {"model": hub_name(model("llama-3.1-8b")), "num_speculative_tokens": 3},
    ]
    sglang = [engine_flags(one, "sglang").command.split("--speculative-algorithm ")[1] for one in found.values()]
    assert sglang[0] == "NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    assert sglang[1] == "NGRAM --speculative-num-draft-tokens 3"
    assert sglang[2].startswith("STANDALONE --speculative-draft-model-path meta-llama/")
    assert "decoding_type: MTP\n  num_nextn_predict_layers: 3" in engine_flags(found["mtp"], "trtllm").config
    assert "speculative_config for 3" in engine_flags(found["ngram"], "trtllm").notes[0]


def drafting(draft):
    return Speculation(tokens=1, acceptance=1.0, draft=draft)


FAULTS = [
    (lambda: Speculation(tokens=0, acceptance=0.5), "tokens"),
    (lambda: Speculation(tokens=65, acceptance=0.5), "tokens"),
    (lambda: Speculation(tokens=1, acceptance=1.5), "acceptance"),
    (lambda: plan(BIG, H100, speculation=3, **CHAT), "speculation: 3 given; allowed: an iomodel.Speculation"),
    (lambda: plan(BIG, H100, speculation=drafting("gpt-oss-20b"), **CHAT), "speculation.draft: gpt-oss-20b has"),
    (lambda: plan(BIG, H100, speculation=drafting("eagle"), **CHAT), "model: 'eagle' is"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "says"), FAULTS, ids=[says[:30] for _, says in FAULTS])
def test_faults_are_told_in_one_line(call, says):
    with pytest.raises((InputError, UnknownNameError)) as caught:
        call()
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_the_options_of_the_command(capsys):
    typed = f"plan {TINY} --hardware {H100} --prompt 512 --output 3 --batch 8 --draft-tokens 2 --acceptance 0.75"
    drafts = Speculation(tokens=2, acceptance=0.75)
    assert main([*shlex.split(typed), "--engine", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == plan(TINY, H100, batch=8, speculation=drafts, **CHAT).to_dict()
    assert main([*shlex.split(typed), "--draft", "ngram"]) == 0
    assert "tokens of a step, of 1 and 2 drafts" in capsys.readouterr().out
    assert main(shlex.split(typed.replace("--acceptance 0.75", ""))) == 2
    assert capsys.readouterr().err.startswith("iomodel: acceptance: none given with speculation")
