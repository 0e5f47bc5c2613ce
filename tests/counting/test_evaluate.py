"""Arrays hold what single points hold: in int64 where that fits, and never a wrong int64."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sympy import Expr, Symbol

import iomodel
from iomodel.nests import N_q

MASKS: list[Any] = ["full", "causal"]
MASKS += [iomodel.Window(left=left, right=right) for left in (None, 5) for right in (None, 5) if left or right]
FORMULAS = {
    f"{name} {quantity} {mask}": (name, quantity, mask)
    for name in ("flash1", "flash2", "standard")
    for quantity in ("hbm_bytes", "exps", "footprint")
    for mask in MASKS
}


@cache
def built(formula: str) -> Expr:
    """The expression of a formula."""
    name, quantity, mask = FORMULAS[formula]
    return getattr(iomodel.expressions(name, mask=mask), quantity)


SMALL = {"batch": 2, "heads": 4, "kv_heads": 2, "group": 2, "head_dim": 8, "value_dim": 3, "element_size": 2}
SMALL |= {"q_len": 50, "kv_len": 70, "window_left": 5, "window_right": 3, "block_q": 7, "block_kv": 4}

# Small, or around a power of two, or anywhere up to where a few of them overflow int64.
lengths = st.integers(1, 2000) | st.integers(0, 62).map(lambda k: 2**k) | st.integers(1, 2**62)
sizes = st.integers(1, 300) | st.integers(0, 40).map(lambda k: 2**k)
windows = st.integers(0, 10) | lengths
points = st.fixed_dictionaries(
    {
        **dict.fromkeys(("q_len", "kv_len"), lengths),
        **dict.fromkeys(("window_left", "window_right"), windows),
        **dict.fromkeys(("block_q", "block_kv", "head_dim"), sizes),
    }
)
formulas = st.sampled_from(sorted(FORMULAS))

# All terms of the sum cancel but a relative 2**-40; the values are far beyond int64.
CANCELLING = dict.fromkeys(("q_len", "kv_len"), 2**28) | dict.fromkeys(("block_q", "block_kv"), 1)
CANCELLING |= {"head_dim": 2**14, "window_left": 0, "window_right": 0}
NARROW = {**CANCELLING, "q_len": 2**20, "kv_len": 2**59, "head_dim": 2**40}


def at(formula: Expr, point: dict[str, Any]) -> Any:
    return iomodel.theory.evaluate(formula, {**SMALL, **point})


@given(name=formulas, many=st.lists(points, min_size=1, max_size=4))
@example(name="flash2 hbm_bytes left=5 right=None align='bottom-right'", many=[CANCELLING])
@example(name="flash2 hbm_bytes left=5 right=5 align='bottom-right'", many=[NARROW])
def test_an_array_holds_what_each_point_holds(name: str, many: list[dict[str, int]]) -> None:
    columns = {symbol: np.array([point[symbol] for point in many], dtype=np.int64) for symbol in many[0]}
    found = at(built(name), columns)
    assert found.dtype in (np.int64, object)
    assert found.tolist() == [at(built(name), point) for point in many]


@given(name=formulas, point=points)
def test_a_value_beyond_int64_is_a_python_integer(name: str, point: dict[str, int]) -> None:
    exact = at(built(name), point)
    assert type(exact) is int
    found = at(built(name), {**point, "q_len": np.array([point["q_len"]])})
    if np.ndim(found) and not -(2**63) <= exact < 2**63:
        assert found.dtype == object


@pytest.mark.parametrize("name", sorted(FORMULAS))
@pytest.mark.parametrize("length", [1, 4096, 2**17])
def test_everyday_sizes_run_in_int64(name: str, length: int) -> None:
    point = {"q_len": np.array([length]), "kv_len": np.array([length]), "block_q": np.array([128]), "block_kv": 64}
    assert at(built(name), point).dtype == np.int64


def test_inputs_broadcast() -> None:
    formula = built("flash2 hbm_bytes causal")
    tiles, lens = np.array([[1], [7], [100]]), np.array([10, 20, 30, 40])
    found = at(formula, {"block_q": tiles, "q_len": lens})
    assert found.shape == (3, 4)
    for (i, j), count in np.ndenumerate(found):
        assert count == at(formula, {"block_q": int(tiles[i, 0]), "q_len": int(lens[j])})


@pytest.mark.parametrize(
    "given_as",
    [np.array(50), np.int64(50), np.uint8(50), [50], np.array([50], dtype=object), np.array([50], dtype=np.int8)],
)
def test_integers_of_any_make_are_accepted(given_as: Any) -> None:
    formula = built("flash2 hbm_bytes causal")
    assert np.all(at(formula, {"q_len": given_as}) == at(formula, {}))


def test_values_beyond_64_bits_are_accepted() -> None:
    assert iomodel.theory.evaluate(N_q**2, {"q_len": 10**30}) == 10**60
    found = iomodel.theory.evaluate(N_q**2, {N_q: np.array([2, 10**30], dtype=object)})
    assert found.tolist() == [4, 10**60]
    assert iomodel.theory.evaluate(N_q + 1, {N_q: np.array([2**64 - 1], dtype=np.uint64)}).tolist() == [2**64]


def test_no_points_give_no_values() -> None:
    assert at(built("flash2 exps causal"), {"q_len": np.array([], dtype=int)}).shape == (0,)


BAD = [1.5, 2.0, -1, 0, True, "7", None, [1, -2], [1.0, 2.0], np.array([True]), np.array([1, None]), float("nan")]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_what_is_no_positive_integer_is_refused(value: Any) -> None:
    with pytest.raises(iomodel.InputError, match=r"^q_len: .* given; allowed: integers from 1 up"):
        at(built("flash2 exps causal"), {"q_len": value})


def test_a_window_may_be_zero_and_no_less() -> None:
    formula = built("flash2 exps left=5 right=5 align='bottom-right'")
    assert at(formula, {"window_left": 0}) > 0
    with pytest.raises(iomodel.InputError, match=r"^window_left: -1 given; allowed: integers from 0 up"):
        at(formula, {"window_left": -1})


def test_a_missing_symbol_is_named() -> None:
    with pytest.raises(iomodel.InputError, match=r"^kv_len: no value given for N_k"):
        iomodel.theory.evaluate(built("standard exps full"), {k: v for k, v in SMALL.items() if k != "kv_len"})


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(iomodel.UnknownNameError, match=r"'blok_kv' is unknown; did you mean 'block_kv'"):
        at(built("flash2 exps full"), {"blok_kv": 3})


def test_symbols_stand_for_their_names() -> None:
    x = Symbol("x", integer=True, positive=True)
    assert iomodel.theory.evaluate(N_q + x, {"q_len": 3, x: 4}) == 7


def test_a_ratio_of_counts_is_a_float() -> None:
    w = iomodel.Attention(q_len=50, head_dim=8, mask="causal")
    tiles = {"block_q": 7, "block_kv": 4}
    intensity = iomodel.expressions("flash2", mask="causal").intensity
    assert iomodel.theory.evaluate(intensity, {**w.numbers, **tiles}) == iomodel.cost("flash2", w, tiles).intensity
    several = iomodel.theory.evaluate(intensity, {**w.numbers, **tiles, "block_q": [7, 14]})
    assert several[1] == iomodel.cost("flash2", w, {**tiles, "block_q": 14}).intensity
