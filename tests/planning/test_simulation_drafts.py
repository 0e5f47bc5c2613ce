"""Drafts in a simulation: steps against draws one by one, means against the plan, nothing accepted, percentiles."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import InputError, Speculation
from iomodel.planning.service import as_service
from iomodel.planning.simulation.engine_run import decode_steps
from iomodel.planning.steps import ReplicaSteps

TINY, H100 = "llama-3.2-1b", "h100-sxm5"
ALONE = {"prompt": 256, "output": 129, "concurrency": 1, "requests": 200, "engine": None}


def drafting(tokens: int = 3, acceptance: float = 0.7, draft: str = "ngram") -> Speculation:
    return Speculation(tokens=tokens, acceptance=acceptance, draft=draft)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=20), st.integers(1, 6), st.floats(0, 1), st.integers(0, 99))
def test_steps_yield_the_tokens_of_a_request(outputs, tokens, acceptance, seed):
    output = np.array(outputs)
    steps = decode_steps(output, drafting(tokens, acceptance), seed)
    assert (steps <= output - 1).all()
    assert (steps * (tokens + 1) >= output - 1).all()
    assert steps.tolist() == decode_steps(output, drafting(tokens, acceptance), seed).tolist()
    assert decode_steps(output, drafting(tokens, 0.0), seed).tolist() == (output - 1).tolist()
    assert decode_steps(output, drafting(tokens, 1.0), seed).tolist() == (-(-(output - 1) // (tokens + 1))).tolist()


def test_steps_have_the_mean_of_draws_one_by_one():
    chance, rounds, steps = random.Random(2), 4000, 0
    for _ in range(rounds):
        left = 40
        while left > 0:
            steps, left = steps + 1, left - 1
            for _ in range(3):
                if chance.random() >= 0.7:
                    break
                left -= 1
    found = decode_steps(np.full(rounds, 41), drafting(), 5).mean()
    assert found == pytest.approx(steps / rounds, rel=0.01)


@pytest.mark.parametrize("draft", ["ngram", TINY])
def test_a_request_alone_has_the_time_of_the_plan(draft):
    """The last step of a request may yield tokens too many, so that the expected time of a token is a little less."""
    drafts = drafting(draft=draft)
    found = iomodel.simulate("llama-3-8b", H100, speculation=drafts, **ALONE)
    service = as_service("llama-3-8b", 256, 129, speculation=drafts, engine=None)
    steps = ReplicaSteps(service, iomodel.hardware(H100))
    assert 1 < found.tpot.mean / steps.decode_seconds(1) < 1.03
    assert found.ttft.p50 == pytest.approx(steps.first_token_seconds(), rel=0.01)


@pytest.mark.parametrize("policy", ["prefill-first", "chunked"])
def test_drafts_that_nobody_accepts_cost_time(policy):
    def simulated(drafts):
        return iomodel.simulate(
            TINY, H100, prompt=256, output=33, concurrency=8, requests=80, policy=policy, speculation=drafts
        )

    plain, vain, good = (simulated(each) for each in (None, drafting(3, 0.0, TINY), drafting(3, 0.8)))
    assert vain.tpot.mean > plain.tpot.mean > good.tpot.mean
    assert vain.decodings == plain.decodings == 80 * 32
    assert good.decodings < plain.decodings / 2
    (row,) = (line for line in str(vain).splitlines() if "tokens of a request in a decode step" in line)
    assert float(row.split()[-1]) == 1  # the first token of an answer is not decoded
    assert vain.memory.request_bytes == 2 * plain.memory.request_bytes  # each model keeps a cache


def test_without_drafts_nothing_changes():
    plain = iomodel.simulate(TINY, H100, **ALONE)
    assert plain.decodings == 200 * 128
    assert plain.speculation is None
    assert "tokens of a request" not in str(plain)
    assert "tokens of a request in a decode step, of 4" in str(
        iomodel.simulate(TINY, H100, speculation=drafting(), **ALONE)
    )


def test_a_front_keeps_percentiles_with_drafts():
    front = {"prompt": 256, "output": 33, "batches": [1, 8], "replica_devices": 1, "tpot": 0.01, "percentile": "p90"}
    front["engine"] = None
    drafts = drafting(3, 0.8)
    cheapest = iomodel.pareto(TINY, H100, speculation=drafts, **front).cheapest
    assert cheapest.batch == 8
    alone = {"prompt": 256, "output": 33, "concurrency": 8, "batch": 8, "requests": 1600, "engine": None}
    reached = iomodel.simulate(TINY, H100, speculation=drafts, **alone).tpot.p90
    assert iomodel.pareto(TINY, H100, speculation=drafts, **{**front, "tpot": 1.01 * reached}).cheapest.batch == 8
    below = {**front, "batches": [8], "tpot": 0.99 * reached}
    with pytest.raises(iomodel.InfeasibleError, match=r"TPOT \(p90\)"):
        iomodel.pareto(TINY, H100, speculation=drafts, **below)


def test_the_argument_is_a_speculation():
    with pytest.raises(InputError, match=r"^speculation: 3 given; allowed: an iomodel.Speculation$"):
        iomodel.simulate(TINY, H100, speculation=3, **ALONE)
