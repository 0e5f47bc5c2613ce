"""Bytes through shared memory, against warps that read what their part of a product needs, element by element."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as pairs
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from iomodel.kernels import Residency, implementation
from iomodel.nests import K, O, Q, S, V
from iomodel.timing.kernel_work import KernelWork, MatrixWork
from iomodel.timing.shared_memory import WarpLayout, shared_bytes
from iomodel.timing.work_at_point import demands
from tests.support.inside import FLASH4_BACKWARD, PIPELINED, Fragment, Reused, Shared, kind_of, structural

SCORES = frozenset({"query", "key"})

AXES = {  # the five products of attention, by what they make
    "S": ("query", "key", "depth"),
    "O": ("query", "value", "key"),
    "dP": ("query", "key", "value"),
    "dV": ("key", "value", "query"),
    "dK": ("key", "depth", "query"),
    "dQ": ("query", "depth", "key"),
}
extents = st.tuples(*[st.integers(1, 4)] * 3)
ways = st.sampled_from([1, 2, 4])


def flash2(w: iomodel.Attention, tiles: dict[str, int]) -> KernelWork:
    """What the one kernel of FlashAttention-2 that multiplies asks for."""
    every = {"lse": True, "accumulate": False, "deterministic": False, "dq_buffers": 1, "packed": False}
    names = {*algorithm("flash2").takes(w.direction), "packed"}
    options = {name: value for name, value in every.items() if name in names}
    folded = demands(algorithm("flash2"), kind_of(w), structural(options), PIPELINED)
    (found,) = (demand for demand in folded.at(w, w, options, tiles) if demand.products)
    return found


ANY = flash2(iomodel.Attention(q_len=1, head_dim=1), {"block_q": 1, "block_kv": 1})


def asks(*products: MatrixWork, staged: int = 0) -> KernelWork:
    return replace(ANY, products=products, staged=staged)


def part(size: int, ways: int, which: int) -> range:
    """Rows of one of several warps, where each takes as many."""
    return range(which * size // ways, (which + 1) * size // ways)


def read(product: MatrixWork, split: tuple[int, int, int], layout: WarpLayout) -> int:
    """Bytes of one run if the warps share out m, n and k so: every warp reads the operands of its part, one by one.

    Warps that share out k each have sums of all of the result, which they write and read back in fp32.
    """
    m, n, k = product.axes
    elements = sums = 0
    for a, b, c in pairs(*map(range, split)):
        rows, columns, depth = (
            part(size, ways, which) for size, ways, which in zip(product.extents, split, (a, b, c), strict=True)
        )
        first = {(i, j) for i in rows for j in depth} if frozenset({m, k}) not in layout.registers else set()
        second = {(i, j) for i in depth for j in columns} if frozenset({k, n}) not in layout.registers else set()
        elements += len(first) + len(second)
        sums += 2 * len(rows) * len(columns) if split[2] > 1 else 0
    return elements * layout.element_size + 4 * sums


def whole(extents: tuple[int, int, int], warps: tuple[int, int]) -> tuple[int, int, int]:
    """Extents that any split of the warps shares out evenly."""
    every = warps[0] * warps[1]
    return tuple(size * every for size in extents)  # type: ignore[return-value]


@given(
    name=st.sampled_from(["S", "dP"]), extents=extents, warps=st.tuples(ways, ways), size=st.sampled_from([1, 2, 4]),
    held=st.sets(st.sampled_from([("query", "depth"), ("key", "depth"), ("value", "query"), ("key", "value")])),
    runs=st.integers(1, 5), staged=st.integers(0, 99),
)  # fmt: skip
def test_scores_are_shared_out_as_the_warps_lie(
    name: str, extents: tuple[int, int, int], warps: tuple[int, int], size: int, held: set[Any], runs: int, staged: int
) -> None:
    product = MatrixWork(runs, AXES[name], whole(extents, warps))
    layout = WarpLayout(warps, registers=frozenset(map(frozenset, held)), element_size=size)
    expected = staged + runs * read(product, (*warps, 1), layout)
    assert shared_bytes(asks(product, staged=staged), layout) == expected


@given(name=st.sampled_from(["O", "dV", "dK", "dQ"]), extents=extents, warps=st.tuples(ways, ways), runs=ways)
def test_with_scores_in_registers_their_place_binds(
    name: str, extents: tuple[int, int, int], warps: tuple[int, int], runs: int
) -> None:
    """A warp multiplies the scores that it holds; where it holds a part of the sum, the sums meet."""
    product = MatrixWork(runs, AXES[name], whole(extents, warps))
    along = {"query": warps[0], "key": warps[1]}
    split = tuple(along.get(axis, 1) for axis in product.axes)
    layout = WarpLayout(warps, registers=frozenset({SCORES}))
    assert shared_bytes(asks(product), layout) == runs * read(product, split, layout)  # type: ignore[arg-type]


@given(name=st.sampled_from(["O", "dV", "dK", "dQ"]), extents=extents, warps=st.tuples(ways, ways), runs=ways)
def test_with_scores_in_shared_memory_any_split_may_serve(
    name: str, extents: tuple[int, int, int], warps: tuple[int, int], runs: int
) -> None:
    product = MatrixWork(runs, AXES[name], whole(extents, warps))
    every = warps[0] * warps[1]
    layout = WarpLayout(warps)
    splits = [(m, every // m, 1) for m in range(1, every + 1) if every % m == 0]
    assert shared_bytes(asks(product), layout) == runs * min(read(product, split, layout) for split in splits)


@given(extents=extents, warps=st.tuples(ways, ways), stored=st.integers(0, 2), size=st.sampled_from([1, 2]))
def test_scores_are_written_once_each(
    extents: tuple[int, int, int], warps: tuple[int, int], stored: int, size: int
) -> None:
    """The backward pass writes P where it makes S, dS where it makes dP; or dS alone."""
    products = [MatrixWork(3, AXES[name], whole(extents, warps)) for name in ("S", "dP")]
    plain, kept = (WarpLayout(warps, stored=n, element_size=size) for n in (0, stored))
    more = shared_bytes(asks(*products), kept) - shared_bytes(asks(*products), plain)
    rows, columns, _ = products[0].extents
    assert more == stored * 3 * rows * columns * size


@given(extents=extents, groups=st.integers(1, 3), held=st.booleans())
def test_warp_groups_read_together(extents: tuple[int, int, int], groups: int, held: bool) -> None:
    """Each group of four warps takes 64 rows: the columns are read once for all four."""
    rows, columns, depth = 64 * groups, extents[1], extents[2]
    product = MatrixWork(2, AXES["O"], (rows, columns, depth))
    layout = WarpLayout((groups, 1), together=True, registers=frozenset({SCORES}) if held else frozenset())
    expected = 2 * 2 * (groups * depth * columns + (0 if held else rows * depth))
    assert shared_bytes(asks(product), layout) == expected


def test_flash_attention_2_forward_by_hand() -> None:
    """128 x 128, head dimension 64, four warps over the rows: a step reads K and V four times, Q once; P is at hand."""
    w = iomodel.Attention(q_len=128, kv_len=512, head_dim=64, dtype="bf16")
    demand = flash2(w, {"block_q": 128, "block_kv": 128})
    forward = implementation("flash2", "flash-attention-2").residency["forward"][0]
    layout = WarpLayout.of(forward, (4, 1), 2)
    tile, steps = 128 * 64 * 2, 4
    staged = steps * 2 * tile  # K and V at every step; Q once a block
    assert demand.staged == staged
    assert shared_bytes(demand, layout) == staged + steps * (tile + 4 * tile + 4 * tile)
    assert shared_bytes(demand, WarpLayout.of(forward, (8, 1), 2)) == staged + steps * (tile + 8 * tile + 8 * tile)


def test_flash_attention_backward_by_hand() -> None:
    """64 x 128, head dimension 64, eight warps as 2 x 4: P and dS are written, then read by products of any split."""
    w = iomodel.Attention(q_len=64, kv_len=128, head_dim=64, dtype="fp16", direction="backward")
    demand = flash2(w, {"block_q": 64, "block_kv": 128})
    backward = implementation("flash2", "flash-attention-2").residency["backward"][0]
    layout = WarpLayout.of(backward, (2, 4), 2)
    assert (layout.stored, SCORES in layout.registers) == (2, False)
    q, kv, scores = 64 * 64 * 2, 128 * 64 * 2, 64 * 128 * 2
    made = 2 * (4 * q + 2 * kv)  # S = Q K^T and dP = dO V^T: a column of four warps reads Q, a row of two reads K
    dv = dk = min(scores * (8 // n) + q * n for n in (1, 2, 4, 8))
    dq = min(scores * (8 // n) + kv * n for n in (1, 2, 4, 8))
    assert shared_bytes(demand, layout) == demand.staged + 2 * scores + made + dv + dk + dq


def test_flash_attention_3_backward_by_hand() -> None:
    """80 x 128, head dimension 128: two warp groups make S^T and dP^T, and read Q, dO twice; P^T, dS^T are at hand."""
    w = iomodel.Attention(q_len=160, kv_len=128, head_dim=128, dtype="fp16", direction="backward")
    folded = demands(algorithm("flash3"), kind_of(w), structural({"packed": False}), PIPELINED)
    (demand,) = (one for one in folded.at(w, w, {"packed": False}, {"block_q": 80, "block_kv": 128}) if one.products)
    (backward,) = (
        one for one in implementation("flash3", "flash-attention-3").residency["backward"] if 128 in one.head_dims
    )
    layout = WarpLayout.of(backward, (1, 2), 2)
    q, kv, scores, statistics, sums = 80 * 128 * 2, 128 * 128 * 2, 80 * 128 * 2, 2 * 80 * 4, 80 * 128 * 4
    steps = 2
    assert demand.staged == steps * (2 * q + statistics)
    made = 2 * (kv + 2 * q)  # 64 keys a group
    dv = dk = 2 * q
    dq = scores + 2 * kv  # 80 queries are more than 64
    assert shared_bytes(demand, layout) == demand.staged + steps * (scores + made + dv + dk + dq + 2 * sums)


def test_flash_attention_4_backward_by_hand() -> None:
    """128 x 128, head dimension 128: an instruction takes 128 rows, P^T and dS^T lie in tensor memory but for dQ.

    A step is 3,328 clk of an SM that moves 128 B per clock, without the loads of Q and dO: more than the 2,560 of its
    five products.
    """
    w = iomodel.Attention(q_len=256, kv_len=128, head_dim=128, dtype="bf16", direction="backward")
    demand = flash2(w, {"block_q": 128, "block_kv": 128})
    (backward,) = (layout for layout in FLASH4_BACKWARD if 128 in layout.head_dims)
    layout = WarpLayout.of(backward, (2, 1), 2)
    tile, sums, steps = 128 * 128 * 2, 128 * 128 * 4, 2
    made, dv, dk, dq, kept = 4 * tile, tile, tile, 2 * tile, tile
    step = made + dv + dk + dq + kept + 2 * sums
    assert step == 3328 * 128
    assert shared_bytes(demand, layout) == demand.staged + steps * step
    narrow = replace(layout, instruction_rows=64)
    assert shared_bytes(demand, narrow) == demand.staged + steps * (step + 5 * tile)


def test_where_tiles_lie_says_what_is_read() -> None:
    """A residency names its fragments; scores that are nowhere in shared memory are at hand."""
    fused = Residency("", "", (Shared(Q), Shared(K), Shared(V)), ((Fragment(S), Fragment(O)),), 0)
    assert WarpLayout.of(fused, (4, 1), 2) == WarpLayout((4, 1), False, frozenset({SCORES}), 0, 2)
    stored = replace(fused, shared=(Shared(Q), Reused((Shared(K),), (Shared(S, dtype="io"),))), mma="warpgroup")
    assert WarpLayout.of(stored, (2, 1), 2) == WarpLayout((2, 1), True, frozenset(), 1, 2)
    held = replace(fused, phases=((Fragment(K, "io"), Fragment(S)),))
    assert WarpLayout.of(held, (1, 4), 1).registers == {SCORES, frozenset({"key", "depth"})}


@pytest.mark.parametrize("warps", [(2, 1), (1, 2), (2, 2), (8, 1)])
@given(products=st.lists(st.tuples(st.sampled_from(sorted(AXES)), extents, ways), min_size=1, max_size=4))
def test_more_warps_never_read_less(warps: tuple[int, int], products: list[tuple[str, Any, int]]) -> None:
    demand = asks(*(MatrixWork(runs, AXES[name], sizes) for name, sizes, runs in products))
    held = WarpLayout((1, 1), registers=frozenset({SCORES}))
    assert shared_bytes(demand, replace(held, warps=warps)) >= shared_bytes(demand, held)
