"""Grids whose tiles are listed end in arrays as each of them does alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.timing.balance import Grid, spread
from iomodel.timing.listed_visits import ListedVisits

lengths = st.tuples(
    st.integers(1, 3000), st.integers(1, 3000), st.sampled_from([16, 64, 128]), st.sampled_from([16, 64])
)


@given(
    points=st.lists(lengths, min_size=1, max_size=5),
    left=st.integers(0, 2000),
    copies=st.integers(1, 8) | st.integers(1, 300),
    units=st.sampled_from([3, 20, 40, 108]),
    order=st.sampled_from(["grid", "longest first"]),
    shares=st.sampled_from([(1.0,), (1.0, 0.6), (1.0, 0.6, 0.5, 0.6)]),
    block=st.sampled_from([0.0, 3.0]),
)
def test_grids_end_together_as_alone(
    points: list[tuple[int, ...]],
    left: int,
    copies: int,
    units: int,
    order: str,
    shares: tuple[float, ...],
    block: float,
) -> None:
    mask = iomodel.Window(left=left, right=0)
    calls = [iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=64, mask=mask) for q_len, kv_len, *_ in points]
    grids = [spread(call, "query", u, v) for call, (*_, u, v) in zip(calls, points, strict=True)]
    places = np.array([*range(len(grids)), 0])
    many = np.arange(copies, copies + len(places)).astype(float)
    visit = np.linspace(1.0, 2.0, len(places))
    together = Grid(ListedVisits.of(grids, places), many, units).busiest(
        order, visit=visit, block=block, shares=shares, most=np.full(len(places), len(shares))
    )
    for number, place in enumerate(places.tolist()):
        alone = Grid(grids[place], int(many[number]), units)
        end = alone.busiest(order, visit=float(visit[number]), block=block, shares=shares)
        assert together[number] == pytest.approx(end, rel=1e-12)
