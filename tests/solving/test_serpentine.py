"""Tiles of a serpentine order, against every tile, counted by a walk over its tiles."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel


def visited(q_len: int, kv_len: int, block_q: int, block_kv: int) -> int:
    """The key rows that are loaded."""
    loaded, last = 0, -1
    for number in range(-(-q_len // block_q)):
        tiles = list(range(0, kv_len, block_kv))[:: -1 if number % 2 else 1]
        loaded += sum(min(block_kv, kv_len - tile) for tile in tiles if tile != tiles[0] or tile != last)
        last = tiles[-1]
    return loaded


lengths, widths = st.integers(6, 30), st.integers(1, 5)


@example(q_len=30, kv_len=30, d=3, d_v=3, step=1, share=0.3, room=7)
@example(q_len=29, kv_len=23, d=2, d_v=5, step=2, share=0.05, room=20)
@example(q_len=22, kv_len=20, d=5, d_v=1, step=1, share=0.3, room=4)  # several outer tiles beside one inner
@given(
    lengths, lengths, widths, widths, st.sampled_from([1, 1, 2, 4]), st.sampled_from([0, 0.05, 0.3]), st.integers(0, 64)
)
def test_the_best_tile_is_that_of_an_exhaustive_search(
    q_len: int, kv_len: int, d: int, d_v: int, step: int, share: float, room: int
) -> None:
    """The memory is `room` of 64 parts of the way from the least tile to the largest."""

    def footprint(x: int, y: int) -> int:
        return x * (d + d_v + 2) + y * (d + d_v) + x * y

    least_size, most = footprint(step, step), footprint(-(-q_len // step) * step, -(-kv_len // step) * step)
    size = least_size + (most - least_size) * room // 64
    costs = {
        (x, y): (d + d_v) * (visited(q_len, kv_len, x, y) + q_len)
        for x in range(step, q_len + step, step)
        for y in range(step, kv_len + step, step)
        if footprint(x, y) <= size
    }
    least = min(costs.values())
    near = [
        (-y, cost, footprint(x, y), x)
        for (x, y), cost in costs.items()
        if 100 * cost <= round(100 + 100 * share) * least
    ]
    call = iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=d, value_dim=d_v)
    found = iomodel.solve(
        "flash2", call, sram_elements=size, alignment=step, epsilon=share, lse=False, order="serpentine"
    )
    cost = found.cost
    assert (-found.tiles["block_kv"], cost.hbm_elements, cost.footprint_elements, found.tiles["block_q"]) == min(near)
    width = call.element_size
    assert found.certificate.least_hbm_bytes == width * least
    above = min((cost for cost in costs.values() if cost > least), default=None)
    runner_up = found.certificate.runner_up
    assert (runner_up and runner_up.hbm_bytes) == (above and width * above)


def test_the_runner_up_may_have_the_trips_of_the_best() -> None:
    """Two queries over five keys: tiles of 3 and 2 keys keep 2 at the turn, tiles of 4 and 1 keep 1."""
    call = iomodel.Attention(q_len=2, kv_len=5, head_dim=1)
    found = iomodel.solve("flash2", call, sram_elements=16, min_block_kv=3, lse=False, order="serpentine")
    assert dict(found.tiles) == {"block_q": 1, "block_kv": 3}
    assert found.cost.reads["K"] == 8
    runner_up = found.certificate.runner_up
    assert runner_up is not None
    assert dict(runner_up.tiles) == {"block_q": 1, "block_kv": 4}
    assert runner_up.hbm_bytes == found.cost.hbm_bytes + 2 * 2


@pytest.mark.parametrize(
    ("length", "width", "size", "plain", "serpentine"),
    [(512, 64, 51_200, 196_608, 191_616), (8192, 128, 116_224, 41_943_040, 41_924_608)],
)
def test_what_the_order_saves(length: int, width: int, size: int, plain: int, serpentine: int) -> None:
    """2.5 % and 0.04 %: what the ceiling of the trip counts leaves of the memory."""
    call = iomodel.Attention(q_len=length, head_dim=width)
    found = [
        iomodel.solve("flash2", call, sram_elements=size, lse=False, order=order).cost.hbm_elements
        for order in ("plain", "serpentine")
    ]
    assert found == [plain, serpentine]
