"""Plans of many loads at once: against single plans, at knots and between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InfeasibleError, InputError, hardware, list_hardware
from iomodel.planning.engines import ENGINES
from iomodel.planning.plan import plan
from iomodel.planning.plan_array import COLUMNS, plan_array, step_array
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.replica_figures import figures
from iomodel.planning.service import as_service
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
from iomodel.planning.steps import around, between, powers
from tests.support.inside import has_rates
from tests.support.strategies import at_most

TINY, H100, A100 = "llama-3.2-1b", "h100-sxm5", "a100-sxm4-80gb"
EXACT = ("batch", "fits", "ttft_alone")


@at_most(4)
@given(
    st.sampled_from([TINY, "gemma-3-4b", "qwen3-30b-a3b"]),
    st.lists(st.tuples(st.integers(1, 4000), st.integers(1, 600)), min_size=1, max_size=2),
    st.sampled_from([None, 1, 7, 40]),
    st.sampled_from([None, 2]),
    st.sampled_from([None, *ENGINES]),
    st.sampled_from([None, Speculation(tokens=2, acceptance=0.7, draft="ngram")]),
)
def test_an_element_is_the_plan_of_its_load(name, lengths, batch, count, engine, speculation):
    prompts, outputs = zip(*lengths, strict=True)
    asked = {"batch": batch, "count": count, "engine": engine, "speculation": speculation}
    found = plan_array(name, H100, prompt=list(prompts), output=list(outputs), **asked)
    for place, (prompt, output) in enumerate(lengths):
        alone = plan(name, H100, prompt=prompt, output=output, layout=found.layouts[place], **asked)
        best = plan(name, H100, prompt=prompt, output=output, **asked)
        assert best.tokens_per_second <= 1.02 * alone.tokens_per_second  # where two layouts are as good
        for column in COLUMNS:
            of_plan = {**vars(alone.figures), "fits": alone.memory.fits}
            factor = alone.replicas if column.endswith("per_second") else 1
            expected = np.nan if of_plan[column] is None else factor * of_plan[column]
            within = {"rel": 1e-9 if column in EXACT else 0.01, "nan_ok": True}
            assert getattr(found, column)[place] == pytest.approx(expected, **within)


def test_lengths_devices_and_batches_broadcast():
    found = plan_array(
        TINY, [H100, A100], prompt=[[512], [1000], [2048]], output=16, batch=8, layout=Layout(tensor_parallel=2)
    )
    assert found.shape == (3, 2)
    assert len(found) == 3
    assert found[0, 1]["hardware"] == A100
    assert (found.layout == "TP 2").all()
    assert (found.tpot[:, 0] < found.tpot[:, 1]).all()
    assert len(found.records()) == 6
    assert found.to_dict()["devices"] == [[2, 2]] * 3
    assert "6 plans, 6 of which fit" in str(found)


GROUPS = {
    TINY: [Layout(), Layout(tensor_parallel=2), Layout(pipeline_parallel=2)],
    "qwen3-30b-a3b": [Layout(expert_parallel=4), Layout(tensor_parallel=2, expert_parallel=4)],
}
"""Layouts with and without data-parallel groups and stages."""


@at_most(10)
@given(
    st.sampled_from(sorted(GROUPS)).flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(GROUPS[name]))),
    st.sampled_from([None, *ENGINES]),
    st.lists(
        st.tuples(st.integers(1, 4000), st.sampled_from([1, 2, 40, 900]), st.integers(1, 700)), min_size=2, max_size=3
    ),
)
def test_figures_of_one_replica_are_those_of_its_load_alone(served, engine, loads):
    """Batches and prompts have the knots of single plans, and the other loads of a call change nothing."""
    (name, layout), (prompts, outputs, batches) = served, (list(each) for each in zip(*loads, strict=True))
    asked = {"engine": engine, "layout": layout, "infeasible": "mark"}
    found = plan_array(name, H100, prompt=prompts, output=outputs, batch=batches, **asked)
    for place, (prompt, output, batch) in enumerate(loads):
        single = plan_array(name, H100, prompt=prompt, output=output, batch=batch, **asked)
        for column in COLUMNS:
            assert getattr(found, column)[place] == pytest.approx(getattr(single, column)[()], rel=1e-12, nan_ok=True)
        if single.feasible:
            alone = figures(as_service(name, prompt, output, layout, engine=engine), hardware(H100), batch)
            within = 1e-9 if output == 1 else 0.01  # without a decode step nothing is approximate
            for column in ("ttft", "step", "cycle_per_token", "requests_per_second", "tokens_per_second"):
                if column != "step" or output > 1:
                    assert getattr(single, column)[()] == pytest.approx(getattr(alone, column), rel=within)
            assert single.ttft_alone == pytest.approx(alone.ttft_alone, rel=1e-9)


@pytest.mark.parametrize("engine", [name for name, engine in ENGINES.items() if engine.mixes])
@pytest.mark.parametrize("name", [TINY, "gpt-oss-20b"])
def test_more_is_never_faster_under_an_engine(name, engine):
    """Longer prompts and larger batches take as long at least, and so does the cycle of a batch.

    A longer prefill takes less by five thousandths at most, where its kernels have other tiles: from 16 to 17 tokens of
    gpt-oss, whose attention a step takes once for each prompt.
    """
    asked = {"engine": engine, "layout": Layout(), "infeasible": "mark"}
    sizes = np.unique(np.geomspace(1, 6000, 60).astype(int))
    longer = plan_array(name, H100, prompt=sizes, output=[[2], [50]], batch=16, **asked)
    larger = plan_array(name, H100, prompt=300, output=[[2], [50]], batch=sizes[sizes < 900], **asked)
    for found, least in ((longer, 0.995), (larger, 1 - 1e-12)):
        for values in (found.batch / found.requests_per_second, found.ttft_alone, found.step):
            assert (values[:, 1:] >= least * values[:, :-1]).all()
    assert (longer.ttft[:, 1:] >= 0.995 * longer.ttft[:, :-1]).all()


@pytest.mark.parametrize("engine", [None, *ENGINES])
@pytest.mark.parametrize("name", ["gpt-oss-20b", "nemotron-h-56b"])
def test_as_many_requests_fit_as_in_single_plans(name, engine):
    """Requests that fit are computed where they change: with windows and states, blocks and pools."""
    layout, prompts = Layout(tensor_parallel=4), np.unique(np.geomspace(1, 8000, 80).astype(int))
    found = plan_array(name, H100, prompt=prompts, output=1, batch=1, engine=engine, layout=layout)
    alone = [as_service(name, int(size), 1, layout, engine=engine).memory(hardware(H100)) for size in prompts]
    assert found.fits.tolist() == [memory.fits for memory in alone]


def test_a_chunk_ends_within_a_verified_step():
    """The tokens of a step that verifies drafts are in one chunk, so that contexts across its end have a time."""
    asked = {"prompt": 8000, "batch": 2, "layout": Layout(tensor_parallel=4), "engine": "vllm"}
    drafts = Speculation(tokens=2, acceptance=0.7, draft="ngram")
    found = plan_array("llama-4-scout", "b200", output=[100, 400], speculation=drafts, **asked)
    alone = plan("llama-4-scout", "b200", output=400, speculation=drafts, **asked)
    assert found.step[1] == pytest.approx(alone.figures.step, rel=0.02)


def test_a_prefix_cache_is_that_of_single_plans():
    cached = {"output": 20, "batch": 4, "engine": "vllm", "layout": Layout(), "prefix_cache": PrefixCache(hit_rate=0.5)}
    found = plan_array(TINY, H100, prompt=[100, 700], **cached)
    assert found.ttft.tolist() == [plan(TINY, H100, prompt=size, **cached).ttft for size in (100, 700)]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50), st.floats(0.1, 2))
def test_lengths_of_an_array_have_the_knots_of_single_lengths(lengths, power):
    tokens = np.array(lengths)
    assert [tuple(ends) for ends in np.transpose(around(tokens)).tolist()] == [around(one) for one in lengths]
    assert [tuple(ends) for ends in np.transpose(powers(tokens)).tolist()] == [powers(one) for one in lengths]
    timed = lambda one: (one**power, -float(one))  # noqa: E731
    expected = np.transpose([between(one, timed) for one in lengths])
    assert np.array(between(tokens, timed)) == pytest.approx(expected, rel=1e-12)


def test_what_does_not_fit_is_refused_or_marked():
    asked = {"prompt": [64, 2000], "output": 16, "batch": [1, 10**6], "layout": Layout()}
    with pytest.raises(InfeasibleError, match=r"prompt: 2,000 \+ 16 tokens given; allowed: fewer"):
        plan_array("llama-3-8b", H100, **asked)
    found = plan_array("llama-3-8b", H100, infeasible="mark", **asked)
    assert found.feasible.tolist() == [True, False]
    assert found.batch.tolist() == [1, 0]
    with pytest.raises(InputError, match=r"prompt: 0\.5 given; allowed: integers from 1"):
        plan_array(TINY, H100, prompt=0.5, output=1)


def test_steps_are_exact():
    found = step_array(TINY, [H100, A100], batch=[[1], [8]], q_len=1, kv_len=[[100], [3000]], tp=2)
    assert found.shape == (2, 2)
    assert found[1, 1] == step(TINY, A100, batch=8, q_len=1, kv_len=3000, layout=Layout(tensor_parallel=2)).seconds
    without = next(name for name in list_hardware() if not has_rates(hardware(name), "bf16"))
    assert np.isnan(step_array(TINY, without, batch=1, q_len=1, kv_len=9))
