"""Counts of sampling: the softmax of logits, and draws of tokens without a sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InputError
from iomodel.counting.cost import Cost, cost
from iomodel.testing import Run
from tests.reference.sampling import sample, softmax
from tests.support.inside import Elementwise

WIDTHS = {"io": 2, "kv": 2, "fp32": 4, "int32": 4}


def same(found: Cost, run: Run) -> None:
    assert {name: n for name, n in found.reads.items() if n} == run.reads
    assert {name: n for name, n in found.writes.items() if n} == run.writes
    moved = sum(n * WIDTHS[run.widths[name]] for side in (run.reads, run.writes) for name, n in side.items())
    assert (found.hbm_bytes, found.exps) == (moved, run.exps)
    assert found.footprint_elements == run.sram_peak
    assert found.footprint_bytes == run.sram_bytes(2, 2)


@given(st.integers(1, 5), st.integers(1, 40), st.data())
def test_probabilities_move_what_they_count(rows: int, words: int, data: st.DataObject) -> None:
    splits = data.draw(st.integers(1, words))
    draw = np.random.default_rng(rows * words)
    logits, heat = draw.standard_normal((rows, words)), draw.uniform(0.5, 2, rows)
    run = softmax(logits, heat, splits)
    weights = np.exp(logits / heat[:, None])
    np.testing.assert_allclose(run.outputs["probs"], weights / weights.sum(axis=1, keepdims=True))
    same(cost("temperature_softmax", Elementwise(rows=rows, channels=words), splits=splits), run)


def allowed(probs: np.ndarray, top_k: int, top_p: float) -> set[int]:
    """The words that either filter leaves: fewer than k are likelier, and those have less than the mass p."""
    return {
        word
        for word, p in enumerate(probs)
        if (probs > p).sum() < top_k and probs[probs > p].sum() < top_p
    }  # fmt: skip


@given(st.integers(1, 30), st.data())
def test_draws_read_at_most_what_they_count(words: int, data: st.DataObject) -> None:
    """A draw ends where its sum passes a uniform number; the words behind are what the count has too many."""
    top_k, top_p = data.draw(st.integers(1, words)), data.draw(st.sampled_from([0.1, 0.5, 0.9, 1.1]))
    seed = data.draw(st.integers(0, 9))
    probs = np.random.default_rng(words).dirichlet(np.ones(words))[None]
    drawn = sample(probs, [top_k], [top_p], seed)
    assert int(drawn.run.outputs["token"][0]) in allowed(probs[0], top_k, top_p)
    (rounds,) = drawn.rounds
    found = cost("sample", Elementwise(rows=1, channels=words), rounds=rounds)
    assert found.reads["probs"] - drawn.run.reads["probs"] == drawn.unread < rounds * words
    assert {**found.reads, "probs": 0} == {**drawn.run.reads, "probs": 0}
    assert found.writes == drawn.run.writes
    assert found.footprint_elements == drawn.run.sram_peak


def test_rounds_and_splits_are_checked() -> None:
    call = Elementwise(rows=2, channels=5)
    with pytest.raises(InputError, match="splits: 6 given; allowed: up to 5, the words"):
        cost("temperature_softmax", call, splits=6)
    with pytest.raises(InputError, match="rounds: 0 given"):
        cost("sample", call, rounds=0)
