"""The numeric lemmas in the proofs of the bounds (docs/paper.md), by computer algebra."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Expr, Poly, Rational, Symbol, diff, expand, fraction, im, re, simplify, solve, sqrt, together

from iomodel.counting.bound_values import Pairs, product_of, product_twice

M, P, A, Y, m, a, y, s, n, b = (Symbol(name, positive=True) for name in "MPAYmaysnb")


def test_the_rises_of_a_phase_are_largest_where_the_memory_faces_the_arrivals() -> None:
    """Step 3 of Theorem 1: n (Y - n + m) is largest at (Y + m) / 2, or at n = Y where m is at least Y."""
    rises = n * (Y - n + m)
    assert solve(diff(rises, n), n) == [Y / 2 + m / 2]
    assert simplify(rises.subs(n, (Y + m) / 2) - (Y + m) ** 2 / 4) == 0
    assert expand(rises.subs(n, Y)) == Y * m
    assert diff((Y + m) ** 2 / 4, m, 2) == Rational(1, 2)  # convex, with the slope of Y m where the two meet
    assert diff((Y + m) ** 2 / 4, m).subs(m, Y) == Y


def test_the_best_arrivals_of_the_middle_regimes() -> None:
    """With P for gamma, the terms of C meet at Y = 2 P - M / 2; those of spilled scores are least at 2 sqrt(P M)."""
    assert solve((Y + M) ** 2 / 4 - Y**2 / 4 - P * M, Y) == [-M / 2 + 2 * P]
    assert simplify((Y + M) ** 2 / (4 * Y)).subs(Y, 2 * P - M / 2).equals((4 * P + M) ** 2 / (8 * (4 * P - M)))
    assert solve(diff(Y / 4 + P * M / Y, Y), Y) == [2 * sqrt(M) * sqrt(P)]


FORWARD = [("S", "q", "k"), ("O", "o", "v")]
LATENT = [("S", "q", "k"), ("O", "o", "k")]
BACKWARD = [("S", "q", "k"), ("dP", "do", "v"), ("dV", "do", "dv"), ("dQ", "dq", "k"), ("dK", "q", "dk")]
FIRST = [("S", "O"), ("S", "dV"), ("S", "dQ"), ("S", "dK"), ("dP", "dQ"), ("dP", "dK")]
"""Products all of which come before those of another kind."""


def least_together(products: list[tuple[str, str, str]], width: int, values: int, parts: int, twice: bool) -> int:
    """Return the fewest index pairs of a visible pair that meet, over all divisions of its products into parts."""
    sizes = {"q": width, "dq": width, "k": width, "dk": width}
    each = [(kind, (e, n), (f, n)) for kind, e, f in products for n in range(min(sizes.get(x, values) for x in (e, f)))]
    least = 10**9
    for places in product(range(parts), repeat=len(each)):
        when = {kind: [place for one, place in zip(each, places, strict=True) if one[0] == kind] for kind, _, _ in each}
        if len(set(places)) < parts or any(
            max(when[one]) > min(when[other]) for one, other in FIRST if one in when and other in when
        ):
            continue
        met = set[Any]()
        for part in range(parts):
            inside = [one for one, place in zip(each, places, strict=True) if place == part]
            met |= {(e, f, False) for _, e, _ in inside for _, _, f in inside}
            met |= {
                (e, f, True) for _, e, _ in inside for _, _, f in inside if twice and e[0] == "dq" and f[0][0] == "d"
            }
        least = min(least, len(met))
    return least


@pytest.mark.parametrize(
    ("name", "products", "widths"),
    [
        ("exact", FORWARD, [(1, 1), (2, 1), (1, 3), (3, 2), (3, 3)]),
        ("latent", LATENT, [(1, 1), (3, 1), (4, 2), (3, 3), (5, 2)]),
        ("exact-backward", BACKWARD, [(1, 1), (2, 1), (2, 2)]),
        ("twice", BACKWARD, [(1, 1), (2, 1), (2, 2)]),
    ],
)
def test_divided_products_still_meet(name: str, products: list[Any], widths: list[tuple[int, int]]) -> None:
    """Theorem 1, step 2: products in two or three parts lack no more than the cuts or the accesses between them pay."""
    for width, values in widths:
        w = Pairs(1, width, 0 if name == "latent" else values, values)
        whole = product_twice(w) if name == "twice" else product_of("exact" if name == "latent" else name, w)
        for parts in (2, 3):
            if parts > len(products) * width or (parts == 3 and 3 * width + 2 * values > 8 and name != "exact"):
                continue
            lacking = whole.together - least_together(products, width, values, parts, name == "twice")
            assert lacking <= min((parts - 1) * whole.cut, parts * whole.moved), (width, values, parts)


def test_a_phase_of_loads_and_creations_forms_at_most_m_to_the_three_halves() -> None:
    """Theorem 4: sqrt(s) (3 M - s) / 2 is largest at s = M."""
    products = sqrt(s) * (3 * M - s) / 2
    assert solve(diff(products, s), s) == [M]
    assert products.subs(s, M).equals(M ** Rational(3, 2))


def test_pairs_formed_and_used_in_one_phase_of_a_latent_add_little() -> None:
    """The largest sqrt(k z (s + b)) for k + z + s = 3 and b <= s, in units of M, is at most 1 + 21 b / 40."""
    apart, bound = sqrt((1 + b / 3) ** 3), sqrt(2 * b) * (3 - b) / 2
    assert diff(apart, b, 2).is_positive  # a chord from 0 to the end of this case is above it
    assert simplify(apart.subs(b, Rational(3, 5)) - bound.subs(b, Rational(3, 5))) == 0
    chord = (bound - 1) / b
    (steepest,) = nroots_between(diff(chord, b), 0.6, 1)
    assert 0.524 < float(chord.subs(b, steepest)) < 21 / 40
    assert solve(diff(bound, b), b) == [1]  # beyond it falls


def nroots_between(slope: Expr, least: float, most: float) -> list[float]:
    """Return the roots of a slope in sqrt(b) in an interval."""
    root = Symbol("root", positive=True)
    numerator, _ = fraction(together(expand(slope.subs(b, root**2))))
    roots = [float(re(one)) ** 2 for one in Poly(numerator, root).nroots() if abs(im(one)) < 1e-9 and re(one) > 0]
    return sorted(one for one in roots if least < one < most)


def test_the_products_of_a_backward_phase_that_share_operands() -> None:
    """Theorem 10: (t^2 a^2 / 4 + c t)(3 - t - c) is largest at 1 / (1 - a^2 / 4), and a = 1 is the best weight."""
    t, c, weight = (Symbol(name, positive=True) for name in ("t", "c", "alpha"))
    square = (weight**2 * t**2 / 4 + c * t) * (3 - t - c)
    (shared,) = solve(diff(square, c), c)
    left = 1 / (1 - weight**2 / 4)
    assert simplify(square.subs(c, shared) - t * (3 - (1 - weight**2 / 4) * t) ** 2 / 4) == 0
    assert simplify(diff(square.subs(c, shared), t).subs(t, left)) == 0
    assert simplify(square.subs(c, shared).subs(t, left) - left) == 0
    assert solve(diff((2 + weight) ** 2 * (1 - weight**2 / 4), weight), weight) == [1]
    assert 2**1.5 - 1 < 3 * 0.61  # (1 + b / 3)^(3/2) is convex: its chord from 0 to 3
    assert 1299 / 500 < 3 * 3**0.5 / 2


@given(data=st.data(), places=st.integers(2, 20))
def test_outputs_that_stay_take_room(data: st.DataObject, places: int) -> None:
    """The three inequalities of Theorem 9, in random games of indices on a chip of some places."""
    arrivals = data.draw(st.integers(1, places))
    index = st.tuples(st.booleans(), st.integers(0, 2 * places))
    moves = data.draw(st.lists(st.tuples(index, st.integers(0, places)), min_size=60, max_size=200))
    chip: list[tuple[bool, int]] = []
    met, begun, crowd = set[Any](), Counter[Any](), Counter[Any]()
    beside, keys_lost, later = 0, 0, Counter[Any]()
    while moves:
        before, came = list(chip), set[tuple[bool, int]]()
        for _ in range(arrivals):
            if not moves:
                break
            (one, place) = moves.pop()
            if one in chip:
                continue
            if len(chip) == places:
                chip.pop(place % places)
            chip.append(one)
            came.add(one)
        new = came - set(before)
        n_q = sum(query for query, _ in new)
        r_q = sum(query for query, _ in before)
        n_k, r_k = len(new) - n_q, len(before) - r_q
        inside = [*before, *new]
        pairs = {(e, f) for e in inside for f in inside if e[0] and not f[0]} - met
        lost = n_q * (places - r_k) + n_k * (places - r_q)
        assert len(pairs) <= arrivals * places - (1 - arrivals / places) * lost
        beside, keys_lost = beside + n_q * r_q, keys_lost + n_k * (places - r_q)
        for e, _ in pairs:
            if e in before:
                later[e] += 1
                crowd[e] = max(crowd[e], r_q)
        begun.update(e for e in new if e[0])
        met |= pairs
    assert beside >= sum(max(0, crowd[e] - arrivals) for e in crowd) / 2
    assert keys_lost >= sum(later[e] * (places - crowd[e]) / crowd[e] for e in crowd) - 1e-9
    degree = Counter(e for e, _ in met)
    assert all(later[e] >= degree[e] - begun[e] * (places + arrivals) for e in degree)


def test_a_chip_that_starts_empty_lacks_fifteen_sixteenths_of_itself() -> None:
    """Theorem 7: the first phase, a run of one phase, and pairs that are all divided among processors."""
    lacking = y * M - Rational(15, 16) * M**2 - y**2 / 4
    assert solve(lacking, y) == [3 * M / 2, 5 * M / 2]
    least_met = Rational(9, 16) * M**2
    claimed = least_met / M + Rational(15, 16) * M
    assert simplify(2 * sqrt(least_met) - claimed) == 0
    assert diff(2 * sqrt(A), A).subs(A, least_met).equals(Rational(4, 3) / M)  # the slope falls to 1 / M there
    assert solve(least_met / a - claimed, a) == [3 * M / 8]


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
