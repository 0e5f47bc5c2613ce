"""The sum of floors: the fast one is the slow one, and every elementary form is the sum that it replaces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sympy import Add, Expr, Integer, Max, Sum, Symbol, latex

from iomodel.nests.floor_sum_node import FloorSum
from tests.support.inside import Compiled, floor_sum

N, M, A, B = (Symbol(letter, integer=True, positive=True) for letter in "nmab")
counts, divisors, anything = st.integers(0, 60), st.integers(1, 40), st.integers(-100, 100)
huge = st.integers(-(10**30), 10**30)


def naive(n: int, m: int, a: int, b: int) -> int:
    return sum((a * i + b) // m for i in range(n))


@given(n=counts, m=divisors, a=anything, b=anything)
def test_floor_sum_is_the_sum(n: int, m: int, a: int, b: int) -> None:
    assert floor_sum(n, m, a, b) == naive(n, m, a, b)


@given(n=st.integers(-50, 0), m=divisors, a=anything, b=anything)
def test_no_terms_sum_to_nothing(n: int, m: int, a: int, b: int) -> None:
    assert floor_sum(n, m, a, b) == 0


@given(n=counts, m=st.integers(1, 10**30), a=huge, b=huge)
def test_floor_sum_of_big_integers(n: int, m: int, a: int, b: int) -> None:
    assert floor_sum(n, m, a, b) == naive(n, m, a, b)


@given(n=st.integers(0, 10**30), k=counts, m=st.integers(1, 10**30), a=huge, b=huge)
def test_a_long_sum_is_the_sum_of_its_parts(n: int, k: int, m: int, a: int, b: int) -> None:
    assert floor_sum(n + k, m, a, b) == floor_sum(n, m, a, b) + naive(k, m, a, a * n + b)


@given(n=st.integers(0, 10**30), m=st.integers(1, 10**30), a=huge, b=huge)
def test_reversing_the_terms_changes_nothing(n: int, m: int, a: int, b: int) -> None:
    assert floor_sum(n, m, a, b) == floor_sum(n, m, -a, a * (n - 1) + b)


@given(n=counts, m=divisors, a=anything, b=anything)
def test_four_integers_become_one(n: int, m: int, a: int, b: int) -> None:
    assert FloorSum(n, m, a, b) == Integer(naive(n, m, a, b))


def value(expr: Expr, n: int, k: int, b: int) -> int:
    return int(expr.subs({N: n, M: k, B: b}))


@given(n=counts, k=divisors, times=st.integers(-9, 9), b=st.integers(1, 100))
def test_a_slope_that_m_divides_is_an_arithmetic_series(n: int, k: int, times: int, b: int) -> None:
    series = FloorSum(N, M, times * M, B)
    assert not series.has(FloorSum)
    assert value(series, n, k, b) == naive(n, k, times * k, b)


@given(n=counts, slope=divisors, times=st.integers(1, 9), shift=st.integers(-100, 0), b=st.integers(1, 100))
def test_a_slope_that_divides_m_is_a_quadratic(n: int, slope: int, times: int, shift: int, b: int) -> None:
    quadratic = FloorSum(N, times * M, M, B + shift)
    assert not quadratic.has(FloorSum)
    assert value(quadratic, n, slope, b) == naive(n, times * slope, slope, b + shift)


@given(n=counts, times=st.integers(1, 9), slope=st.integers(-9, -1), b=anything)
def test_a_falling_slope_that_divides_m(n: int, times: int, slope: int, b: int) -> None:
    found = FloorSum(N, times * -slope, slope, b)
    assert int(found.subs(N, n)) == naive(n, times * -slope, slope, b)


@given(n=counts, m=divisors, a=divisors, b=st.integers(1, 100))
def test_symbols_wait_for_their_values(n: int, m: int, a: int, b: int) -> None:
    waiting = FloorSum(N, M, A, B)
    assert waiting.func is FloorSum
    assert waiting.is_integer
    point = {N: n, M: m, A: a, B: b}
    expected = naive(n, m, a, b)
    assert waiting.subs(point) == expected
    assert Compiled([waiting], (N, M, A, B)).scalars(n, m, a, b) == (expected,)
    assert added(waiting.rewrite(Sum).subs(point)) == expected
    assert added(waiting.doit().subs(point)) == expected


def added(total: Expr) -> Expr:
    """The terms of a sum, added one by one: sympy 1.14 at times takes a limit from the left for a sum of one floor."""
    if not isinstance(total, Sum):
        return total
    index, first, last = total.limits[0]
    return Add(*(total.function.subs(index, i) for i in range(first, last + 1)))


def test_it_rewrites_to_a_sum_and_prints_as_one() -> None:
    waiting = FloorSum(N, M, A, B)
    assert isinstance(waiting.rewrite(Sum), Sum)
    assert isinstance(waiting.doit(), Sum)
    assert latex(waiting) == r"\sum_{i=0}^{n - 1} \left\lfloor \frac{i a + b}{m} \right\rfloor"


def test_by_hand() -> None:
    # 3 i + 2 mod 7 runs through 2 5 1 4 0 3 6: 3 on average, and 10^12 = 1 mod 7 leaves one 2 over.
    n = 10**12
    assert floor_sum(n, 7, 3, 2) == (3 * n * (n - 1) // 2 + 2 * n - (3 * (n - 1) + 2)) // 7


def test_no_floor_of_an_extremum_is_made() -> None:
    """sympy may drop such a floor (see iomodel.counting.bands), so the sum always waits."""
    terms = Max(0, N - 3)
    assert FloorSum(terms, 2 * M, M, B).func is FloorSum
    assert value(FloorSum(terms, 2 * M, M, B), 10, 3, 4) == naive(7, 6, 3, 4)
