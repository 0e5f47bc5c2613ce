"""Plans of a load on given devices: the least batch that serves it, and the times of its requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel

ASKED = {"prompt": 1024, "output": 128}
MOST = iomodel.plan("llama-3.1-8b", "h100-sxm5", count=2, **ASKED).requests_per_second


@given(share=st.floats(0.01, 0.99))
def test_the_batch_is_the_least_that_serves_the_load(share: float) -> None:
    load = share * MOST
    found = iomodel.plan("llama-3.1-8b", "h100-sxm5", count=2, load=load, **ASKED)
    assert found.count == 2
    assert found.requests_per_second == pytest.approx(load)
    fixed = {"count": 2, "layout": found.layout, **ASKED}
    assert iomodel.plan("llama-3.1-8b", "h100-sxm5", batch=found.batch, **fixed).requests_per_second >= load
    if found.batch > 1:
        assert iomodel.plan("llama-3.1-8b", "h100-sxm5", batch=found.batch - 1, **fixed).requests_per_second < load


@given(loads=st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)))
def test_more_load_is_never_faster(loads: tuple[float, float]) -> None:
    less, more = (iomodel.plan("llama-3.1-8b", "h100-sxm5", count=2, load=f * MOST, **ASKED) for f in sorted(loads))
    assert less.tpot <= more.tpot * (1 + 1e-9)


def test_a_load_beyond_the_devices_is_refused_with_the_most_and_the_devices() -> None:
    with pytest.raises(iomodel.InfeasibleError, match="allowed: at most") as refused:
        iomodel.plan("llama-3.1-8b", "h100-sxm5", count=2, load=1.5 * MOST, **ASKED)
    assert refused.value.least == 3


def test_targets_at_the_load_are_kept_or_refused_with_the_time() -> None:
    kept = iomodel.plan("llama-3.1-8b", "h100-sxm5", count=2, load=MOST / 4, **ASKED)
    same = iomodel.plan("llama-3.1-8b", "h100-sxm5", count=2, load=MOST / 4, tpot=kept.tpot * 1.01, **ASKED)
    assert same.tpot == kept.tpot
    with pytest.raises(iomodel.InfeasibleError, match=r"tpot: .* requests/s"):
        iomodel.plan("llama-3.1-8b", "h100-sxm5", count=2, load=MOST / 4, tpot=kept.tpot * 0.5, **ASKED)


@pytest.mark.parametrize("given_too", ["batch", "clients"])
def test_the_load_sets_the_batch(given_too: str) -> None:
    with pytest.raises(iomodel.InputError, match=f"{given_too}: given with load and count"):
        iomodel.plan("llama-3.1-8b", "h100-sxm5", count=2, load=1.0, **{given_too: 4}, **ASKED)
