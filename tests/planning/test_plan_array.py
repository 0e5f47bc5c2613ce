"""Plans of many loads at once: against single plans, at knots and between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InfeasibleError, InputError, hardware, list_hardware
from iomodel.planning.plan import plan
from iomodel.planning.plan_array import COLUMNS, plan_array, step_array
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
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
)
def test_an_element_is_the_plan_of_its_load(name, lengths, batch, count):
    prompts, outputs = zip(*lengths, strict=True)
    asked = {"batch": batch, "count": count}
    found = plan_array(name, H100, prompt=list(prompts), output=list(outputs), **asked)
    for place, (prompt, output) in enumerate(lengths):
        alone = plan(name, H100, prompt=prompt, output=output, layout=found.layouts[place], **asked)
        best = plan(name, H100, prompt=prompt, output=output, **asked)
        assert best.tokens_per_second <= 1.02 * alone.tokens_per_second  # where two layouts are as good
        for column in COLUMNS:
            of_plan = {**vars(alone.figures), "fits": alone.memory.fits}
            factor = alone.replicas if column.endswith("per_second") else 1
            expected = np.nan if of_plan[column] is None else factor * of_plan[column]
            within = {"rel": 1e-9 if column in EXACT else 0.02, "nan_ok": True}
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


def test_an_engine_is_that_of_single_plans():
    found = plan_array(TINY, H100, prompt=[100, 700], output=20, batch=4, engine="vllm", layout=Layout())
    alone = [plan(TINY, H100, prompt=size, output=20, batch=4, engine="vllm", layout=Layout()) for size in (100, 700)]
    assert found.ttft.tolist() == [one.ttft for one in alone]


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
