"""The declared orders of blocks against list schedules, and the kernels that declare them."""

from __future__ import annotations

from dataclasses import replace
from heapq import heapreplace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from iomodel.timing.balance import Grid, spread, visits


def started(visited: list[int], copies: int, section: int, descending: bool) -> list[int]:
    """Visits of the blocks in the order in which they start: sections of copies, in each tile after tile."""
    tiles = visited[::-1] if descending else visited
    order = []
    for first in range(0, copies, section):
        order += [tile for tile in tiles for _ in range(min(section, copies - first))]
    return order


def listed(lengths: list[float], slots: int) -> float:
    """The end of the last block if each starts on the first slot that is free."""
    ends = [0.0] * slots
    for length in lengths:
        heapreplace(ends, ends[0] + length)
    return max(ends)


def dealt(lengths: list[float], slots: int) -> float:
    """The end of the last of as many persistent blocks as slots, which take every so many-th tile."""
    return max(sum(lengths[slot::slots]) for slot in range(slots))


def causal(length: int, more: int, outer: str, u: int, v: int) -> list[int]:
    """Visits of the outer tiles under a causal mask, in the order of the grid."""
    tiles = range(-(-(length if outer == "query" else length + more) // u))
    if outer == "query":
        return [-(-min(length + more, more + (tile + 1) * u) // v) for tile in tiles]
    return [-(-length // v) - max(0, tile * u - more) // v for tile in tiles]


def errors(sections: list[int | None], descending: bool, outer: str, seed: int) -> np.ndarray:
    """Relative errors of the estimated ends of causal grids; None for one section of all copies."""
    rng, found = Random(seed), []
    while len(found) < 120:
        length, copies = rng.choice([512, 1000, 2048, 4096, 16384]), rng.choice([1, 4, 16, 32, 64, 128])
        units, (u, v) = rng.choice([108, 132, 264, 304]), rng.choice([(128, 64), (128, 128), (64, 128)])
        more, block = rng.choice([0, 0, 4096]), rng.choice([0.0, 0.0, 2.0])
        visited = causal(length, more, outer, u, v)
        if not units <= len(visited) * copies <= 20_000:
            continue
        section = min(copies, rng.choice(sections) or copies)
        w = iomodel.Attention(q_len=length, kv_len=length + more, head_dim=64, mask="causal")
        exact = listed([one + block for one in started(visited, copies, section, descending)], units)
        order = "descending" if descending else "grid"
        found.append(Grid(visits(w, outer, u, v), copies, units).busiest(order, section, block=block) / exact - 1)
    return np.abs(found)


@pytest.mark.parametrize("outer", ["query", "key"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sections", [[1], [2, 4, 8], [None]])
def test_most_list_schedules_are_within_a_twentieth(sections: list[int | None], descending: bool, outer: str) -> None:
    """Head after head, some heads in turn, all heads in turn: from the first tile or from the last."""
    of_seeds = np.concatenate([errors(sections, descending, outer, seed) for seed in range(2)])
    assert np.median(of_seeds) <= 0.02
    assert np.quantile(of_seeds, 0.8) <= 0.05
    assert of_seeds.max() <= 0.25


@given(
    tiles=st.integers(2, 60), copies=st.integers(1, 60), units=st.integers(1, 150), block=st.sampled_from([0.0, 3.0])
)
def test_heads_in_turn_from_the_shortest_tile_are_dealt_out_exactly(
    tiles: int, copies: int, units: int, block: float
) -> None:
    """Blocks end in the order in which they started, so that a list schedule deals them to the slots in turn."""
    w = iomodel.Attention(q_len=128 * tiles, head_dim=64, mask="causal")
    exact = listed([2 * (tile + 1) + block for tile in range(tiles) for _ in range(copies)], units)
    for counted in (visits, spread):
        found = Grid(counted(w, "query", 128, 64), copies, units).busiest("grid", copies, block=block)
        assert found == pytest.approx(exact)


@given(
    tiles=st.integers(1, 60), copies=st.integers(1, 60), units=st.integers(1, 150), block=st.sampled_from([0.0, 3.0])
)
def test_persistent_blocks_end_as_their_slots_do(tiles: int, copies: int, units: int, block: float) -> None:
    w = iomodel.Attention(q_len=128 * tiles, head_dim=64, mask="causal")
    lengths = [2 * (tile + 1) + block for tile in range(tiles)] * copies
    for counted in (visits, spread):
        found = Grid(counted(w, "query", 128, 64), copies, units).busiest("persistent", block=block)
        assert found == pytest.approx(dealt(lengths, units))


@given(
    tiles=st.integers(1, 40),
    copies=st.integers(1, 40),
    units=st.integers(1, 150),
    order=st.sampled_from(["grid", "descending", "longest first", "persistent", "paired"]),
    visit=st.sampled_from([0.0, 1.0]),
)
def test_no_order_ends_before_the_sms_have_done_all_work(
    tiles: int, copies: int, units: int, order: str, visit: float
) -> None:
    """The work of a block beside its visits is part of it."""
    w = iomodel.Attention(q_len=128 * tiles, head_dim=64, mask="causal")
    work = sum(2 * (tile + 1) * visit + 3 for tile in range(tiles)) * copies
    for counted in (visits, spread):
        end = Grid(counted(w, "query", 128, 64), copies, units).busiest(order, visit=visit, block=3.0)
        assert end >= work / units * (1 - 1e-12)


def test_lengths_and_copies_may_be_arrays() -> None:
    calls = [iomodel.Attention(q_len=length, head_dim=64, mask="causal") for length in (700, 4096, 10_000)]
    lengths = np.array([call.q_len for call in calls])
    many = calls[0].model_copy()
    rows = type("Rows", (), {"q_len": lengths, "kv_len": lengths, "group": 1, "mask": many.mask})
    copies, sections = np.array([40.0, 16.0, 8.0]), np.array([40.0, 4.0, 1.0])
    for order in ("grid", "descending", "persistent", "paired"):
        together = Grid(visits(rows, "query", 128, 64), copies, 132).busiest(order, sections)
        alone = [
            Grid(visits(call, "query", 128, 64), int(copy), 132).busiest(order, int(section))
            for call, copy, section in zip(calls, copies, sections, strict=True)
        ]
        assert np.asarray(together).tolist() == pytest.approx(alone)


CALL = iomodel.Attention(heads=24, q_len=8192, head_dim=128, mask="causal", dtype="bf16")


def timed(order: str, fastest: str = "tiles", section_bytes: int | None = None) -> float:
    """The time of FlashAttention-3 on an H100 if its blocks started in this order [s]."""
    kernels = iomodel.kernels.implementation("flash3", "flash-attention-3-2024")
    how = replace(kernels.execution["forward"], order=order, fastest=fastest, section_bytes=section_bytes)
    kernels = replace(kernels, execution={"forward": how})
    tiles = {"block_q": 128, "block_kv": 128}
    return iomodel.estimate("flash3", CALL, "h100-sxm5", tiles, implementation=kernels, packed=False).seconds


def test_the_longest_first_end_before_the_longest_last() -> None:
    """Sections of 2^3 heads of 4 MiB each: nearly as good as all blocks by their length."""
    best, sections = timed("longest first"), timed("descending", "heads of a section", 32 << 20)
    assert best <= sections <= 1.03 * best
    assert timed("grid") > 1.08 * best
    assert timed("grid", "heads") > 1.06 * best


def test_the_solver_sees_the_order() -> None:
    """Sorted blocks leave shorter tails than blocks in the order of the grid, whatever the tile."""
    found = {}
    for name in ("flash-attention-3", "flash-attention-3-2024"):
        best = iomodel.solve("flash3", CALL, "h100-sxm5", implementation=name, objective="time")
        found[name] = best.seconds
    assert found["flash-attention-3"] < found["flash-attention-3-2024"]


def test_the_kernels_declare_the_orders_of_their_sources() -> None:
    declared = {
        ("flash2", "flash-attention-2", "forward"): ("grid", "tiles", None),
        ("flash3", "flash-attention-3", "forward"): ("descending", "heads of a section", 32 << 20),
        ("flash3", "flash-attention-3", "backward"): ("grid", "heads of a section", 40 << 20),
        ("flash3", "flash-attention-3-2024", "forward"): ("grid", "tiles", None),
        ("flash2", "flash-attention-4", "forward"): ("descending", "heads of a section", 50 << 20),
        ("flash2", "ck", "forward"): ("descending", "heads", None),
        ("flash2", "aiter-assembly", "forward"): ("paired", "tiles", None),
        ("flash2", "aiter-assembly", "backward"): ("paired", "tiles", None),
        ("flash2", "triton-amd", "forward"): ("grid", "heads of a slice", None),
    }
    for (name, kernels, direction), expected in declared.items():
        own = algorithm(name).execution[direction]
        how = iomodel.kernels.implementation(name, kernels).execution.get(direction, own)
        assert (how.order, how.fastest, how.section_bytes) == expected, kernels


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"order": "shortest first"}, "order"),
        ({"fastest": "heads of a section"}, "section_bytes"),
        ({"section_bytes": 1 << 20}, "section_bytes"),
        ({"fastest": "heads of a section", "section_bytes": 0}, "section_bytes"),
    ],
)
def test_an_order_is_checked(fields: dict[str, object], field: str) -> None:
    how = algorithm("flash2").execution["forward"]
    with pytest.raises(iomodel.InputError, match=f"^{field}: "):
        replace(how, **fields)


@given(
    blocks=st.integers(1, 200),
    rows=st.sampled_from([(256, 64), (256, 32), (128, 128), (64, 64)]),
    more=st.sampled_from([0, 0, 4096]),
    copies=st.integers(1, 64),
    units=st.sampled_from([108, 256, 304]),
)
def test_paired_blocks_end_when_pairs_of_tiles_do(
    blocks: int, rows: tuple[int, int], more: int, copies: int, units: int
) -> None:
    """A block has the first tile left and the last one left; a middle tile left over is taken as a pair."""
    u, v = rows
    w = iomodel.Attention(q_len=blocks * u, kv_len=blocks * u + more, head_dim=64, mask="causal")
    visited = causal(blocks * u, more, "query", u, v)
    pairs = [visited[i] + visited[-1 - i] for i in range(blocks // 2)] + visited[blocks // 2 : -(-blocks // 2)]
    turns = -(-len(pairs) * copies // units)
    for tiles in (visits, spread):
        found = Grid(tiles(w, "query", u, v), copies, units).busiest("paired")
        assert found == pytest.approx(turns * max(pairs), rel=0.02)
