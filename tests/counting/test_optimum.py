"""Continuous optima and leading terms: known constants, and the exact solver as the judge."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from sympy import Rational, cancel, limit, simplify, sqrt

import iomodel
from iomodel.counting.optimum import leading_term
from iomodel.nests import DeclarationError, N_k, N_q, W_l, d, d_v
from tests.support.inside import BY_NAME, NAME_OF, M, N, b, m_1, n_1

BAND = iomodel.Window(left=128, right=0)


@pytest.mark.parametrize(
    ("algorithm", "mask", "leading"),
    [
        ("standard", "full", 4 * N**2),
        ("standard", "causal", 4 * N**2),
        ("flash1", "full", 6 * N**2 * d**2 / M),
        ("flash1", "causal", 3 * N**2 * d**2 / M),
        ("flash2", "full", 4 * N**2 * d**2 / M),
        ("flash2", "causal", 2 * N**2 * d**2 / M),
        ("flash2", BAND, 4 * N * d),  # a short window: everything once
        ("flash1", BAND, 6 * N * d),
        ("flash2", iomodel.Window(left=5), 2 * N**2 * d**2 / M),
        ("tiled_query", "full", 2 * N**3 * d / M),
        ("tiled_query", "causal", N**3 * d / M),
    ],
    ids=str,
)
def test_leading_terms(algorithm: str, mask: object, leading: object) -> None:
    best = iomodel.optimum(algorithm, mask)  # type: ignore[arg-type]
    assert best.leading == leading
    assert best.order == leading / leading.as_coeff_Mul()[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("algorithm", "mask", "leading"),
    [
        ("standard", "full", 7 * N**2),
        ("flash1", "full", 20 * N**2 * d**2 / M),
        ("flash1", "causal", 10 * N**2 * d**2 / M),
        ("flash2", "full", 16 * N**2 * d**2 / M),
        ("flash2", "causal", 8 * N**2 * d**2 / M),
        ("flash2", BAND, 13 * N * d),  # O, dO; K, V, dK, dV; Q, dO, dQ twice; zeros, dQ twice
        ("flash3", "full", 16 * N**2 * d**2 / M),
        ("two_pass", "full", 14 * N**2 * d**2 / M),  # 8 for dK and dV, 6 for dQ: less than with atomics
        ("two_pass", "causal", 7 * N**2 * d**2 / M),
    ],
    ids=str,
)
def test_leading_terms_of_backward_passes(algorithm: str, mask: object, leading: object) -> None:
    assert iomodel.optimum(algorithm, mask, direction="backward").leading == leading  # type: ignore[arg-type]


@pytest.mark.parametrize(("mask", "constant"), [("full", 16), ("causal", 8)])
def test_rows_begun_once_halve_under_a_causal_mask(mask: Literal["full", "causal"], constant: int) -> None:
    best = iomodel.optimum("flash1", mask, direction="backward", begin_once=True)
    assert best.leading == constant * N**2 * d**2 / M


@pytest.mark.parametrize(("algorithm", "constant"), [("flash1", 26), ("flash2", 20)])
def test_a_forward_and_a_backward_pass_add_up(algorithm: str, constant: int) -> None:
    both = iomodel.optimum(algorithm, direction="both")
    assert both.leading == constant * N**2 * d**2 / M
    forward, backward = (iomodel.optimum(algorithm, direction=way) for way in ("forward", "backward"))
    assert simplify(both.hbm_elements - forward.hbm_elements - backward.hbm_elements) == 0
    assert both.tiles["bwd_block_q"] == backward.tiles["block_q"]


def test_kernels_without_tiles_add_their_traffic() -> None:
    """dQ_acc in n slabs: zeroed once and read once, n N d each."""
    one, four = (
        iomodel.optimum("flash2", direction="backward", deterministic=True, dq_buffers=n).hbm_elements for n in (1, 4)
    )
    assert simplify(four - one - 6 * N_q * d) == 0


@pytest.mark.parametrize("mask", ["full", "causal", BAND])
def test_splits_cost_partial_results_only(mask: object) -> None:
    """Each of four splits loads Q and moves a partial O with its LSE out and in again."""
    one, four = (iomodel.optimum("split_kv", mask, splits=n).hbm_elements for n in (1, 4))  # type: ignore[arg-type]
    rows = N_q if mask == "full" else N
    assert simplify(four - one - 3 * rows * d - 8 * rows * (d_v + 1)) == 0


def test_the_optimum_for_a_small_cache() -> None:
    """2 sqrt(6) N^2 d / sqrt(M) at tiles of 2 : 3, whichever side of d^2 M is on; they fill the memory."""
    best = iomodel.optimum("small_cache")
    assert best.leading == 2 * sqrt(6) * N**2 * d / sqrt(M)
    assert best.order == N**2 * d / sqrt(M)
    assert cancel(best.tiles["block_q"] / best.tiles["block_kv"]).subs(d_v, d) == Rational(2, 3)
    footprint = iomodel.expressions("small_cache").footprint.subs(
        {BY_NAME[name]: at for name, at in best.tiles.items()}
    )
    assert simplify(footprint - M) == 0
    assert iomodel.optimum("small_cache", "causal").leading == sqrt(6) * N**2 * d / sqrt(M)
    for mask, says in [(BAND, "a window given; allowed: full or causal"), (iomodel.Documents([3]), "Documents")]:
        with pytest.raises(iomodel.InputError, match=f"mask: {says}"):
            iomodel.optimum("small_cache", mask)  # type: ignore[arg-type]


def test_tiled_standard_reads_p_once() -> None:
    """In d^2 << M a tile of O as wide as the head fits, so P is read once and 4 N^2 remains."""
    best = iomodel.optimum("standard", tiled=True)
    assert best.leading == 4 * N**2
    assert best.tiles == {
        "gemm1_m": sqrt(M + 1) - 1,
        "gemm1_n": sqrt(M + 1) - 1,
        "gemm2_m": (M - d_v) / (d_v + 1),
        "gemm2_n": d_v,
    }


def test_formulas_of_the_tiles() -> None:
    assert iomodel.optimum("flash2").tiles == {"block_q": (M - b * d - b * d_v) / (b + d + d_v + 2), "block_kv": b}
    assert iomodel.optimum("flash1").tiles == {
        "block_kv": (M - b * d - b * d_v - 4 * b) / (b + d + d_v),
        "block_q": b,
    }


def test_flash1_over_flash2_tends_to_three_halves() -> None:
    """At equal M and N -> oo, b = 1: (3d + 4)(2d + 1)(M - 2d) / (2d (2d + 3)(M - 2d - 4))."""
    first, second = (
        iomodel.optimum(name).hbm_elements.subs({N_q: N, N_k: N, d_v: d, b: 1}) for name in ("flash1", "flash2")
    )
    ratio = cancel(limit(first / N**2, N, "oo") / limit(second / N**2, N, "oo"))
    stated = (3 * d + 4) * (2 * d + 1) * (M - 2 * d) / (2 * d * (2 * d + 3) * (M - 2 * d - 4))
    assert cancel(ratio - stated) == 0
    assert limit(limit(ratio, M, "oo"), d, "oo") == Rational(3, 2)


NEAR = [(name, "forward", mask) for name in ("flash1", "flash2", "tiled_query") for mask in ("full", "causal", BAND)]
NEAR += [(name, "backward", mask) for name in ("flash1", "flash2", "two_pass") for mask in ("full", "causal", BAND)]
NEAR += [("small_cache", "forward", "full"), ("split_kv", "forward", "full"), ("standard", "backward", "causal")]


@pytest.mark.parametrize(("algorithm", "direction", "mask"), NEAR, ids=str)
def test_the_exact_optimum_comes_near_the_formula(algorithm: str, direction: Any, mask: Any) -> None:
    """Long sequence, much memory: rounding to whole tiles is all that is between them."""
    n, width, memory = 2**16, 64, {"tiled_query": 2**24, "small_cache": 2**12}.get(algorithm, 2**18)
    w = iomodel.Attention(q_len=n, head_dim=width, mask=mask, direction=direction)
    options = {"lse": False} if (algorithm, direction) == ("flash2", "forward") else {}
    options |= {"splits": 4} if algorithm == "split_kv" else {}
    options |= {"tiled": True} if algorithm == "standard" else {}
    exact = iomodel.solve(algorithm, w, sram_elements=memory, **options).cost.hbm_elements
    best = iomodel.optimum(algorithm, mask, direction, **options)
    point = {"length": n, "q_len": n, "kv_len": n, "head_dim": width, "value_dim": width, "least_block": 1,
             "sram_elements": memory, "window_left": 128, "window_right": 0}  # fmt: skip
    formula = best.hbm_elements.subs({s: point[NAME_OF[s]] for s in best.hbm_elements.free_symbols})
    assert 0.99 < exact / formula < 1.06


def test_an_optimum_that_is_not_symmetric() -> None:
    """Tiles fill the memory in the ratio of what they save; what has no such form is refused."""
    from iomodel.counting.optimum import _two_sided
    from iomodel.counting.structure import Part
    from iomodel.nests import key, query

    part = Part((), m_1, n_1, {m_1: query, n_1: key}, masked=False)
    tiles, seen = _two_sided(8 / m_1 + 2 / n_1 + 5, m_1 * n_1 + 3 * m_1 + n_1 + 7, part)
    assert cancel(tiles[m_1] / tiles[n_1]) == 4
    assert simplify((m_1 * n_1 + 3 * m_1 + n_1 + 7).subs(tiles) - M) == 0
    assert seen == 8 / m_1 + 2 / n_1
    assert limit(sqrt(M) * seen.subs(tiles), M, "oo") == 2 * sqrt(8 * 2)
    for traffic, footprint in [(1 / m_1 + 1 / n_1, m_1 + n_1), (1 / m_1 + 1 / n_1 + m_1, m_1 * n_1)]:
        with pytest.raises(DeclarationError, match=r"no formula for traffic .* in m_1 and n_1"):
            _two_sided(traffic, footprint, part)


def test_leading_term_of_a_sum() -> None:
    assert leading_term(3 * N * d + N**2 * d**2 / (M - d)) == N**2 * d**2 / M
    assert leading_term(N_q * d_v + N_k * W_l / M) == N * d


def test_an_optimum_prints() -> None:
    best = iomodel.optimum("flash2", BAND)
    assert best.to_dict()["order"] == "Theta(N*d)"
    assert best.to_dict()["mask"]["left"] == 128
    assert "leading term = 4*N*d" in str(best)
    assert best._repr_latex_().startswith("$$")


def test_bad_input_is_refused() -> None:
    with pytest.raises(iomodel.UnknownNameError, match="did you mean 'flash"):
        iomodel.optimum("flash9")
    with pytest.raises(iomodel.UnknownNameError, match="mask: 'diagonal' is unknown"):
        iomodel.optimum("flash2", "diagonal")  # type: ignore[arg-type]
    with pytest.raises(iomodel.UnknownNameError, match="option of flash2: 'tiled'"):
        iomodel.optimum("flash2", tiled=True)
    with pytest.raises(iomodel.InputError, match="direction: 'backward' given; allowed: forward, because tiled_query"):
        iomodel.optimum("tiled_query", direction="backward")
    with pytest.raises(iomodel.InputError, match="order: 'serpentine' given; allowed: 'plain', which has the same"):
        iomodel.optimum("flash2", order="serpentine")
    with pytest.raises(iomodel.InputError, match="splits: 0 given"):
        iomodel.optimum("split_kv", splits=0)
