"""The numeric lemmas in the proofs of the bounds (docs/paper.md), by computer algebra."""

from __future__ import annotations

from itertools import permutations

from sympy import Rational, Symbol, diff, expand, simplify, solve, sqrt

M, P, A, Y, m, a, y, s, n = (Symbol(name, positive=True) for name in "MPAYmaysn")


def test_the_rises_of_a_phase_are_largest_where_the_memory_faces_the_arrivals() -> None:
    """Step 3 of Theorem 1: n (Y - n + m) is largest at (Y + m) / 2, or at n = Y where m is at least Y."""
    rises = n * (Y - n + m)
    assert solve(diff(rises, n), n) == [Y / 2 + m / 2]
    assert simplify(rises.subs(n, (Y + m) / 2) - (Y + m) ** 2 / 4) == 0
    assert expand(rises.subs(n, Y)) == Y * m
    assert diff((Y + m) ** 2 / 4, m, 2) == Rational(1, 2)  # convex, with the slope of Y m where the two meet
    assert diff((Y + m) ** 2 / 4, m).subs(m, Y) == Y


def test_the_best_arrivals_of_the_middle_regimes() -> None:
    """The terms of C meet at Y = 2 P - M / 2, and the spilled scores are least at Y = 2 sqrt(P M)."""
    assert solve((Y + M) ** 2 / 4 - Y**2 / 4 - P * M, Y) == [-M / 2 + 2 * P]
    assert simplify((Y + M) ** 2 / (4 * Y)).subs(Y, 2 * P - M / 2).equals((4 * P + M) ** 2 / (8 * (4 * P - M)))
    assert solve(diff(Y / 4 + P * M / Y, Y), Y) == [2 * sqrt(M) * sqrt(P)]


def test_a_phase_of_loads_and_creations_forms_at_most_m_to_the_three_halves() -> None:
    """Theorem 4: sqrt(s) (3 M - s) / 2 is largest at s = M."""
    products = sqrt(s) * (3 * M - s) / 2
    assert solve(diff(products, s), s) == [M]
    assert products.subs(s, M).equals(M ** Rational(3, 2))


def test_a_chip_that_starts_empty_lacks_fifteen_sixteenths_of_itself() -> None:
    """Theorem 7: the first phase, and both ends of a run of one phase."""
    lacking = y * M - Rational(15, 16) * M**2 - y**2 / 4
    assert solve(lacking, y) == [3 * M / 2, 5 * M / 2]
    claimed = A * P / M + Rational(15, 16) * M
    least = a + 2 * A - a**2 / (2 * P)
    assert diff(least, a, 2) == -1 / P
    at_end = least.subs(a, 3 * M / 2) - claimed
    assert simplify(at_end - (2 - P / M) * (A - Rational(9, 16) * M**2 / P)) == 0
    at_start = (least.subs(a, 0) - claimed).subs(A, Rational(9, 16) * M**2 / P)
    assert simplify(at_start - (Rational(9, 8) * M**2 / P - Rational(3, 2) * M)) == 0
    assert solve(at_start, P) == [3 * M / 4]


def test_every_order_of_seven_rows_pays_the_constant_but_for_its_edges() -> None:
    """Theorem 8, for all 5,040 orders: 16 d^2 for d_v = d, less the weights of the edges."""
    for width, value in ((1, 1), (3, 3), (1, 2), (2, 1), (3, 5), (5, 3)):
        least = 2 * (3 * width + value) * (width + value) - max(0, width - value) * value
        differences = []
        for order in permutations(("Q", "dO", "dQ", "K", "V", "dK", "dV")):
            place = {row: number for number, row in enumerate(order)}
            edges = width**2 * (place["K"] > place["dQ"] and place["Q"] > place["dK"])
            edges += min(width, value) * value * (place["V"] > place["dQ"] and place["dO"] > place["dV"])
            differences.append(paid(order, width, value) + edges - least)
        assert min(differences) >= 0
        key_first = ("K", "V", "dK", "dV", "Q", "dO", "dQ")
        assert paid(key_first, width, value) == 2 * (3 * width + value) * (width + value)
    assert paid(("dQ", "dK", "dV", "Q", "dO", "K", "V"), 1, 1) == 14  # the least without edges


def paid(order: tuple[str, ...], width: int, value: int) -> int:
    """Return what the rows of a pair pay that arrive in an order: each for those of the other side before it."""
    widths = (width, value, width, width, value, width, value)
    rows = ("Q", "dO", "dQ", "K", "V", "dK", "dV")
    size = dict(zip(rows, widths, strict=True))
    query = key = total = 0
    for row in order:
        factor = 2 if row in ("dQ", "dK", "dV") else 1
        if row in ("Q", "dO", "dQ"):
            total += factor * size[row] * key
            query += size[row]
        else:
            total += factor * size[row] * query
            key += size[row]
    return total
