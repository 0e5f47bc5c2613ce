"""Nothing beats a lower bound, and no bound is applied outside its class."""

from __future__ import annotations

from math import ceil, floor, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import discovered
from iomodel.bounds import FORMULAS, A
from iomodel.symbols import M, d, d_v
from tests.strategies import VARIANTS, Case, cases


@given(case=st.sampled_from(VARIANTS).flatmap(cases))
def test_no_count_beats_a_bound_at_the_memory_it_uses(case: Case) -> None:
    cost = case.cost()
    bounds = iomodel.lower_bounds(case.algorithm, case.workload, cost.footprint_elements)
    for bound in bounds.values():
        assert bound.elements <= cost.hbm_elements, bound
        assert bound.bytes <= cost.hbm_bytes, bound


@given(case=st.sampled_from(VARIANTS).flatmap(cases))
def test_no_reference_kernel_beats_a_bound(case: Case) -> None:
    run = case.run()
    moved = sum(run.reads.values()) + sum(run.writes.values())
    for bound in iomodel.lower_bounds(case.algorithm, case.workload, run.sram_peak).values():
        assert bound.elements <= moved, bound


@given(
    lengths=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    widths=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    heads=st.integers(1, 3),
    size=st.integers(1, 5000),
)
def test_integers_round_the_formulas_towards_safety(
    lengths: tuple[int, int], widths: tuple[int, int], heads: int, size: int
) -> None:
    """The integer never exceeds the real bound rounded up, nor falls more than the rounding of a root below it."""
    (n_q, n_k), (width, value) = lengths, widths
    w = iomodel.Attention(heads=heads, q_len=n_q, kv_len=n_k, head_dim=width, value_dim=value)
    point = {A: heads * n_q * n_k, d: width, d_v: value, M: size}
    found = iomodel.lower_bounds("flash2", w, size)
    for name, formula in FORMULAS.items():
        if name == "row-atomic" and size <= max(width, value):
            assert name not in found
            continue
        real = float(formula.subs(point))
        if name in found:
            assert found[name].elements <= ceil(real + 1e-9 * abs(real))
            slack = 2 + real / sqrt(size)  # the root of `exact` is rounded up by at most one in sqrt(3 M) d
            assert found[name].elements >= floor(real) - slack
        else:
            assert real <= 1 + 1e-9


def test_known_values() -> None:
    """N = 4096, d = 64, M = 51200: 4 N d, 4 N^2 d^2 / M, 2 N^2 d^2 / (M - d) and theorem E by pocket calculator."""
    w = iomodel.Attention(q_len=4096, head_dim=64)
    found = iomodel.lower_bounds("flash2", w, 51200)
    assert {name: bound.elements for name, bound in found.items()} == {
        "compulsory": 4 * 4096 * 64,
        "fixed-split": ceil(4 * 4096**2 * 64**2 / 51200),
        "row-atomic": pytest.approx(2 * 4096**2 * 64**2 / (51200 - 64), abs=2),
        "exact": pytest.approx(4096**2 * 64**2 / (51200 + sqrt(3) * 64 * sqrt(51200)) - 51200, abs=20),
    }
    assert found["compulsory"].bytes == 2 * found["compulsory"].elements


def test_bounds_keep_to_their_class() -> None:
    w = iomodel.Attention(q_len=4096, head_dim=64)
    for name, algorithm in discovered().items():
        assert set(iomodel.lower_bounds(name, w, 51200)) == {"compulsory", *algorithm.classes}
    assert discovered()["standard"].classes == {"exact"}
    assert "fixed-split" not in discovered()["tiled_query"].classes  # K's buffer becomes V's


def test_compulsory_leaves_out_what_no_one_sees() -> None:
    """Bottom-right causal, 5 queries and 2 keys: the first 3 queries see nothing and need no load of Q."""
    w = iomodel.Attention(q_len=5, kv_len=2, head_dim=4, mask="causal")
    assert iomodel.lower_bounds("flash2", w, 10**6)["compulsory"].elements == 2 * 4 + 2 * 4 + 2 * 4 + 5 * 4
    top_left = iomodel.Attention(
        q_len=2, kv_len=5, head_dim=4, heads=4, kv_heads=2, mask=iomodel.Window(right=0, align="top-left")
    )
    seen = 2 * 4
    assert iomodel.lower_bounds("flash2", top_left, 10**6)["compulsory"].elements == 4 * 2 * seen + 2 * 2 * seen


@pytest.mark.parametrize("size", [0, -1, 1.5, float("nan"), True, None])
def test_bad_memory_is_refused(size: object) -> None:
    w = iomodel.Attention(q_len=8, head_dim=4)
    with pytest.raises(iomodel.InputError, match="sram_elements"):
        iomodel.lower_bounds("flash2", w, size)  # type: ignore[arg-type]


def test_bad_workload_is_refused() -> None:
    with pytest.raises(iomodel.InputError, match="workload"):
        iomodel.lower_bounds("flash2", None, 1)  # type: ignore[arg-type]
