"""Overlap of the blocks of an SM: what two blocks leave idle, more blocks fill where products are asynchronous."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel.timing.overlap import MOST, times

SECONDS = st.floats(0.01, 10.0)


@given(st.lists(SECONDS, min_size=1, max_size=4), SECONDS)
def test_more_than_two_blocks_fill_what_two_leave_idle(busy: list[float], wait: float) -> None:
    usual = times(busy, wait, MOST)
    found = times(busy, wait, MOST, asynchronous=True)
    assert found[:2] == usual[:2]
    assert all(one < other for one, other in zip(found[2:], usual[2:], strict=True))
    assert all(later < earlier for earlier, later in pairwise(found))
    assert all(time > max(busy) for time in found)


def test_what_two_blocks_leave_idle_is_a_wait_of_each() -> None:
    """Six blocks take a third of it: the sum of the phases of two, less the time of two in the network."""
    busy, wait = [2.0, 1.0], 1.0
    network = times(busy, wait, 6, read_with=(1, 1))
    excess = sum(busy) + wait - network[1]
    assert times(busy, wait, 6, asynchronous=True)[5] == pytest.approx(network[5] + excess / 3)
