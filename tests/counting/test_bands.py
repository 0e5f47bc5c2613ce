"""The closed forms of what a mask visits, against enumeration of the mask, and the lemmas the solver rests on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iomodel.counting.bands import Tiled, Visits, query_to_key, visible_pairs
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.counting.mask_kind import CAUSAL, FULL, MaskKind
from iomodel.nests import B_c, B_r, G, N_k, N_q, W_l, W_r
from tests.support import enumeration
from tests.support.inside import Band
from tests.support.strategies import fraction_of_examples, mask_kinds

INPUTS = (N_q, N_k, B_r, B_c, G, W_l, W_r)
COUNTS = ("live_outer_tiles", "live_outer_rows", "pairs", "outer_rows", "inner_rows", "area")
TURNS = ("kept_pairs", "kept_rows")


@dataclass(frozen=True)
class Shape:
    """Two tiled axes under a mask; `by_keys` puts the keys outside, and the group lies on the queries either way."""

    kind: MaskKind
    by_keys: bool
    q_len: int
    kv_len: int
    block_q: int
    block_kv: int
    group: int = 1
    left: int = 0
    right: int = 0

    @property
    def point(self) -> tuple[int, ...]:
        return self.q_len, self.kv_len, self.block_q, self.block_kv, self.group, self.left, self.right

    def counts(self) -> dict[str, int]:
        return dict(zip(COUNTS, compiled(self.kind, self.by_keys).scalars(*self.point), strict=True))

    def first_and_last(self) -> tuple[int | None, int | None]:
        """key - query, least and greatest, from the definition of a mask."""
        offset = 0 if self.kind.top_left else self.kv_len - self.q_len
        right = 0 if self.kind.causal else self.right
        return offset - self.left if self.kind.left else None, offset + right if self.kind.right else None

    def seen(self) -> np.ndarray:
        """Which outer row sees which inner row, element by element."""
        first, last = self.first_and_last()
        distance = np.arange(self.kv_len)[None, :] - np.arange(self.q_len)[:, None]
        visible = np.ones(distance.shape, dtype=bool)
        if first is not None:
            visible &= distance >= first
        if last is not None:
            visible &= distance <= last
        rows = np.repeat(visible, self.group, axis=0)
        return rows.T if self.by_keys else rows


def visits(kind: MaskKind, by_keys: bool) -> Visits:
    band = query_to_key(kind)
    queries, keys = Tiled(N_q, B_r, G), Tiled(N_k, B_c)
    return Visits(keys, queries, band.transposed()) if by_keys else Visits(queries, keys, band)


@cache
def compiled(kind: MaskKind, by_keys: bool, counts: tuple[str, ...] = COUNTS) -> Compiled:
    found = visits(kind, by_keys)
    return Compiled([getattr(found, name) for name in counts], INPUTS)


def enumerated(shape: Shape) -> dict[str, int]:
    """The same counts by looking into every pair of tiles."""
    u, v = (shape.block_kv, shape.block_q) if shape.by_keys else (shape.block_q, shape.block_kv)
    return enumeration.enumerated(shape.seen(), u, v)


def shapes(longest: int = 24, group: int = 4, widest: int | None = None) -> st.SearchStrategy[Shape]:
    length, tile, side = st.integers(1, longest), st.integers(1, widest or longest + 4), st.integers(0, longest)
    groups = st.integers(1, group)
    return st.builds(Shape, mask_kinds, st.booleans(), length, length, tile, tile, groups, side, side)


@given(shape=shapes())
def test_visits_equal_enumeration(shape: Shape) -> None:
    assert shape.counts() == enumerated(shape)


@example(shape=Shape(MaskKind(left=True), False, 24, 24, 3, 13, left=2))  # two walks begin at a short last tile
@example(shape=Shape(MaskKind(right=True), False, 20, 20, 4, 2))  # stops that differ by several tiles
@given(shape=shapes(widest=6) | shapes())
def test_turns_of_a_serpentine_walk_equal_enumeration(shape: Shape) -> None:
    u, v = (shape.block_kv, shape.block_q) if shape.by_keys else (shape.block_q, shape.block_kv)
    found = dict(zip(TURNS, compiled(shape.kind, shape.by_keys, TURNS).scalars(*shape.point), strict=True))
    assert found == enumeration.turns(shape.seen(), u, v)


@fraction_of_examples(4)
@given(shape=shapes())
def test_integers_and_symbols_agree(shape: Shape) -> None:
    """Built on integers, the closed forms simplify on the way; the value stays."""
    values = dict(zip(INPUTS, shape.point, strict=True))
    symbolic = visits(shape.kind, shape.by_keys)
    band = Band(*(None if side is None else side.subs(values) for side in (symbolic.band.first, symbolic.band.last)))
    outer, inner = (
        Tiled(*(value.subs(values) for value in (axis.length, axis.tile, axis.group)))
        for axis in (symbolic.outer, symbolic.inner)
    )
    found = Visits(outer, inner, band)
    assert {name: int(getattr(found, name)) for name in COUNTS} == shape.counts()
    turns = compiled(shape.kind, shape.by_keys, TURNS).scalars(*shape.point)
    assert [int(getattr(found, name)) for name in TURNS] == list(turns)


@given(shape=shapes(group=1))
def test_visible_pairs_equal_enumeration(shape: Shape) -> None:
    band = query_to_key(shape.kind)
    pairs = visible_pairs(band, Tiled(N_q), Tiled(N_k)).subs(dict(zip(INPUTS, shape.point, strict=True)))
    assert pairs == np.count_nonzero(shape.seen())


def outer_tile(shape: Shape, times: int) -> Shape:
    name = "block_kv" if shape.by_keys else "block_q"
    return Shape(**{**vars(shape), name: times * getattr(shape, name)})


def inner_tile(shape: Shape, times: int) -> Shape:
    name = "block_q" if shape.by_keys else "block_kv"
    return Shape(**{**vars(shape), name: times * getattr(shape, name)})


@given(shape=shapes(longest=10**6), times=st.integers(1, 20))
def test_merging_outer_tiles_never_streams_more(shape: Shape, times: int) -> None:
    """Lemma 3: the merged tile visits the union of what its parts visit."""
    assert outer_tile(shape, times).counts()["inner_rows"] <= shape.counts()["inner_rows"]


@given(shape=shapes(longest=10**6), times=st.integers(1, 20))
def test_merging_inner_tiles_never_streams_less(shape: Shape, times: int) -> None:
    """Lemma 4: a visited inner tile lies inside a visited merged one."""
    assert inner_tile(shape, times).counts()["inner_rows"] >= shape.counts()["inner_rows"]


@given(shape=shapes(longest=10**12))
def test_both_orders_visit_the_same_pairs(shape: Shape) -> None:
    one, other = shape.counts(), Shape(**{**vars(shape), "by_keys": not shape.by_keys}).counts()
    assert (one["pairs"], one["area"]) == (other["pairs"], other["area"])
    assert (one["outer_rows"], one["inner_rows"]) == (other["inner_rows"], other["outer_rows"])


@given(shape=shapes(group=1), scale=st.integers(1, 10**12))
def test_scaling_everything_scales_the_counts(shape: Shape, scale: int) -> None:
    """A position becomes `scale` positions: the same tiles are visited, each `scale` times as long and as wide."""
    sizes = {name: getattr(shape, name) * scale for name in ("q_len", "kv_len", "block_q", "block_kv", "left", "right")}
    small, large = shape.counts(), Shape(**{**vars(shape), **sizes}).counts()
    powers = {"live_outer_tiles": 0, "pairs": 0, "live_outer_rows": 1, "outer_rows": 1, "inner_rows": 1, "area": 2}
    assert large == {name: small[name] * scale**power for name, power in powers.items()}


@given(shape=shapes(longest=10**12, group=1), group=st.integers(1, 8))
def test_whole_packed_queries_are_queries(shape: Shape, group: int) -> None:
    """Where a tile holds whole groups, packing multiplies its rows and nothing else."""
    packed = Shape(**{**vars(shape), "group": group, "block_q": shape.block_q * group}).counts()
    plain = shape.counts()
    assert packed["pairs"] == plain["pairs"]
    assert packed["area"] == group * plain["area"]
    streamed = "outer_rows" if shape.by_keys else "inner_rows"
    assert packed[streamed] == plain[streamed]


def by_intervals(shape: Shape) -> dict[str, int]:
    """Enumeration for longer axes: what a row sees is an interval, so a tile visits what its extremes span."""
    first, last = shape.first_and_last()
    query = np.arange(shape.q_len * shape.group) // shape.group
    low = np.zeros_like(query) if first is None else np.maximum(0, query + first)
    high = np.full_like(query, shape.kv_len - 1) if last is None else np.minimum(shape.kv_len - 1, query + last)
    found = dict.fromkeys(COUNTS, 0)
    for i in range(0, len(query), shape.block_q):
        tile = slice(i, i + shape.block_q)
        seeing = low[tile] <= high[tile]
        if not seeing.any():
            continue
        rows = len(seeing)
        start = low[tile][seeing].min() // shape.block_kv
        stop = high[tile][seeing].max() // shape.block_kv + 1
        columns = int(min(shape.kv_len, stop * shape.block_kv) - start * shape.block_kv)
        found["live_outer_tiles"] += 1
        found["live_outer_rows"] += rows
        found["pairs"] += int(stop - start)
        found["outer_rows"] += rows * int(stop - start)
        found["inner_rows"] += columns
        found["area"] += rows * columns
    return found


@fraction_of_examples(4)
@given(shape=shapes(longest=5000).map(lambda shape: Shape(**{**vars(shape), "by_keys": False})))
def test_visits_equal_enumeration_at_length(shape: Shape) -> None:
    assert shape.counts() == by_intervals(shape)


@given(shape=shapes().map(lambda shape: Shape(**{**vars(shape), "by_keys": False})))
def test_the_two_enumerations_agree(shape: Shape) -> None:
    assert by_intervals(shape) == enumerated(shape)


@given(shape=shapes(longest=10**12).map(lambda shape: Shape(**{**vars(shape), "kind": FULL})))
def test_full_masks_visit_everything(shape: Shape) -> None:
    queries, keys = shape.q_len * shape.group, shape.kv_len
    tiles_q, tiles_k = -(-queries // shape.block_q), -(-keys // shape.block_kv)
    outer, inner = (keys, queries) if shape.by_keys else (queries, keys)
    outer_tiles, inner_tiles = (tiles_k, tiles_q) if shape.by_keys else (tiles_q, tiles_k)
    assert shape.counts() == {
        "live_outer_tiles": outer_tiles,
        "live_outer_rows": outer,
        "pairs": outer_tiles * inner_tiles,
        "outer_rows": outer * inner_tiles,
        "inner_rows": inner * outer_tiles,
        "area": outer * inner,
    }


@given(st.integers(1, 10**12), st.integers(1, 10**6), st.integers(1, 100))
def test_causal_with_key_tiles_that_divide_query_tiles(length: int, block_kv: int, times: int) -> None:
    """V = B_r T_r (T_r - 1) / 2 + N where B_c divides B_r, whether or not they divide N."""
    block_q = times * block_kv
    tiles = -(-length // block_q)
    shape = Shape(CAUSAL, False, length, length, block_q, block_kv)
    assert shape.counts()["inner_rows"] == block_q * tiles * (tiles - 1) // 2 + length


@given(st.integers(1, 10**12), st.integers(1, 10**6), st.integers(1, 100))
def test_causal_with_query_tiles_that_divide_key_tiles(length: int, block_q: int, times: int) -> None:
    """V = m B_c T_c (T_c - 1) / 2 + (T_r - m (T_c - 1)) N where B_c = m B_r."""
    block_kv = times * block_q
    tiles_q, tiles_k = -(-length // block_q), -(-length // block_kv)
    shape = Shape(CAUSAL, False, length, length, block_q, block_kv)
    expected = times * block_kv * tiles_k * (tiles_k - 1) // 2 + (tiles_q - times * (tiles_k - 1)) * length
    assert shape.counts()["inner_rows"] == expected


@pytest.mark.parametrize("tiles", [((2, 1), 6, (3, 1), 7), ((3, 2), 8, (3, 3), 7)])
def test_larger_tiles_may_stream_more(tiles: tuple[tuple[int, int], int, tuple[int, int], int]) -> None:
    """Lemma 5, at N = 4: only multiples are ordered, so a solver may not search by bisection."""
    small, at_small, large, at_large = tiles
    assert Shape(CAUSAL, False, 4, 4, *small).counts()["inner_rows"] == at_small
    assert Shape(CAUSAL, False, 4, 4, *large).counts()["inner_rows"] == at_large
