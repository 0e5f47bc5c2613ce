"""Masks given by data: their counts against enumeration of the mask, at any length; values, laws and errors."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import Attention, InputError, IOModelError
from iomodel.nests import B_c, B_r, G, N_k, N_q
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.masks.tabulated import Axis, Tabulated, TileCounts, exact
from tests.support.inside import CAUSAL, Compiled, Tiled, Visits, query_to_key

AXES: tuple[Axis, Axis] = ("query", "key")


@dataclass(frozen=True)
class Shape:
    """A mask over lengths that it is made for, and how they are cut into tiles."""

    mask: Tabulated
    q_len: int
    kv_len: int
    outer: Axis
    u: int
    v: int
    group: int

    def counts(self) -> TileCounts:
        return self.mask.tiles(self.outer, self.u, self.v, self.q_len, self.kv_len, self.group)

    def exchanged(self) -> Shape:
        other: Axis = "key" if self.outer == "query" else "query"
        return replace(self, outer=other, u=self.v, v=self.u)


def by_definition(mask: Tabulated, q_len: int, kv_len: int) -> np.ndarray:
    """Which query sees which key, one element at a time."""
    found = np.zeros((q_len, kv_len), dtype=bool)
    for i, j in np.ndindex(q_len, kv_len):
        if isinstance(mask, BlockMask):
            found[i, j] = mask.blocks[i // mask.block_q][j // mask.block_kv]
        elif isinstance(mask, Documents):
            of = [document for document, n in enumerate(mask.lengths) for _ in range(n)]
            found[i, j] = of[i] == of[j] and (j <= i or not mask.causal)
    return found


def enumerated(seen: np.ndarray, u: int, v: int) -> TileCounts:
    """The counts by looking into every pair of tiles."""
    pairs = inner_rows = outer_rows = area = live_tiles = live_rows = 0
    for i in range(0, seen.shape[0], u):
        strip = seen[i : i + u]
        live_tiles += int(strip.any())
        live_rows += len(strip) * int(strip.any())
        for j in range(0, seen.shape[1], v):
            tile = strip[:, j : j + v]
            if tile.any():
                pairs += 1
                outer_rows += tile.shape[0]
                inner_rows += tile.shape[1]
                area += tile.size
    return TileCounts(pairs, inner_rows, outer_rows, area, live_tiles, live_rows)


@st.composite
def tables(draw: st.DrawFn, longest: int = 20) -> tuple[BlockMask, int, int]:
    q_len, kv_len = draw(st.integers(1, longest)), draw(st.integers(1, longest))
    block_q, block_kv = draw(st.integers(1, longest + 2)), draw(st.integers(1, longest + 2))
    shape = -(-q_len // block_q), -(-kv_len // block_kv)
    live = draw(st.sampled_from([0.05, 0.3, 0.8, 1.0]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return BlockMask(random.random(shape) < live, block_q, block_kv), q_len, kv_len


def documents(most: int = 6, longest: int = 12) -> st.SearchStrategy[tuple[Documents, int, int]]:
    lengths = st.lists(st.integers(1, longest), min_size=1, max_size=most)
    return st.builds(Documents, lengths, st.booleans()).map(lambda mask: (mask, mask.total, mask.total))


@st.composite
def shapes(draw: st.DrawFn, of: st.SearchStrategy[Any] | None = None, longest: int = 24, group: int = 3) -> Shape:
    tile = st.integers(1, longest) | st.integers(1, 4)
    mask = draw(of if of is not None else tables() | documents())
    return Shape(*mask, draw(st.sampled_from(AXES)), draw(tile), draw(tile), draw(st.integers(1, group)))


@given(shape=shapes())
def test_counts_equal_enumeration(shape: Shape) -> None:
    seen = np.repeat(by_definition(shape.mask, shape.q_len, shape.kv_len), shape.group, axis=0)
    found = shape.counts()
    assert found == enumerated(seen if shape.outer == "query" else seen.T, shape.u, shape.v)
    assert {type(number) for number in found} == {int}


@given(shape=shapes())
def test_elements_equal_the_definition(shape: Shape) -> None:
    expected = by_definition(shape.mask, shape.q_len, shape.kv_len)
    seen = shape.mask.seen(shape.q_len, shape.kv_len)
    assert seen.dtype == bool
    assert np.array_equal(seen, expected)
    assert shape.mask.visible_pairs(shape.q_len, shape.kv_len) == np.count_nonzero(expected)


@given(shape=shapes(documents(30, 40), longest=300))
def test_documents_are_a_table_of_their_elements(shape: Shape) -> None:
    """Two ways of counting that share no step beyond the runs, at sizes too long to enumerate."""
    table = BlockMask(shape.mask.seen(shape.q_len, shape.kv_len), 1, 1)
    assert shape.counts() == replace(shape, mask=table).counts()


@pytest.mark.parametrize("blocks", [63, 64, 65, 130])
def test_tables_wider_than_a_word_of_bits(blocks: int) -> None:
    table = np.random.default_rng(blocks).random((blocks, 200 - blocks)) < 0.05
    mask, q_len, kv_len = BlockMask(table, 3, 2), 3 * blocks - 1, 2 * (200 - blocks)
    seen = np.repeat(mask.seen(q_len, kv_len), 2, axis=0)
    for u, v in [(1, 1), (6, 2), (7, 5), (100, 3), (3, 150)]:
        assert mask.tiles("query", u, v, q_len, kv_len, 2) == enumerated(seen, u, v)
        assert mask.tiles("key", v, u, q_len, kv_len, 2) == enumerated(seen.T, v, u)


def test_tables_of_more_rows_than_are_transposed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = BlockMask(np.random.default_rng(0).random((300, 40)) < 0.02, 2, 2)
    whole = mask.tiles("query", 3, 5, 600, 80)
    monkeypatch.setattr("iomodel.workloads.masks.block_mask._BATCH", 64)
    assert copy.copy(mask).tiles("key", 5, 3, 600, 80).area == whole.area
    assert BlockMask(mask.blocks, 2, 2).tiles("query", 3, 5, 600, 80) == whole


# The lemmas of tests/counting/test_bands.py hold for any mask.
@given(shape=shapes(), times=st.integers(1, 20))
def test_merging_outer_tiles_never_streams_more(shape: Shape, times: int) -> None:
    assert replace(shape, u=times * shape.u).counts().inner_rows <= shape.counts().inner_rows


@given(shape=shapes(), times=st.integers(1, 20))
def test_merging_inner_tiles_never_streams_less(shape: Shape, times: int) -> None:
    assert replace(shape, v=times * shape.v).counts().inner_rows >= shape.counts().inner_rows


@given(shape=shapes())
def test_both_orders_visit_the_same_pairs(shape: Shape) -> None:
    one, other = shape.counts(), shape.exchanged().counts()
    assert (one.pairs, one.area) == (other.pairs, other.area)
    assert (one.outer_rows, one.inner_rows) == (other.inner_rows, other.outer_rows)


def test_a_call_is_as_long_as_its_documents() -> None:
    mask = Documents([512, 1024])
    assert Attention(head_dim=64, mask=mask) == Attention(q_len=1536, head_dim=64, mask=mask)
    with pytest.raises(InputError, match="q_len"):
        Attention(head_dim=64, mask="causal")


def scaled_documents(mask: Documents, scale: int) -> Documents:
    return Documents([n * scale for n in mask.lengths], mask.causal)


def scaled(shape: Shape, scale: int) -> Shape:
    """Each position becomes `scale` positions."""
    fields = {name: getattr(shape, name) * scale for name in ("q_len", "kv_len", "u", "v")}
    if isinstance(shape.mask, BlockMask):
        mask: Tabulated = BlockMask(shape.mask.blocks, shape.mask.block_q * scale, shape.mask.block_kv * scale)
    else:
        assert isinstance(shape.mask, Documents)
        mask = scaled_documents(shape.mask, scale)
    return replace(shape, mask=mask, **fields)


@given(shape=shapes(group=1), scale=st.integers(2, 20) | st.integers(10**15, 10**16))
def test_scaling_everything_scales_the_counts(shape: Shape, scale: int) -> None:
    """The same tiles are visited, each `scale` times as long and as wide."""
    small, large = shape.counts(), scaled(shape, scale).counts()
    powers = TileCounts(pairs=0, inner_rows=1, outer_rows=1, area=2, live_outer_tiles=0, live_outer_rows=1)
    assert large == tuple(n * scale**power for n, power in zip(small, powers, strict=True))


far = documents(4, 10**6).map(lambda drawn: (d := scaled_documents(drawn[0], 10**11), d.total, d.total))


@given(shape=shapes(tables() | documents(), group=8) | shapes(far, longest=10**17, group=8))
def test_whole_packed_queries_are_queries(shape: Shape) -> None:
    """Where a tile holds whole groups, packing multiplies its rows and nothing else."""
    queries_outside = shape.outer == "query"
    tile = {"u": shape.u * shape.group} if queries_outside else {"v": shape.v * shape.group}
    plain, packed = replace(shape, group=1).counts(), replace(shape, **tile).counts()
    assert (packed.pairs, packed.area) == (plain.pairs, plain.area * shape.group)
    streamed = "inner_rows" if queries_outside else "outer_rows"
    assert getattr(packed, streamed) == getattr(plain, streamed)


COUNTS = TileCounts._fields


@cache
def causal(by_keys: bool) -> Compiled:
    """The closed forms of the causal band."""
    queries, keys, band = Tiled(N_q, B_r, G), Tiled(N_k, B_c), query_to_key(CAUSAL)
    visits = Visits(keys, queries, band.transposed()) if by_keys else Visits(queries, keys, band)
    return Compiled([getattr(visits, name) for name in COUNTS], (N_q, N_k, B_r, B_c, G))


lengths = st.integers(1, 50) | st.integers(10**11, 10**12)


@given(lengths, lengths, lengths, st.integers(1, 8), st.sampled_from(AXES))
def test_one_causal_document_is_the_causal_band(length: int, u: int, v: int, group: int, outer: Axis) -> None:
    block_q, block_kv = (u, v) if outer == "query" else (v, u)
    expected = causal(outer == "key").scalars(length, length, block_q, block_kv, group)
    assert Documents([length], causal=True).tiles(outer, u, v, length, length, group) == expected


FAR: list[tuple[int, int, int, int]] = [  # each is beyond int64 in something else
    (10**18, 10**18, 3, 10**6),  # rows
    (10**18, 3, 2, 1),  # pairs of tiles
    (2, 1, 10**18, 10**18),  # the rows of a key tile's queries
]


@pytest.mark.parametrize(("length", "block_q", "block_kv", "group"), FAR)
@pytest.mark.parametrize("outer", AXES)
def test_no_length_is_too_long(outer: Axis, length: int, block_q: int, block_kv: int, group: int) -> None:
    u, v = (block_q, block_kv) if outer == "query" else (block_kv, block_q)
    band = causal(outer == "key").scalars(length, length, block_q, block_kv, group)
    assert Documents([length], causal=True).tiles(outer, u, v, length, length, group) == band
    full = BlockMask([[1]], length, length).tiles(outer, u, v, length, length, group)
    assert Documents([length]).tiles(outer, u, v, length, length, group) == full
    assert full.area == length**2 * group


def test_a_table_of_blocks_too_long_for_int64() -> None:
    """Each half of the queries sees its own half of the keys; the rows of the queries are 10^24."""
    half, group = 5 * 10**17, 10**6
    found = BlockMask([[1, 0], [0, 1]], half, half).tiles("query", 10**18, half, 2 * half, 2 * half, group)
    tiles = 10**6
    assert found == (tiles, tiles * half, 10**24, half * 10**24, tiles, 10**24)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(1, 10**12))
def test_documents_of_whole_tiles_add_up(tiles: list[int], block: int) -> None:
    """Documents that are cut at tiles do not touch each other: the counts are those of each one alone."""
    mask = Documents([n * block for n in tiles], causal=True)
    found = mask.tiles("query", block, block, mask.total, mask.total)
    assert found.pairs == sum(n * (n + 1) // 2 for n in tiles)
    assert found.area == found.pairs * block**2


@given(lengths, lengths, lengths, lengths, st.integers(1, 10**9))
def test_a_table_of_ones_sees_everything(q_len: int, kv_len: int, u: int, v: int, group: int) -> None:
    mask = BlockMask([[True]], q_len, kv_len)
    rows = q_len * group
    tiles_q, tiles_k = -(-rows // u), -(-kv_len // v)
    expected = tiles_q * tiles_k, kv_len * tiles_q, rows * tiles_k, rows * kv_len, tiles_q, rows
    assert mask.tiles("query", u, v, q_len, kv_len, group) == expected


def test_an_empty_table_sees_nothing() -> None:
    assert BlockMask(np.zeros((2, 3), dtype=bool), 4, 4).tiles("key", 3, 5, 8, 12) == (0,) * 6


def test_a_table_by_hand() -> None:
    """Tiles of 3 queries and 4 keys over 2 x 2 blocks of 4: rows 0-2, 3-5, 6 and keys 0-3, 4-6."""
    mask = BlockMask([[1, 0], [0, 1]], 4, 4)
    found = mask.tiles("query", 3, 4, 7, 7)
    assert found == TileCounts(4, 4 + 7 + 3, 3 + 2 * 3 + 1, 3 * 4 + 3 * 7 + 1 * 3, 3, 7)
    assert mask.visible_pairs(7, 7) == 16 + 9


TABLE = [[True, False, True], [False, False, True]]
VALUES: list[Callable[[], Tabulated]] = [
    lambda: BlockMask(TABLE, 4, 2),
    lambda: Documents([3, 5], causal=True),
    lambda: Documents(np.array([3, 5]), False),
]


@pytest.mark.parametrize("build", VALUES)
def test_values_are_frozen_hashable_picklable_and_json(build: Callable[[], Tabulated]) -> None:
    mask = build()
    mask.tiles("query", 2, 2, 8, 6 if isinstance(mask, BlockMask) else 8)
    plain = json.loads(json.dumps(mask.to_dict()))
    again = [build(), type(mask)(**plain), pickle.loads(pickle.dumps(mask)), copy.deepcopy(mask), mask.model_copy()]
    assert [other == mask and hash(other) == hash(mask) for other in again] == [True] * 5
    assert {mask: 1}[build()] == 1
    with pytest.raises(ValueError, match="frozen"):
        setattr(mask, next(iter(plain)), 1)


@pytest.mark.parametrize("bounds", [(1, 2**62), (2**62, 1), (2**63,), (1, 2**62 - 1)])
def test_numbers_hold_the_largest_of_their_bounds(bounds: tuple[int, ...]) -> None:
    found = exact(np.arange(3), *bounds)
    assert [n + max(bounds) for n in found] == [n + max(bounds) for n in range(3)]
    assert (found.dtype == object) == (max(bounds) >= 2**62)


def test_different_data_are_different_masks() -> None:
    base = BlockMask(TABLE, 4, 2)
    others = [BlockMask(TABLE[::-1], 4, 2), BlockMask(TABLE, 2, 2), BlockMask(TABLE, 4, 3), Documents([3]), 7]
    assert base not in others
    assert BlockMask([[0, 0]], 1, 1) != BlockMask([[0], [0]], 1, 1)
    assert Documents([3, 5]) != Documents([5, 3])
    assert Documents([3, 5]) != Documents([3, 5], causal=True)


def test_a_table_is_a_copy_that_nobody_can_write_to() -> None:
    given_table = np.array(TABLE)
    mask = BlockMask(given_table, 4, 2)
    given_table[:] = False
    assert mask.blocks.tolist() == TABLE
    for held in (mask, pickle.loads(pickle.dumps(mask)), copy.deepcopy(mask)):
        with pytest.raises(ValueError, match="WRITEABLE"):
            held.blocks.flags.writeable = True


def test_reprs_are_short() -> None:
    assert repr(BlockMask(TABLE, 4, 2)) == "BlockMask(blocks=<2 x 3, 3 live>, block_q=4, block_kv=2)"
    assert repr(Documents([3, 5])) == "Documents(lengths=(3, 5), causal=False)"
    assert repr(Documents([2] * 8)) == "Documents(lengths=(2, 2, 2, 2, 2, 2, 2, 2), causal=False)"
    assert str(Documents([2] * 9, True)) == "Documents(lengths=<9 documents, 18 positions>, causal=True)"


def test_counts_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iomodel.workloads.masks.tabulated._REMEMBERED", 3)
    mask = Documents([30, 20])
    found = [mask.tiles("query", u, 4, 50, 50) for u in range(1, 9)]
    assert len(mask._known) <= 3
    assert found == [Documents([30, 20]).tiles("query", u, 4, 50, 50) for u in range(1, 9)]


GOOD = BlockMask(TABLE, 4, 2)
BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: BlockMask([[1, 2]], 1, 1), "blocks: 2 given in [0, 1]; allowed: a 2-D table of True and False"),
    (lambda: BlockMask([[0, -1]], 1, 1), "blocks: -1 given in [0, 1]; "),
    (lambda: BlockMask([[0.0, 1.0]], 1, 1), "blocks: entries of type float64 given; "),
    (lambda: BlockMask([["True"]], 1, 1), "blocks: entries of type <U4 given; "),
    (lambda: BlockMask([[None]], 1, 1), "blocks: entries of type object given; "),
    (lambda: BlockMask([[1, 0], [1]], 1, 1), "blocks: [[1, 0], [1]] is not an array; "),
    (lambda: BlockMask([True], 1, 1), "blocks: shape (1,) given; "),
    (lambda: BlockMask([[]], 1, 1), "blocks: shape (1, 0) given; "),
    (lambda: BlockMask("causal", 1, 1), "blocks: shape () given; "),
    (lambda: BlockMask(TABLE, 0, 1), "block_q: 0 given; allowed: at least 1"),
    (lambda: BlockMask(TABLE, 1, 2.5), "block_kv: 2.5 given; allowed: an integer"),
    (lambda: BlockMask(TABLE, 1), "block_kv: not given, but required"),
    (lambda: BlockMask(TABLE, 1, 1, 1), "BlockMask: 4 values given; allowed: 3 (blocks, block_q, block_kv)"),
    (lambda: BlockMask(TABLE, 1, 1, causal=True), "causal: True given for an unknown field"),
    (lambda: GOOD.check(9, 6), "mask: blocks of shape (2, 3) given; allowed: shape (3, 3), for q_len = 9 in blocks"),
    (lambda: GOOD.seen(8, 7), "mask: blocks of shape (2, 3) given; allowed: shape (2, 4), "),
    (lambda: GOOD.visible_pairs(4, 6), "mask: blocks of shape (2, 3) given; allowed: shape (1, 3), "),
    (lambda: GOOD.model_copy(update={"block_q": 0}), "block_q: "),
    (lambda: GOOD.tiles("keys", 1, 1, 8, 6), "outer: 'keys' is unknown; did you mean 'key'? allowed: query, key"),
    (lambda: GOOD.tiles("key", 0, 1, 8, 6), "u: 0 given; allowed: an integer from 1 to "),
    (lambda: GOOD.tiles("key", 1, True, 8, 6), "v: True given; "),
    (lambda: GOOD.tiles("key", 1, 1, 8, 6, 1.5), "group: 1.5 given; "),
    (lambda: GOOD.tiles("key", 1, 1, 8, 8), "mask: blocks of shape (2, 3) given; "),
    (lambda: Documents([]), "lengths: [] given; allowed: the length of each document, such as [3, 5]"),
    (lambda: Documents(8), "lengths: 8 given; "),
    (lambda: Documents("35"), "lengths: '35' given; "),
    (lambda: Documents({3, 5}), "lengths: {3, 5} given; "),
    (lambda: Documents(np.array(3)), "lengths: array(3) given; "),
    (lambda: Documents(np.ones((2, 2), dtype=int)), "lengths: document 0: [1, 1] given; "),
    (lambda: Documents([3, 0]), "lengths: document 1: 0 given; allowed: an integer from 1 to "),
    (lambda: Documents([3, 2.0]), "lengths: document 1: 2.0 given; "),
    (lambda: Documents([10**18, 1]), "lengths: a sum of 1000000000000000001 given; "),
    (lambda: Documents([3], causal="yes"), "causal: 'yes' given; allowed: True or False"),
    (lambda: Documents([3, 5]).check(8, 9), "mask: documents of 8 positions given for q_len = 8 and kv_len = 9; "),
    (lambda: Documents([3, 5]).check(7, 7), "allowed: three equal numbers, such as q_len = kv_len = 8"),
]


@pytest.mark.parametrize(("call", "says"), BAD, ids=[says[:50] for _, says in BAD])
def test_bad_input_is_named_in_one_line(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(IOModelError) as caught:
        call()
    message = str(caught.value)
    assert says in message
    assert "\n" not in message


junk = st.sampled_from([None, True, 0, 2.5, float("nan"), "", b"x", (), [1], {}, [[1, [2]]], object(), [10**30]])
BUILD: dict[str, Callable[[Any], Any]] = {
    "blocks": lambda x: BlockMask(x, 1, 1),
    "block_q": lambda x: BlockMask(TABLE, x, 1),
    "lengths": Documents,
    "causal": lambda x: Documents([3], x),
}


@given(value=junk | st.text(max_size=3) | st.lists(st.integers() | st.floats(), max_size=3))
@pytest.mark.parametrize("build", BUILD.values(), ids=list(BUILD))
def test_junk_is_answered_or_refused_in_one_line(build: Callable[[Any], Any], value: Any) -> None:
    try:
        build(value)
    except InputError as error:
        message = str(error)
    else:
        return
    assert "\n" not in message
    assert ": " in message
