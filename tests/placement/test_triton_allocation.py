"""Offsets of buffers by their lifetimes: laws, and cases by hand."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from iomodel.placement.triton_allocation import SharedBuffer, allocated
from iomodel.placement.triton_kernel import Tile, TritonKernel, backward_kernel, forward_kernel
from iomodel.placement.triton_memory import compiled_bytes
from iomodel.placement.triton_tmem import tmem_columns


@st.composite
def buffers(draw: st.DrawFn) -> list[SharedBuffer]:
    made = []
    for _ in range(draw(st.integers(0, 7))):
        start = draw(st.integers(0, 20))
        alignment = draw(st.sampled_from([1, 8, 16, 128, 1024]))
        made.append(SharedBuffer(draw(st.integers(1, 4096)), alignment, start, start + draw(st.integers(1, 10))))
    return made


@given(buffers())
@example([SharedBuffer(16, 16, 0, 9), SharedBuffer(16, 16, 2, 4), SharedBuffer(48, 16, 3, 7)])
def test_memory_holds_what_is_live_at_once_and_no_more_than_everything(made: list[SharedBuffer]) -> None:
    least = max((sum(b.size for b in made if b.meets(time, time + 1)) for time in range(31)), default=0)
    assert least <= allocated(made) <= sum(b.size + b.alignment - 1 for b in made)


@given(buffers(), st.integers(0, 30))
def test_buffers_one_after_the_other_share_memory(made: list[SharedBuffer], gap: int) -> None:
    """The second run of a program takes no more than the first."""
    later = [SharedBuffer(b.size, b.alignment, b.start + 31 + gap, b.end + 31 + gap) for b in made]
    assert allocated(made + later) >= allocated(made)
    if len({b.start for b in made}) <= 1:  # all live together from the start: nothing to rearrange
        assert allocated(made + later) <= sum(b.size + b.alignment - 1 for b in made)


def test_buffers_by_hand() -> None:
    """The second buffer takes the place of the first; a small one before an aligned one leaves a gap."""
    assert allocated([]) == 0
    assert allocated([SharedBuffer(100, 1, 0, 5), SharedBuffer(50, 1, 5, 9)]) == 100
    assert allocated([SharedBuffer(100, 1, 0, 6), SharedBuffer(50, 1, 5, 9)]) == 150
    assert allocated([SharedBuffer(100, 1, 0, 9), SharedBuffer(64, 64, 0, 9)]) == 128 + 64
    # The third comes behind the second, which its alignment has moved from 100 to 128.
    assert allocated([SharedBuffer(100, 1, 0, 9), SharedBuffer(16, 32, 0, 8), SharedBuffer(8, 1, 0, 9)]) == 128 + 16 + 8
    # A loop holds 64 B and a barrier, the next loop too; 32 B live through both and come behind the barrier.
    loops = [
        part
        for start in (1, 21)
        for part in (SharedBuffer(64, 16, start, start + 9), SharedBuffer(8, 16, start, start + 10))
    ]
    assert allocated([SharedBuffer(32, 32, 0, 30), *loops]) == 64 + 32 + 32
    assert allocated([SharedBuffer(32, 32, 0, 10), *loops[:2]]) == 64 + 32 + 8


def test_a_second_loop_moves_the_query_tile_behind_the_barriers() -> None:
    """sm_100: Q is aligned to 1,024 B and comes behind the barriers of both loops."""
    q, kv = 2 * 128 * 64, 2 * 64 * 64
    assert compiled_bytes(forward_kernel(128, 64, 64), 100, 4, 3) == q + 6 * kv + 32
    assert compiled_bytes(replace(forward_kernel(128, 64, 64), loops=2), 100, 4, 3) == q + 6 * kv + 1024
    # Rows of 64 B are swizzled over 512 B.
    assert compiled_bytes(replace(forward_kernel(128, 64, 32), loops=2), 100, 4, 3) == (q + 6 * kv) // 2 + 512


def test_programs_of_a_launch_share_memory_and_take_the_most() -> None:
    both = backward_kernel(64, 128, 64)
    alone = [TritonKernel(p.resident, p.loop, p.stored, p.loops) for p in both.programs]
    assert [len(p.programs) for p in (both, *alone)] == [2, 1, 1]
    for arch in (80, 90):
        assert compiled_bytes(both, arch, 4, 3) == max(compiled_bytes(each, arch, 4, 3) for each in alone)
    assert tmem_columns(both, 100, 4, 3) == max(tmem_columns(each, 100, 4, 3) for each in alone)


def test_columns_of_half_the_lanes_by_hand() -> None:
    """64 rows: an operand lies in the half of its accumulator, and behind what is there already."""
    # O in the first half, S in the second, P behind O.
    assert tmem_columns(forward_kernel(64, 64, 64), 100, 4, 3) == 128
    # dQ and dS fill the first half up to column 64, so that dS as an operand ends at column 80.
    by_rows = backward_kernel(32, 64, 32).branches[0]
    assert list(by_rows.stored) == [Tile("dQ", 64, 32, 2)]
    assert tmem_columns(by_rows, 100, 4, 3) == 128
