"""Strategies for the launches of a kernel."""

from __future__ import annotations

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from iomodel import InputError, UnknownNameError
from iomodel.testing import kernel_calls


@given(st.data(), st.integers(1, 60), st.integers(1, 40))
def test_draws_are_within_their_limits(data: st.DataObject, most: int, largest: int) -> None:
    call = data.draw(kernel_calls({"n": most, "d": 3}, {"BLOCK": largest, "WARPS": [4, 7]}, tiled={"n": "BLOCK"}))
    assert 1 <= call.sizes["n"] <= most
    assert 1 <= call.sizes["d"] <= 3
    block = call.meta["BLOCK"]
    assert block <= largest
    assert block & (block - 1) == 0
    assert call.meta["WARPS"] in (4, 7)


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_the_edges_of_tiles_are_drawn(beside: int) -> None:
    drawn = kernel_calls({"n": 10_000}, {"BLOCK": [512]}, tiled={"n": "BLOCK"})
    call = find(drawn, lambda call: call.sizes["n"] > 512 and (call.sizes["n"] - beside) % 512 == 0)
    assert call.sizes["n"] == 512 * 2 + beside if beside < 1 else 512 + 1


def test_what_cannot_be_drawn_is_refused_in_one_line() -> None:
    for sizes, meta, tiled, line in (
        ({"n": 0}, {"B": 4}, None, r"sizes n: 0 given; allowed: an integer from 1"),
        ({"n": 4}, {"B": []}, None, r"meta B: no value given; allowed: at least one"),
        ({"n": 4}, {"B": "16"}, None, r"meta B: '16' given; allowed: the largest value, or a list"),
        ({"n": 4}, {"B": [2.5]}, None, r"meta B: 2\.5 given"),
        (3, {"B": 4}, None, r"sizes: 3 given"),
    ):
        with pytest.raises(InputError, match=line):
            kernel_calls(sizes, meta, tiled=tiled)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="tiled n: 'C' is unknown"):
        kernel_calls({"n": 4}, {"B": 4}, tiled={"n": "C"})
    with pytest.raises(UnknownNameError, match="tiled: 'm' is unknown; allowed: n"):
        kernel_calls({"n": 4}, {"B": 4}, tiled={"m": "B"})
