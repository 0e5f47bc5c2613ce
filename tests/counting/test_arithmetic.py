"""The operations under compiled formulas: exact on integers, and never a wrong int64 on arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sympy import Add, Rational, Symbol

from iomodel.counting.evaluation.arithmetic import ARRAY, SIZES, Size, as_size
from iomodel.counting.evaluation.compiled import Compiled
from tests.support.inside import FloorSum, floor_sum

N, M, A, B = (Symbol(letter, integer=True, positive=True) for letter in "NMAB")
WAITING = Compiled([FloorSum(N, M, A, B)], (N, M, A, B))

# Every magnitude up to where int64 ends, near powers of two above all.
magnitudes = st.integers(0, 62).flatmap(lambda k: st.integers(max(1, 2**k - 2), 2**k + 2))
small = st.integers(-50, 50)


@given(n=magnitudes, m=magnitudes, a=magnitudes, b=magnitudes)
@example(n=2**32, m=2**62, a=1, b=1)  # n (n - 1) / 2 is formed on the way
@example(n=2**20, m=2**62, a=2**45, b=1)  # so is a n + b
@example(n=1, m=2**62 + 2, a=1, b=2**62 + 2)
def test_an_array_of_floor_sums_is_exact_at_any_magnitude(n: int, m: int, a: int, b: int) -> None:
    found = WAITING.arrays(np.array([n, 1]), np.array([m, 1]), np.array([a, 1]), np.array([b, 1]))[0]
    assert [int(value) for value in found] == [floor_sum(n, m, a, b), 1]


@given(st.lists(st.tuples(st.integers(-2, 20), st.integers(1, 20), small, small), min_size=1))
def test_floor_sums_of_an_array_are_those_of_its_elements(points: list[tuple[int, int, int, int]]) -> None:
    found = ARRAY["SumOfFloors"](*np.array(points).T)
    assert found.tolist() == [floor_sum(*point) for point in points]


@given(x=small, y=small, power=st.integers(1, 4), divisor=st.integers(1, 9))
def test_a_size_bounds_what_it_stands_for(x: int, y: int, power: int, divisor: int) -> None:
    a, b, by = as_size(x), as_size(y), as_size(divisor)
    for size, value in (
        (a + b, x + y), (a - b, x - y), (3 + a, 3 + x), (3 - a, 3 - x), (a * b, x * y), (-a, -x), (2 * a, 2 * x),
        (a**power, x**power), (a // by, x // divisor), (100 // by, 100 // divisor), (a // divisor, x // divisor),
    ):  # fmt: skip
        assert size.bound >= abs(value) >= size.least
        assert size.sign * value >= 0
    for extreme, kind in ((min(x, y, divisor), "Minimum"), (max(x, y, divisor), "Maximum")):
        size = SIZES[kind](a, b, by)
        assert size.bound >= abs(extreme) >= size.least
        assert size.sign * extreme >= 0
    assert (a * b).least <= abs(x * y)
    assert (by**power).least == divisor**power
    assert (100 // by).bound <= 100 / divisor + 1
    assert (as_size(2**61) // as_size(2**40)).bound <= 2**21 + 1  # a large divisor makes a small quotient


@given(n=st.integers(-2, 20), m=st.integers(1, 20), a=small, b=small)
def test_a_size_bounds_a_floor_sum(n: int, m: int, a: int, b: int) -> None:
    size, value = SIZES["SumOfFloors"](*map(as_size, (n, m, a, b))), floor_sum(n, m, a, b)
    assert size.bound >= abs(value) >= size.least
    assert size.sign * value >= 0


def test_a_quotient_that_is_rounded_up_is_at_least_one() -> None:
    few, many = Size(9.0, 1.0, sign=1), Size(1000.0, 10.0, sign=1)
    assert (-(-few // many)).least == 1
    assert (few // many).least == 0
    assert (-(-many // few)).least == 2
    assert (many + few).least == 11
    assert (many - few).least == 0


def test_operands_of_a_division_must_fit() -> None:
    for numerator, denominator in ((2**62, 1), (1, 2**62)):
        assert not (as_size(numerator) // as_size(denominator)).fits
    assert (as_size(2**62 - 2**10) // as_size(1)).fits
    assert not (as_size(2**52) // as_size(1)).small
    assert (as_size(2**62 - 2**10) // Size(1.0, 0.0)).bound >= 2**61


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=5))
def test_halves_that_add_up_are_whole(lengths: list[int]) -> None:
    triangle = Compiled([N * (N - 1) / 2], (N,))
    assert triangle.arrays(np.array(lengths))[0].tolist() == [n * (n - 1) // 2 for n in lengths]
    halves = Compiled([Add(N / 2, Rational(1, 2))], (N,))
    odd = [2 * n + 1 for n in lengths]
    assert [int(half) for half in halves.arrays(np.array(odd))[0]] == [n + 1 for n in lengths]
    assert halves.scalars(odd[0]) == (lengths[0] + 1,)


def test_a_count_that_is_no_integer_is_an_error() -> None:
    with pytest.raises(ArithmeticError, match="a count is not an integer: 3/2"):
        Compiled([N / 2], (N,)).scalars(3)


sizes = st.integers(1, 1000)


@given(x=st.integers(1, 10**6), y=sizes, z=sizes, more=st.integers(0, 99), low=sizes)
def test_a_quotient_times_its_divisor_is_no_more_than_was_divided(x: int, y: int, z: int, more: int, low: int) -> None:
    divisor = Size(float(max(y, low)), float(min(y, low)))  # y, known to lie in a range
    tiles = (x + more) // y
    size = (as_size(x) + as_size(more)) // divisor
    for grown, value in ((size, tiles), (size + 1, tiles + 1), (size * as_size(z), tiles * z), (-size, -tiles)):
        assert (grown * divisor).bound >= abs(value * y)
        assert (divisor * grown).bound >= abs(value * y)
    assert (SIZES["Maximum"](size, as_size(z)) * divisor).bound >= max(tiles, z) * y
    assert ((size // as_size(z)) * divisor).bound >= tiles // z * y
    assert (size * divisor).bound <= x + more + divisor.bound


@given(n=st.integers(0, 50), m=st.integers(1, 50), a=st.integers(0, 50), b=st.integers(0, 99), wide=st.integers(1, 60))
def test_the_size_of_a_sum_of_floors_bounds_it(n: int, m: int, a: int, b: int, wide: int) -> None:
    divisor = Size(float(max(m, wide)), float(min(m, wide)))
    size = SIZES["SumOfFloors"](as_size(n), divisor, as_size(a), as_size(b))
    assert size.bound >= floor_sum(n, m, a, b)
    assert (size * divisor).bound >= floor_sum(n, m, a, b) * m
