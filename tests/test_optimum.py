"""Continuous optima and leading terms: known constants, and the exact solver as the judge."""

from __future__ import annotations

import pytest
from sympy import Rational, cancel, limit, sqrt

import iomodel
from iomodel.nest import DeclarationError
from iomodel.optimum import leading_term
from iomodel.symbols import NAME_OF, M, N, N_k, N_q, W_l, b, d, d_v, m_1, n_1

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


@pytest.mark.parametrize("algorithm", ["flash1", "flash2", "tiled_query"])
@pytest.mark.parametrize("mask", ["full", "causal", BAND])
def test_the_exact_optimum_comes_near_the_formula(algorithm: str, mask: object) -> None:
    """Long sequence, much memory: rounding to whole tiles is all that is between them."""
    n, width, memory = 2**16, 64, 2**18 if algorithm != "tiled_query" else 2**24
    w = iomodel.Attention(q_len=n, head_dim=width, mask=mask)  # type: ignore[arg-type]
    options = {"lse": False} if algorithm == "flash2" else {}
    exact = iomodel.solve(algorithm, w, sram_elements=memory, **options).cost.hbm_elements
    best = iomodel.optimum(algorithm, mask, **options)  # type: ignore[arg-type]
    point = {"length": n, "q_len": n, "kv_len": n, "head_dim": width, "value_dim": width, "least_block": 1,
             "sram_elements": memory, "window_left": 128, "window_right": 0}  # fmt: skip
    formula = best.hbm_elements.subs({s: point[NAME_OF[s]] for s in best.hbm_elements.free_symbols})
    assert 0.99 < exact / formula < 1.06


def test_an_optimum_without_symmetry_has_no_closed_form() -> None:
    from iomodel.optimum import _two_sided
    from iomodel.structure import Part
    from iomodel.tensors import key, query

    part = Part((), m_1, n_1, {m_1: query, n_1: key}, masked=False)
    with pytest.raises(DeclarationError, match="not symmetric in m_1 and n_1"):
        _two_sided(2 / m_1 + 1 / n_1, m_1 * n_1 + m_1 + n_1, part)
    with pytest.raises(DeclarationError, match="not symmetric"):
        _two_sided(1 / m_1 + 1 / n_1, m_1 * n_1 + 2 * m_1 + n_1, part)


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
    with pytest.raises(iomodel.UnknownNameError, match="did you mean 'flash2'"):
        iomodel.optimum("flash3")
    with pytest.raises(iomodel.UnknownNameError, match="mask: 'diagonal' is unknown"):
        iomodel.optimum("flash2", "diagonal")  # type: ignore[arg-type]
    with pytest.raises(iomodel.UnknownNameError, match="option of flash2: 'tiled'"):
        iomodel.optimum("flash2", tiled=True)
