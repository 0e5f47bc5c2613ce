"""Least accesses of small calls over all schedules, computed, and every bound below them."""

from __future__ import annotations

import pytest
from hypothesis import settings

import iomodel
from tests.support import all_schedules, backward_places, places_reused, row_game
from tests.support.least_schedule import least_backward_accesses, least_element_accesses, least_row_accesses
from tests.support.optima import BACKWARD_REUSED, BACKWARD_ROWS, ELEMENTS, REUSED, ROWS, SLOW

NIGHTLY = settings().max_examples >= settings.get_profile("nightly").max_examples
MOST_PAIRS = 18 if NIGHTLY else 9
"""The largest number of pairs of the sweep over all row games."""


@pytest.mark.parametrize("call", ELEMENTS)
def test_no_schedule_of_elements_moves_less(call: tuple[int, int, int, int, int]) -> None:
    assert least_element_accesses(*call) == ELEMENTS[call]
    queries, keys, width, values, size = call
    w = iomodel.Attention(q_len=queries, kv_len=keys, head_dim=width, value_dim=values)
    bounds = iomodel.lower_bounds(w, algorithm="standard", sram_elements=size)
    assert {"compulsory", "exact", "recomputed"} == bounds.keys()
    for bound in bounds.values():
        assert bound.elements <= ELEMENTS[call], bound


@pytest.mark.parametrize("call", [call for call in REUSED if NIGHTLY or call not in SLOW])
def test_no_schedule_that_uses_places_again_moves_less(call: tuple[int, int, int]) -> None:
    """11 accesses where own places need 16, for 2 queries and 2 keys in 3 places, and no bound is above."""
    assert places_reused.least_accesses(*call) == REUSED[call]
    queries, keys, size = call
    assert REUSED[call] <= ELEMENTS.get((queries, keys, 1, 1, size), 10**9)
    for bound in iomodel.lower_bounds(
        iomodel.Attention(q_len=queries, kv_len=keys, head_dim=1), sram_elements=size
    ).values():
        assert bound.elements <= REUSED[call], bound


@pytest.mark.parametrize("call", [call for call in ROWS if NIGHTLY or call not in SLOW])
def test_no_schedule_of_rows_moves_less(call: tuple[int, int, int, bool]) -> None:
    assert least_row_accesses(*call) == ROWS[call]


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("call", [call for call in ROWS if NIGHTLY or call not in SLOW])
def test_no_bound_is_above_a_row_game(call: tuple[int, int, int, bool], width: int) -> None:
    queries, keys, rows, causal = call
    mask = iomodel.Window(right=0, align="top-left") if causal else "full"
    w = iomodel.Attention(q_len=queries, kv_len=keys, head_dim=width, mask=mask)
    bounds = iomodel.lower_bounds(w, algorithm="flash2", sram_elements=rows * width)
    del bounds["fixed-split"]  # the game shares its rows as it likes
    assert {"compulsory", "exact", "recomputed", "row-atomic"} == bounds.keys()
    for bound in bounds.values():
        assert bound.elements <= width * ROWS[call], bound


@pytest.mark.parametrize("call", [call for call in BACKWARD_REUSED if NIGHTLY or call[:2] == (1, 1)])
def test_no_backward_schedule_that_uses_places_again_moves_less(call: tuple[int, int, int]) -> None:
    assert backward_places.least_accesses(*call) == BACKWARD_REUSED[call]
    queries, keys, size = call
    w = iomodel.Attention(q_len=queries, kv_len=keys, head_dim=1, direction="backward")
    for bound in iomodel.lower_bounds(w, sram_elements=size).values():
        assert bound.elements <= BACKWARD_REUSED[call], bound


@pytest.mark.parametrize("call", [call for call in BACKWARD_ROWS if NIGHTLY or call not in SLOW])
def test_no_backward_schedule_of_rows_moves_less(call: tuple[int, int, int]) -> None:
    assert least_backward_accesses(*call) == BACKWARD_ROWS[call]
    queries, keys, rows = call
    w = iomodel.Attention(q_len=queries, kv_len=keys, head_dim=5, direction="backward")
    bounds = iomodel.lower_bounds(w, algorithm="flash2", sram_elements=5 * rows)
    assert call[:2] == (2, 2) or "row-atomic-backward" in bounds
    for bound in bounds.values():
        assert bound.elements <= 5 * BACKWARD_ROWS[call], bound


@pytest.mark.parametrize(
    "call", [(2, 2, 3), (2, 2, 4), (2, 2, 5), (2, 2, 6), (1, 3, 3), (3, 1, 3), (1, 3, 4), (1, 4, 3)]
)
def test_leaving_schedules_out_loses_none_of_elements(call: tuple[int, int, int]) -> None:
    queries, keys, places = call
    assert least_element_accesses(queries, keys, 1, 1, places) == all_schedules.least_accesses(*call)


@pytest.mark.parametrize(
    "call",
    [
        *[(queries, keys, rows, False) for queries, keys in [(1, 3), (2, 2), (3, 2)] for rows in (4, 5, 6, 7)],
        (2, 3, 5, False),
        (3, 3, 4, True),
        (2, 3, 4, True),
    ],
)
def test_leaving_schedules_out_loses_none_of_rows(call: tuple[int, int, int, bool]) -> None:
    assert least_row_accesses(*call) == row_game.least_row_accesses(*call)


SIZES = [
    (queries, pairs // queries)
    for pairs in range(1, MOST_PAIRS + 1)
    for queries in range(1, pairs + 1)
    if pairs % queries == 0
]


@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_rows_need_four_pairs_a_row_beyond_two(queries: int, keys: int) -> None:
    """At least 4 A / (m - 2) accesses in m rows; for even m, at these sizes, as many as the best walk up and down."""
    for rows in range(4, 2 * (queries + keys) + 1):
        least = least_row_accesses(queries, keys, rows)
        assert least * (rows - 2) >= 4 * queries * keys
        walk = of_walk(queries, keys, rows)
        assert least == walk if rows % 2 == 0 else least <= walk


def of_walk(queries: int, keys: int, rows: int) -> int:
    """Count the row accesses of the best equal query tile whose walks over the keys alternate in direction."""
    walks = []
    for held in range(1, (rows - 2) // 2 + 1):
        trips = -(-queries // held)
        walks.append(2 * queries + 2 * keys * trips - (trips - 1) * min(2 * keys, rows - 2 * held))
    return min(walks)


SHORTER = "Q0K0 Q0Q1K0 Q0Q1K1 Q1Q2K1 Q1Q2K2 Q1Q2K3 Q2K3K0 Q3K3K0 Q3Q4K0 Q3Q4K1 Q3Q4K2 Q4Q0K2 Q4Q0K3"
"""Units of 2 rows on a chip of 6, one stop after another: query 0 leaves early and comes back for its last two keys."""


def test_no_equal_tile_is_the_best_of_five_queries_and_four_keys() -> None:
    """The least call, by pairs, where an even number of rows has a schedule below every walk."""
    chip, seen, accesses, met = set[str](), set[str](), 0, set[tuple[str, str]]()
    for stop in SHORTER.split():
        units = {stop[place : place + 2] for place in range(0, len(stop), 2)}
        assert len(units) <= 3
        for unit in units - chip:
            accesses += 1 if unit[0] == "Q" and unit not in seen else 2  # O is begun for nothing, once
        accesses += sum(unit[0] == "Q" for unit in chip - units)  # O is stored
        seen |= units
        chip = units
        met |= {(query, key) for query in units for key in units if query[0] == "Q" and key[0] == "K"}
    accesses += sum(unit[0] == "Q" for unit in chip)
    assert len(met) == 20
    assert (accesses, of_walk(5, 4, 6)) == (29, 30)
