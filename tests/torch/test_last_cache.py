"""Laws of the last cache between the operators of a program that is repeated."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel.torch import OperatorCall, TensorArgument, traffic
from iomodel.torch.last_cache import LastCache, places_of

GPU = "h100-sxm5"
SIZE = 4096
"""Bytes of a tensor of these programs [B]."""


def tensor(storage: int, elements: int = SIZE // 4, kept: bool = False) -> TensorArgument:
    return TensorArgument((elements,), "float32", 4, storage=storage, outside=not storage, kept=kept)


def chain(length: int, elements: int = SIZE // 4, kept: bool = False) -> list[OperatorCall]:
    """Apply an operator to the result of the one before; results are alive at the end if kept, the last one always."""
    ends = [tensor(number, elements, kept or number == length) for number in range(length + 1)]
    return [OperatorCall("aten.relu", {"self": x}, (y,), pointwise=True) for x, y in pairwise(ends)]


def run(calls: list[OperatorCall], tensors: int, times: int) -> list[tuple[int, int]]:
    """Repeat a program beside a cache of some tensors; return the bytes that each run reads and writes in DRAM."""
    cache = LastCache(SIZE * tensors, places_of(calls))
    moved = []
    for _ in range(times):
        saved = [cache.use(call) for call in calls]
        moved.append(tuple(SIZE * len(calls) - sum(kind) for kind in zip(*saved, strict=True)))
    return moved


@given(st.integers(1, 30), st.integers(5, 40))
def test_results_that_later_ones_take_the_place_of_are_never_written_back(length: int, tensors: int) -> None:
    assert run(chain(length), tensors, 2)[1] == (0, 0)


@given(st.integers(1, 30), st.integers(2, 40))
def test_results_that_live_are_written_where_they_do_not_fit(length: int, tensors: int) -> None:
    fits = length + 1 <= tensors
    assert run(chain(length, kept=True), tensors, 2)[1] == ((0, 0) if fits else (SIZE, SIZE * length))


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(1, 8))
def test_one_run_leaves_what_every_later_run_leaves(kept: list[bool], tensors: int) -> None:
    ends = [tensor(number, kept=each) for number, each in enumerate([False, *kept])]
    calls = [
        OperatorCall("aten.add", {"self": x, "other": ends[number // 2]}, (y,), pointwise=True)
        for number, (x, y) in enumerate(pairwise(ends))
    ]
    assert len(set(run(calls, tensors, 4)[1:])) == 1


def test_a_repeated_chain_of_small_tensors_leaves_dram_alone() -> None:
    small, large = (traffic(chain(9, elements), GPU, warm=True) for elements in (1 << 20, 1 << 27))
    assert small.hbm_bytes == 0 < small.seconds
    assert large.hbm_bytes == 9 * 2 * 4 << 27
    assert traffic(chain(9, 1 << 20), GPU).hbm_bytes == 10 * 4 << 20


@pytest.mark.parametrize("alone", [True, False])
def test_a_result_takes_the_block_of_its_own_size(alone: bool) -> None:
    calls = chain(3)
    if not alone:
        calls[-1] = OperatorCall("aten.cat", {"tensors.0": calls[-1].inputs["self"]}, (tensor(3, SIZE),))
    assert places_of(calls)[3] == (1 if alone else 3)
