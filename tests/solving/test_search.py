"""The search over two tile sizes, on problems made up for it: equal to looking at every pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import discovered
from iomodel.nests import (
    Algorithm,
    B_c,
    B_r,
    DeclarationError,
    Hold,
    K,
    Kernel,
    Live,
    Load,
    Loop,
    MatMul,
    O,
    Q,
    S,
    Store,
    V,
    depth,
    key,
    query,
    value,
)
from iomodel.solving import problem as problems
from iomodel.solving import strategies as walks
from iomodel.solving.batch.many_problems import Many, TileRanges
from iomodel.solving.problem import Problem, SearchResult, TileRange
from iomodel.solving.search import search
from tests.support.exhaustive_tiles import Question, exhaustive
from tests.support.inside import m_1

epsilons = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1)])


def judge(problem: Problem, epsilon: Fraction, found: SearchResult | None) -> None:
    """Hold a result against every pair of sizes."""
    every = [
        (problem.cost(u, v), u, v)
        for u in range(problem.outer.first, problem.outer.last + 1, problem.outer.step)
        for v in range(problem.inner.first, problem.inner.last + 1, problem.inner.step)
        if problem.footprint(u, v) <= problem.budget
    ]
    if not every:
        assert found is None
        return
    assert found is not None
    least = min(every)[0]
    limit = floor(least * (1 + epsilon))

    def rank(cost: int, u: int, v: int) -> tuple[int, int, int, int]:
        first, second = (v, u) if problem.prefer_inner else (u, v)
        return -first, cost, problem.footprint(u, v), second

    chosen = min(rank(*at) for at in every if at[0] <= limit)
    assert (rank(found.bytes, *found.tile), found.least) == (chosen, least)
    assert problem.cost(*found.least_tile) == least
    assert found.runner_up_bytes == min((cost for cost, _, _ in every if cost > least), default=None)
    if found.runner_up is not None:
        assert problem.cost(*found.runner_up) == found.runner_up_bytes
        assert problem.footprint(*found.runner_up) <= problem.budget


@st.composite
def ranges(draw: st.DrawFn, rows: int) -> TileRange:
    return TileRange(rows, draw(st.integers(1, 3)), draw(st.integers(1, 5)))


@st.composite
def footprints(draw: st.DrawFn) -> Callable[[int, int], int]:
    """Affine in either size, or the larger of two such, as of two kernels."""
    terms = [tuple(draw(st.integers(least, 4)) for least in (0, 1, 1, 0)) for _ in range(draw(st.integers(1, 2)))]
    return lambda u, v: max(d + a * u + b * v + c * u * v for d, a, b, c in terms)


@given(data=st.data(), epsilon=epsilons)
def test_costs_by_trip_counts(data: st.DataObject, epsilon: Fraction) -> None:
    """p T_u + q T_v + r T_u T_v: two-sided, one-sided either way, or flat."""
    outer, inner = (data.draw(ranges(data.draw(st.integers(1, 14)))) for _ in range(2))
    p, q, r = (data.draw(st.integers(0, 3)) for _ in range(3))
    problem = Problem(
        outer,
        inner,
        cost=lambda u, v: 10 + p * outer.trips(u) + q * inner.trips(v) + r * outer.trips(u) * inner.trips(v),
        footprint=data.draw(footprints()),
        budget=data.draw(st.integers(1, 150)),
    )
    judge(problem, epsilon, search(problem, epsilon))


@given(data=st.data(), epsilon=epsilons, batch=st.sampled_from([2, 512]))
def test_costs_by_a_mask(data: st.DataObject, epsilon: Fraction, batch: int) -> None:
    """Any mask at all: base + weight * rows visited; in strides of two and in one walk."""
    rows, columns = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    lines = st.lists(st.booleans(), min_size=columns, max_size=columns)
    seen = np.array(data.draw(st.lists(lines, min_size=rows, max_size=rows)))
    base, weight = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 4))

    def cost(u: int, v: int) -> int:
        visited = 0
        for i in range(0, rows, u):
            for j in range(0, columns, v):
                if seen[i : i + u, j : j + v].any():
                    visited += min(v, columns - j)
        return base + weight * visited

    outer, inner = data.draw(ranges(rows)), data.draw(ranges(columns))
    problem = Problem(
        outer,
        inner,
        cost,
        data.draw(footprints()),
        data.draw(st.integers(1, 150)),
        prefer_inner=data.draw(st.booleans()),
        base=base,
        strict=data.draw(st.sampled_from([None, cost, lambda u, v: cost(u, v) // 2 + base // 2])),
        least_stream=cost(rows, 1) - base,
        costs=data.draw(st.sampled_from([None, lambda us, v: np.array([cost(int(u), v) for u in us])])),
    )
    before, walks.BATCH = walks.BATCH, batch
    try:
        judge(problem, epsilon, search(problem, epsilon))
    finally:
        walks.BATCH = before


@given(data=st.data(), epsilon=epsilons, slab=st.sampled_from([1, 9, 1 << 16]), scale=st.sampled_from([1, 10**30]))
def test_costs_of_which_nothing_is_known(data: st.DataObject, epsilon: Fraction, slab: int, scale: int) -> None:
    rows, columns = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    table = data.draw(st.lists(st.integers(1, 9), min_size=200, max_size=200))

    def cost(u: int, v: int) -> int:
        return scale * table[14 * u + v]

    arrays = [None, lambda us, vs: np.array([cost(u, v) for u, v in zip(us.tolist(), vs.tolist(), strict=True)])]
    problem = Problem(
        data.draw(ranges(rows)),
        data.draw(ranges(columns)),
        cost=cost,
        footprint=data.draw(footprints()),
        budget=data.draw(st.integers(1, 150)),
        prefer_inner=data.draw(st.booleans()),
        costs=data.draw(st.sampled_from(arrays)),
        irregular=True,
    )
    before, problems.SLAB = problems.SLAB, slab
    try:
        judge(problem, epsilon, search(problem, epsilon))
    finally:
        problems.SLAB = before


@given(rows=st.integers(1, 60), step=st.integers(1, 4), least=st.integers(1, 9), budget=st.integers(0, 90))
def test_ranges(rows: int, step: int, least: int, budget: int) -> None:
    sizes = TileRange(rows, step, least)
    last = next(n for n in range(rows, rows + step) if n % step == 0)
    allowed = [n for n in range(step, last + 1, step) if n >= least or n == last]
    assert (sizes.first, sizes.last) == (allowed[0], last)
    bent = lambda n: max(n, 3 * n - 40)  # noqa: E731 - the larger of two lines: the first guess may be wrong
    for occupied in (lambda n: n, lambda n: 2 * n + 1, bent):
        assert sizes.largest(occupied, budget) == max((n for n in allowed if occupied(n) <= budget), default=None)
    for size in allowed:
        same = [n for n in allowed if sizes.trips(n) == sizes.trips(size)]
        more = [n for n in allowed if sizes.trips(n) > sizes.trips(size)]
        assert sizes.trips(size) == len(range(0, rows, size))
        assert sizes.smallest_of_class(size) == min(same)
        assert sizes.next_class(size) == max(more, default=None)


@given(rows=st.lists(st.integers(1, 40), min_size=1, max_size=4), step=st.integers(1, 4), least=st.integers(1, 9))
def test_a_tile_of_many_lengths_steps_where_any_of_them_does(rows: list[int], step: int, least: int) -> None:
    longest, *shorter = sorted(rows, reverse=True)
    sizes = TileRange(longest, step, least, None, tuple(shorter))
    allowed = list(range(sizes.first, sizes.last + 1, step))
    trips = {size: [len(range(0, length, size)) for length in rows] for size in allowed}
    for size in allowed:
        assert sizes.smallest_of_class(size) == min(n for n in allowed if trips[n] == trips[size])
        assert sizes.next_class(size) == max((n for n in allowed if sum(trips[n]) > sum(trips[size])), default=None)


def rewriting() -> list[Kernel]:
    """FlashAttention-2 that writes O back after every key tile: rows of both axes move in the masked loop."""
    inner = [Load(K), Load(V), Load(O), Hold(S, "fp32"), MatMul(query, key, depth), MatMul(query, value, key), Store(O)]
    return [Kernel("rewriting", [Loop(query, B_r, [Live(key, [Load(Q), Loop(key, B_c, inner, masked=True)])])])]


def rereading() -> list[Kernel]:
    """The same with the loops the other way round, and V loaded beside every query tile: here keys are stationary."""
    inner = [Load(Q), Load(V), Load(O), Hold(S, "fp32"), MatMul(query, key, depth), MatMul(query, value, key), Store(O)]
    return [Kernel("rereading", [Loop(key, B_c, [Live(query, [Load(K), Loop(query, B_r, inner, masked=True)])])])]


@pytest.fixture(params=[rewriting, rereading])
def unbounded(request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.param.__name__
    discovered()[name] = Algorithm(name, "", "", request.param, classes=frozenset({"exact"}))
    yield name
    del discovered()[name]


@pytest.mark.parametrize("mask", ["full", "causal", iomodel.Window(left=2, right=1)])
@pytest.mark.parametrize("budget", [40, 60, 90, 10**6])
def test_an_algorithm_that_no_staircase_bound_covers_is_searched_in_full(
    unbounded: str, mask: object, budget: int
) -> None:
    w = iomodel.Attention(q_len=7, kv_len=9, head_dim=2, mask=mask)  # type: ignore[arg-type]
    question = Question(unbounded, w, "elements", budget, 1, None, 0, {})
    answer, solution = exhaustive(question), question.solve()
    assert dict(solution.tiles) == answer.tiles
    assert solution.certificate.least_hbm_bytes == answer.least
    many = iomodel.solve_array(
        unbounded, q_len=[7, 7], kv_len=9, head_dim=2, mask=mask, sram_elements=budget, epsilon=0
    )
    assert {name: sizes.tolist() for name, sizes in many.tiles.items()} == {n: [t] * 2 for n, t in answer.tiles.items()}


@given(
    lengths=st.tuples(st.integers(1, 24), st.integers(1, 24)),
    widths=st.sampled_from([(2, 2), (1, 3), (5, 1)]),
    sides=st.tuples(st.none() | st.integers(0, 12), st.none() | st.integers(0, 12)),
    step=st.integers(1, 3),
    budget=st.integers(20, 300),
)
def test_rows_begun_once_under_a_window_have_the_tiles_of_an_exhaustive_search(
    lengths: tuple[int, int], widths: tuple[int, int], sides: tuple[int | None, int | None], step: int, budget: int
) -> None:
    """Also where some queries see no key, and where O is narrower than the sums of dQ that begin without a load."""
    w = iomodel.Attention(
        q_len=lengths[0], kv_len=lengths[1], head_dim=widths[0], value_dim=widths[1], direction="backward",
        mask=iomodel.Window(left=sides[0], right=sides[1]),
    )  # fmt: skip
    question = Question("flash1", w, "elements", budget, step, None, 0, {"begin_once": True})
    answer = exhaustive(question)
    if answer.tiles is None:
        with pytest.raises(iomodel.InfeasibleError):
            question.solve()
        return
    solution = question.solve()
    assert dict(solution.tiles) == answer.tiles
    assert solution.certificate.least_hbm_bytes == answer.least
    many = iomodel.solve_array(
        "flash1", q_len=[lengths[0]] * 2, kv_len=lengths[1], head_dim=widths[0], value_dim=widths[1], mask=w.mask,
        direction="backward", sram_elements=budget, alignment=step, epsilon=0, begin_once=True,
    )  # fmt: skip
    assert {name: sizes.tolist() for name, sizes in many.tiles.items()} == {n: [t] * 2 for n, t in answer.tiles.items()}


def test_rows_begun_once_under_a_window_are_searched_by_few_tiles() -> None:
    """227,057 tiles without a bound on what the first visit leaves out."""
    w = iomodel.Attention(q_len=65_536, head_dim=64, direction="backward", mask=iomodel.Window(left=127, right=0))
    solution = iomodel.solve("flash1", w, sram_elements=524_288, begin_once=True)
    assert solution.certificate.examined < 1000


def test_tiles_are_chosen_in_pairs() -> None:
    crowded = Loop(query, B_r, [Loop(key, B_c, [Loop(depth, m_1, [Load(Q), Load(K), Load(V), Store(Q)])])])
    discovered()["crowded"] = Algorithm("crowded", "", "", lambda: [Kernel("crowded", [crowded])])
    try:
        with pytest.raises(DeclarationError, match=r"crowded: the solver chooses two tiles at a time; found"):
            iomodel.solve("crowded", iomodel.Attention(q_len=7, head_dim=2), sram_bytes=100)
    finally:
        del discovered()["crowded"]


def test_a_tile_that_is_alone_is_as_large_as_fits() -> None:
    """Its size costs nothing here: Q is read and written once."""
    discovered()["lonely"] = Algorithm(
        "lonely", "", "", lambda: [Kernel("lonely", [Loop(query, B_r, [Load(Q), Store(Q)])])]
    )
    try:
        found = iomodel.solve("lonely", iomodel.Attention(q_len=70, head_dim=2), sram_elements=100)
        assert dict(found.tiles) == {"block_q": 50}
        assert found.cost.hbm_elements == 2 * 70 * 2
    finally:
        del discovered()["lonely"]


@given(data=st.data())
def test_the_largest_tiles_of_many_problems_fit_just_so(data: st.DataObject) -> None:
    """Whatever the larger of two lines does: the first guess of the array search may be far too large."""
    steep, late = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 200))
    rows, step = data.draw(st.integers(1, 90)), data.draw(st.integers(1, 5))
    budgets = np.array(data.draw(st.lists(st.integers(200, 600), min_size=1, max_size=4)))

    def occupied(_who: object, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.maximum(u + v, steep * v - late)
        return found

    sizes = TileRanges(rows, step, step, -(-rows // step) * step)
    one = TileRanges(1, 1, 1, 1)
    many = Many(len(budgets), one, sizes, *[occupied] * 4, None, None, budgets, Fraction(0), True, True)
    beside = np.ones(len(budgets), dtype=np.int64)
    allowed = range(sizes.first, sizes.last + 1, step)
    expected = [max(v for v in allowed if max(1 + v, steep * v - late) <= budget) for budget in budgets]
    assert many.inner_top(None, beside).tolist() == expected
