"""Runs whose requests are all there at the start: by hand, and against the steady state."""

from types import SimpleNamespace

import pytest

from benchmarks import offline_run
from benchmarks.offline_run import run_seconds
from iomodel import hardware, model
from iomodel.planning.replica_figures import figures
from iomodel.planning.service import as_service
from iomodel.planning.steps import ReplicaSteps


class Fixed:
    """Steps of one second per decode step, and ten for each prompt beside it."""

    host_seconds = 0.0

    def __init__(self, prompt, output, groups=1):
        layout = SimpleNamespace(data_parallel=groups)
        self.service = SimpleNamespace(
            layout=layout, prompt=prompt, steps=output - 1, contexts=(prompt + 1, prompt + output - 1)
        )
        self.groups = groups

    def decode(self, batch, context):
        return SimpleNamespace(seconds=1.0)

    def prefill(self, batch):
        return SimpleNamespace(seconds=10.0 * batch / self.groups)


@pytest.fixture
def fixed(monkeypatch):
    monkeypatch.setattr(
        offline_run, "mixed_seconds", lambda steps, batch, tokens: 1.0 + 10.0 * tokens / steps.service.prompt
    )
    return Fixed


@pytest.mark.parametrize("groups", [1, 4])
def test_a_run_of_one_batch_by_hand(fixed, groups):
    """Four prompts, two per step: two steps with prompts, and eight more until the last request has ten tokens."""
    steps = fixed(100, 10, groups)
    seconds = run_seconds(steps, 4 * groups, 4 * groups, 202)
    first, second = 20.0, 21.0
    assert seconds == pytest.approx(first + second + 9 * 1.0)


def test_requests_wait_for_places(fixed):
    """One place: each of three requests is prefilled alone and decoded to its end."""
    assert run_seconds(fixed(100, 10), 1, 3, 4096) == pytest.approx(3 * (10 + 9))


def test_a_prompt_longer_than_a_step_still_begins(fixed):
    assert run_seconds(fixed(5000, 2), 1, 1, 2048) == pytest.approx(10 + 1)


def test_short_runs_take_longer_per_request_and_long_ones_approach_the_steady_state():
    device = hardware("h200-sxm")
    service = as_service(model("llama-3.1-8b"), 512, 256, engine="tensorrt-llm", step_tokens=4096)
    steady = 1 / figures(service, device, 64).requests_per_second
    per_request = [run_seconds(ReplicaSteps(service, device), 64, count, 4096) / count for count in (64, 256, 6400)]
    assert per_request == sorted(per_request, reverse=True)
    assert per_request[-1] == pytest.approx(steady, rel=0.05)
