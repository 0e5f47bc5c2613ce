"""Minima and maxima of formulas are those of their values, whatever arguments are left out."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from sympy import Expr, Integer, ceiling, floor

from iomodel.counting.terms import greatest, least, never_below, replaced
from iomodel.nests import B_c, B_r, N_k, N_q, W_l, s
from tests.support.integers import integer

LEAST = {N_q: 1, N_k: 1, B_c: 1, B_r: 1, s: 1, W_l: 0}
leaves = st.sampled_from([*LEAST, *LEAST, Integer(1), Integer(2), Integer(-1)])
terms: st.SearchStrategy[Expr] = st.recursive(
    leaves,
    lambda inside: st.one_of(
        st.builds(lambda a, b: a + b, inside, inside),
        st.builds(lambda a, b: a - b, inside, inside),
        st.builds(lambda a, b: a * b, inside, inside),
        st.builds(lambda a, tile: ceiling(a / tile), inside, st.sampled_from([B_c, B_r, s])),
        st.builds(lambda a, tile: floor(a / tile), inside, st.sampled_from([B_c, B_r, s])),
    ),
    max_leaves=6,
)
points = st.fixed_dictionaries({symbol: st.integers(bound, bound + 4) for symbol, bound in LEAST.items()})


@given(parts=st.lists(terms, min_size=1, max_size=3), more=terms, at=points)
def test_extrema_are_those_of_the_values(parts: list[Expr], more: Expr, at: dict[Expr, int]) -> None:
    """Of terms that dominate others, too: each is given again with something added."""
    parts = [*parts, parts[0] + more]
    values = [integer(part, at) for part in parts]
    assert integer(least(*parts), at) == min(values)
    assert integer(greatest(*parts), at) == max(values)


@given(parts=st.lists(terms, min_size=2, max_size=3), to=terms, at=points)
def test_a_replacement_has_the_value_of_the_formula_at_the_replaced_point(
    parts: list[Expr], to: Expr, at: dict[Expr, int]
) -> None:
    """Symbols are replaced at once: what takes the place of one may contain another."""
    formula = greatest(*parts, least(*parts, N_q * B_r)) + least(N_q, *parts)
    value = integer(to, at)
    assume(value >= 1)
    changed = replaced(formula, {N_q: to, B_r: N_q})
    assert integer(changed, at) == integer(formula, {**at, N_q: value, B_r: at[N_q]})
    assert replaced(formula, {symbol: Integer(n) for symbol, n in at.items()}) == integer(formula, at)


def test_needless_arguments_are_left_out() -> None:
    assert least(N_q, N_q + W_l) == N_q
    assert greatest(0, ceiling((B_c + W_l) / B_r)) == ceiling((B_c + W_l) / B_r)
    assert greatest(0, floor(-W_l / B_c)) == 0
    assert least(ceiling(N_q / B_r), least(N_k, N_k * s)).args == least(N_k, ceiling(N_q / B_r)).args


def test_a_width_may_be_zero_and_a_length_may_not() -> None:
    assert never_below(N_q, Integer(1))
    assert not never_below(W_l, Integer(1))
    assert never_below(W_l, Integer(0))
    assert not never_below(N_q, Integer(2))
