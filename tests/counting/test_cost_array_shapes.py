"""Arrays of any shape, make and magnitude: chunks leave no seam, nothing wraps or is rounded, nothing is shared."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.counting.cost_array import cost_array
from tests.support.array_calls import COUNTS, laid_out, same, whole
from tests.support.strategies import fraction_of_examples

TILES = {"block_q": 64, "block_kv": 32}
LENGTHS = np.random.default_rng(3).integers(1, 3000, (4, 5))


# Shapes.


def test_scalars_make_one_answer() -> None:
    for one in (70, np.int64(70), np.array(70), np.uint8(70)):
        found = same("flash2", {"q_len": one, "head_dim": 8, "mask": "causal", **TILES})
        assert found.shape == ()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("mask", ["full", "causal", iomodel.Window(left=3, right=3)], ids=str)
def test_no_points_give_no_values(shape: tuple[int, ...], mask: Any) -> None:
    found = cost_array("flash2", q_len=np.zeros(shape, dtype=np.int64), head_dim=8, mask=mask, **TILES)
    assert found.shape == shape
    for quantity in COUNTS:
        assert getattr(found, quantity).shape == shape
        assert getattr(found, quantity).dtype == np.int64
    assert found.reads["K"].shape == found.writes["O"].shape == found.intensity.shape == shape


def test_one_axis_of_none_empties_all() -> None:
    found = cost_array("flash2", q_len=np.ones((4, 1), dtype=int), head_dim=np.ones((0,), dtype=int), **TILES)
    assert found.shape == found.hbm_bytes.shape == (4, 0)


def test_axes_broadcast() -> None:
    q_len, kv_len = np.array([[3], [70]]), np.array([1, 64, 65])
    block_q = np.array([16, 64, 128, 1]).reshape(4, 1, 1)
    found = same("flash2", {"q_len": q_len, "kv_len": kv_len, "head_dim": 8, "block_q": block_q, "block_kv": 16})
    assert found.shape == (4, 2, 3)


@pytest.mark.parametrize("way", range(7))
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_any_order_of_memory(way: int, mask: str) -> None:
    plain = cost_array("flash2", q_len=LENGTHS, head_dim=8, mask=mask, **TILES)
    given_as = laid_out(LENGTHS, way)
    found = cost_array("flash2", q_len=given_as, head_dim=8, mask=mask, **TILES)
    for quantity in COUNTS:
        assert np.array_equal(getattr(found, quantity), getattr(plain, quantity))
    turned = cost_array("flash2", q_len=LENGTHS.T, head_dim=8, mask=mask, **TILES)
    assert np.array_equal(turned.hbm_bytes.T, plain.hbm_bytes)


def test_memory_that_nobody_may_write_to() -> None:
    still = LENGTHS.copy()
    still.setflags(write=False)
    found = cost_array("flash2", q_len=still, kv_len=np.broadcast_to(np.int64(7), (4, 5)), head_dim=8, **TILES)
    assert found.hbm_bytes.shape == (4, 5)


SMALL = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, object, ">i4", np.longlong]


@pytest.mark.parametrize("make", SMALL, ids=str)
def test_integers_of_any_width(make: Any) -> None:
    # A narrow integer must not be computed with as such: 127 x 127 is beyond int8.
    columns = {"q_len": [127, 100, 1], "kv_len": [100, 127, 1], "heads": [120, 127, 64], "kv_heads": [60, 127, 1]}
    columns |= {"head_dim": [127, 64, 96], "block_q": [127, 1, 5], "block_kv": [64, 100, 127], "batch": [127, 99, 1]}
    for mask in ("full", "causal"):
        same("flash2", {**{name: np.array(column, dtype=make) for name, column in columns.items()}, "mask": mask})


def test_makes_may_be_mixed() -> None:
    q_len, kv_len = np.array([200, 100], dtype=np.uint8), np.array([[300], [70]], dtype=np.int16)
    point = {"q_len": q_len, "kv_len": kv_len, "head_dim": np.uint64(64), "block_q": [64, 16]}
    same("flash2", {**point, "block_kv": np.array([7, 9], dtype=np.uint64), "mask": "causal"})


# Chunks.

EDGES = sorted({2**k + i for k in (10, 11, 12, 13, 14, 15, 16) for i in (-1, 0, 1)} | {16385, 40000})


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("size", EDGES)
def test_a_long_array_is_its_pieces(size: int, mask: str) -> None:
    q_len = np.random.default_rng(size).integers(1, 10**5, size)
    kv_len = q_len[::-1]
    found = cost_array("flash2", q_len=q_len, kv_len=kv_len, head_dim=64, mask=mask, **TILES)
    cuts = [0, 1, 700, size - 1, size]
    pieces = [
        cost_array("flash2", q_len=q_len[i:j], kv_len=kv_len[i:j], head_dim=64, mask=mask, **TILES)
        for i, j in pairwise(cuts)
    ]
    for quantity in ("hbm_bytes", "flops", "exps"):
        assert np.array_equal(getattr(found, quantity), np.concatenate([getattr(part, quantity) for part in pieces]))
    same("flash2", {"q_len": q_len[-3:], "kv_len": kv_len[-3:], "head_dim": 64, "mask": mask, **TILES})


@pytest.mark.parametrize("shape", [(3, 8193), (8193, 3), (3, 1, 8191), (91, 91), (2, 8192), (16385, 1)])
def test_a_table_is_its_rows(shape: tuple[int, ...]) -> None:
    q_len = np.random.default_rng(0).integers(1, 10**4, shape)
    kv_len = q_len.ravel()[: shape[-1]]  # the same for every row
    head_dim = 8 * np.arange(1, shape[0] + 1).reshape(-1, *[1] * (len(shape) - 1))  # the same along a row
    point = {"mask": "causal", "block_q": 16, "block_kv": np.array(64)}
    for order in ("C", "F"):
        table = np.array(q_len, order=order)  # type: ignore[call-overload]
        found = cost_array("flash2", q_len=table, kv_len=kv_len, head_dim=head_dim, **point)
        for row in {0, 1, shape[0] - 1}:
            one = cost_array("flash2", q_len=q_len[row], kv_len=kv_len, head_dim=int(head_dim.flat[row]), **point)
            assert np.array_equal(found.hbm_bytes[row], one.hbm_bytes)
            assert np.array_equal(found.reads["K"][row], one.reads["K"])


@pytest.mark.parametrize("where", [0, 8191, 8192, 9999])
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_one_value_beyond_64_bits_spoils_no_other(where: int, mask: str) -> None:
    q_len = np.random.default_rng(2).integers(1, 10**5, 10_000)
    plain = cost_array("flash2", q_len=q_len, head_dim=64, mask=mask, **TILES).hbm_bytes
    q_len[where] = 10**18
    found = cost_array("flash2", q_len=q_len, head_dim=64, mask=mask, **TILES).hbm_bytes
    assert found.dtype == object
    exact = iomodel.cost("flash2", iomodel.Attention(q_len=10**18, head_dim=64, mask=mask), TILES).hbm_bytes
    assert found[where] == exact > 2**63
    others = np.arange(10_000) != where
    assert np.array_equal(found[others], plain[others])
    assert all(type(value) is int for value in found)


# Magnitudes. In int8 a call with one query tile moves batch (d + d_v) (N_q + N_k) bytes: any product can be made.


def moved(product: int, batch: int, width: int, spread: int = 0) -> dict[str, Any]:
    """A call that moves exactly so many bytes."""
    rows, rest = divmod(product, batch * width)
    assert rest == 0
    q_len = min(rows // 2, 10**17) + spread
    call = {"q_len": q_len, "kv_len": rows - q_len, "batch": batch, "head_dim": 1, "value_dim": width - 1}
    return {**call, "dtype": "int8", "lse": False, "block_q": 10**18, "block_kv": 64}


EXACT = {
    2**53 - 1: (6361, 69431),
    2**53: (1, 2),
    2**53 + 1: (107, 3),
    2**54 + 2: (214, 3),
    2**62: (2**10, 4),
    2**63 - 1: (7, 7),
    2**63: (2**10, 4),
    2**63 + 1: (19, 3),  # 2**63 + 1 = 3**3 x 19 x 43 x ...
    2**64 - 1: (17, 5),
    2**64: (2**10, 4),
    2**64 + 1: (1, 274177),
}


@pytest.mark.parametrize("product", EXACT, ids=lambda n: f"{n:#x}")
def test_nothing_is_rounded_and_nothing_wraps(product: int) -> None:
    call = moved(product, *EXACT[product])
    for spread in (0, 1, 12345):
        one = moved(product, *EXACT[product], spread)
        columns = {name: value for name, value in one.items() if name in ("q_len", "kv_len")}
        found = cost_array("flash2", **{**one, **{name: np.array([n, n]) for name, n in columns.items()}}).hbm_bytes
        assert found.tolist() == [product, product]
        assert (found.dtype == np.int64) if product < 2**62 else found.dtype in (np.int64, object)
        assert found.dtype == object or product < 2**63
    everything = {name: np.array([n]) if isinstance(n, int) and name != "lse" else n for name, n in call.items()}
    assert whole(cost_array("flash2", **everything).hbm_bytes, (1,)).tolist() == [product]


def test_one_small_tile_among_large_ones() -> None:
    # The tile that makes the traffic overflow is the least of all, not the largest.
    sizes = np.array([2**40, 1, 2**22, 2**41])
    point = {"q_len": 2**40, "kv_len": 2**20, "head_dim": 2**10}
    for way in (sizes, sizes[::-1], sizes[:, None]):
        found = same("flash2", {**point, "block_q": way, "block_kv": 64})
        assert found.hbm_bytes.dtype == object
    same("flash2", {**point, "block_q": sizes, "block_kv": np.array([[1], [2**50]]), "mask": "causal"})


def test_one_array_for_several_arguments() -> None:
    one = np.array([3, 64, 100, 2**40])
    for mask in ("full", "causal", iomodel.Window(left=5, right=3)):
        same("flash2", {"q_len": one, "kv_len": one, "head_dim": 8, "block_q": one, "block_kv": one, "mask": mask})
        same("flash2", {"q_len": one, "kv_len": 77, "head_dim": one, "value_dim": one, "block_q": one, "block_kv": 3,
                        "heads": one, "kv_heads": one, "batch": one, "mask": mask})  # fmt: skip
        same("flash1", {"q_len": 50, "kv_len": one, "head_dim": one, "block_q": 8, "block_kv": one, "mask": mask})


@pytest.mark.parametrize("power", [53, 62, 63, 64])
def test_across_a_power_of_two(power: int) -> None:
    # batch x 3 x (N_q + N_k) in steps of 3: on both sides, in one array.
    batch = 1 if power == 53 else 19
    rows = 2**power // (3 * batch) + np.arange(-20, 20)
    q_len = rows // 2
    kv_len = rows - q_len
    point = {"batch": batch, "head_dim": 1, "value_dim": 2, "dtype": "int8", "lse": False, "block_kv": 64}
    found = cost_array("flash2", q_len=q_len, kv_len=kv_len, block_q=10**18, **point)
    assert whole(found.hbm_bytes, (40,)).tolist() == [3 * batch * int(n) for n in rows]
    assert found.hbm_bytes.dtype == (np.int64 if power == 53 else object) or power == 62
    same("flash2", {"q_len": q_len, "kv_len": kv_len, "block_q": 10**18, **point}, most=4)


lengths = st.integers(1, 2000) | st.integers(0, 59).map(lambda k: 2**k) | st.integers(1, 10**18)
sizes = st.integers(1, 300) | st.integers(0, 59).map(lambda k: 2**k)
points = st.fixed_dictionaries(
    {
        **dict.fromkeys(("q_len", "kv_len"), lengths),
        **dict.fromkeys(("block_q", "block_kv", "head_dim"), sizes),
        "batch": st.sampled_from([1, 2, 2**31, 10**18]),
    }
)
BANDS = ["full", "causal", iomodel.Window(left=5, right=3), iomodel.Window(left=10**18, right=0, align="top-left")]


@given(
    name=st.sampled_from(["flash1", "flash2", "tiled_query"]),
    mask=st.sampled_from(BANDS),
    many=st.lists(points, min_size=1, max_size=4),
)
def test_integers_of_any_size(name: str, mask: Any, many: list[dict[str, int]]) -> None:
    same(name, {**{field: np.array([point[field] for point in many]) for field in many[0]}, "mask": mask})


@fraction_of_examples(2)
@given(many=st.lists(points, min_size=1, max_size=3))
def test_integers_of_any_size_backward(many: list[dict[str, int]]) -> None:
    columns = {field: np.array([point[field] for point in many], dtype=np.uint64) for field in many[0]}
    same("flash2", {**columns, "mask": "causal", "direction": "backward"})


@pytest.mark.parametrize("mask", BANDS, ids=str)
@pytest.mark.parametrize("length", [1, 8192, 2**17])
def test_everyday_sizes_are_int64(mask: Any, length: int) -> None:
    call = {"q_len": np.array([length]), "heads": 32, "kv_heads": 8, "head_dim": 128, "mask": mask}
    found = cost_array("flash2", **call, block_q=np.array([128]), block_kv=64)
    for quantity in COUNTS:
        assert getattr(found, quantity).dtype == np.int64
    assert np.asarray(found.intensity).dtype == np.float64


# What is handed out, and what is handed in.


def answered() -> tuple[Any, dict[str, Any]]:
    found = cost_array("flash2", q_len=LENGTHS, head_dim=8, mask="causal", **TILES)
    values = {quantity: getattr(found, quantity).copy() for quantity in COUNTS}
    values |= {f"reads {tensor}": found.reads[tensor].copy() for tensor in found.reads}
    values |= {f"writes {tensor}": found.writes[tensor].copy() for tensor in found.writes}
    return found, values


def test_what_is_handed_out_can_be_overwritten_by_nobody() -> None:
    found, values = answered()
    sides = [*found.reads.values(), *found.writes.values()]
    for array in [*(getattr(found, quantity) for quantity in COUNTS), *sides, found.intensity]:
        try:
            array[...] = 7
        except ValueError:  # read-only
            continue
    for quantity in COUNTS:
        assert np.array_equal(getattr(found, quantity), values[quantity]), quantity
    for side in ("reads", "writes"):
        for tensor, array in getattr(found, side).items():
            assert np.array_equal(array, values[f"{side} {tensor}"])
    with pytest.raises((AttributeError, TypeError)):
        found.reads["K"] = 1
    with pytest.raises(AttributeError):
        found.shape = ()
    again = cost_array("flash2", q_len=LENGTHS, head_dim=8, mask="causal", **TILES)
    assert np.array_equal(again.hbm_bytes, values["hbm_bytes"])


def test_what_is_handed_in_is_left_alone() -> None:
    q_len = LENGTHS.copy()
    found = cost_array("flash2", q_len=q_len, head_dim=8, mask="causal", **TILES)
    for quantity in COUNTS:
        getattr(found, quantity)
    assert np.array_equal(q_len, LENGTHS)
    assert q_len.flags.writeable


CALL: dict[str, Any] = {
    **dict.fromkeys(("q_len", "kv_len", "heads"), 6),
    "batch": 3,
    "kv_heads": 3,
    "head_dim": 8,
    "value_dim": 4,
    "page_size": 2,
    "block_q": 4,
    "block_kv": 2,
    "splits": 2,
    "window_left": 3,
}


@pytest.mark.parametrize("field", CALL)
def test_quantities_asked_for_late_are_of_the_same_call(field: str) -> None:
    array = np.full(4, CALL[field])
    found = cost_array("split_kv", **{**CALL, field: array}, mask=iomodel.Window(left=1))
    first = found.hbm_bytes.copy()
    array[...] = 1
    late = [found.flops, found.peak_hbm_bytes, found.reads["Q"], found.footprint_bytes, found.exps]
    told = cost_array("split_kv", **{**CALL, field: np.full(4, CALL[field])}, mask=iomodel.Window(left=1))
    assert np.array_equal(first, told.hbm_bytes)
    for values, expected in zip(
        late, [told.flops, told.peak_hbm_bytes, told.reads["Q"], told.footprint_bytes, told.exps], strict=True
    ):
        assert np.array_equal(values, expected)


@pytest.mark.parametrize("asked", [False, True])
def test_pickles(asked: bool) -> None:
    found, values = answered()
    fresh = found if asked else cost_array("flash2", q_len=LENGTHS, head_dim=8, mask="causal", **TILES)
    loaded = pickle.loads(pickle.dumps(fresh))
    assert loaded.shape == LENGTHS.shape
    for quantity in COUNTS:
        assert np.array_equal(getattr(loaded, quantity), values[quantity])
    assert np.array_equal(loaded.reads["K"], values["reads K"])


def test_order_of_questions_does_not_matter() -> None:
    _, values = answered()
    for first in COUNTS:
        found = cost_array("flash2", q_len=LENGTHS, head_dim=8, mask="causal", **TILES)
        assert np.array_equal(getattr(found, first), values[first])
        assert np.array_equal(found.hbm_bytes, values["hbm_bytes"])
