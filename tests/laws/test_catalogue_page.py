"""The tables of docs/algorithms/index.md, and the exceptions on docs/features.md, are those of the declarations."""

import re
from math import isclose
from pathlib import Path

import pytest
from sympy import Expr, Symbol, ceiling, expand
from sympy.parsing.sympy_parser import (
    convert_xor,
    implicit_multiplication_application,
    parse_expr,
    standard_transformations,
)

import iomodel
from iomodel.algorithms import algorithm, discovered
from iomodel.nests.features import FEATURES
from iomodel.nests.symbols import BY_NAME, N_k, N_q, d, d_v

PAGE = (Path(__file__).parents[2] / "docs" / "algorithms" / "index.md").read_text(encoding="utf-8")
ROWS = {row[1]: row[2] for row in re.finditer(r"^\| \[(\w+)\]\(\w+\.md\) \|.*\| (.*) \|$", PAGE, re.MULTILINE)}
"""The last column of each row."""
LETTERS = {str(symbol).replace(",", "_"): symbol for symbol in BY_NAME.values()}
GRAMMAR = (*standard_transformations, implicit_multiplication_application, convert_xor)
N = Symbol("N", positive=True)
HEAD = {"batch": 1, "heads": 1, "kv_heads": 1, "group": 1}


def formulas(name: str) -> list[Expr]:
    """Read the formulas in the last column of a row."""
    texts = re.findall(r"\$([^$]+)\$", ROWS[name])
    plain = [re.sub(r"\\lceil (.*?) \\rceil", r"ceiling(\1)", text) for text in texts]
    return [parse_expr(re.sub(r"[{}]", "", text), {**LETTERS, "ceiling": ceiling}, GRAMMAR) for text in plain]


EXACT = [name for name in iomodel.list_algorithms() if not algorithm(name).approximates and "small M" not in ROWS[name]]
LINEAR = ["linformer", "linear_transformer", "performer", "mamba1", "mamba2"]
SPARSE = ["sparse_transformer", "routing_transformer", "reformer", "nsa", "moba", "dsa"]


def test_the_tables_have_every_approximation() -> None:
    assert {*LINEAR, *SPARSE, "loki"} == {name for name in iomodel.list_algorithms() if algorithm(name).approximates}


@pytest.mark.parametrize("name", EXACT)
def test_the_leading_terms_are_those_of_the_optima(name: str) -> None:
    directions = [direction for direction in algorithm(name).directions if direction != "both"]
    leading = [str(iomodel.optimum(name, direction=direction).leading) for direction in directions]
    assert leading == [str(formula) for formula in formulas(name)]


@pytest.mark.parametrize("name", LINEAR)
def test_the_traffic_of_linear_methods_grows_as_stated(name: str) -> None:
    masks = algorithm(name).masks or ("full", "causal")
    for mask, added in zip(masks, formulas(name), strict=True):
        moved = iomodel.expressions(name, mask).subs(**HEAD).hbm_elements
        smooth = expand(moved.replace(ceiling, lambda x: x).subs({N_q: N, N_k: N, d_v: d}))
        assert smooth.coeff(N, 2) == 0 == expand(smooth.coeff(N, 1) - added)


def test_the_traffic_of_a_step_of_loki_grows_as_stated() -> None:
    step = iomodel.expressions("loki").subs(**HEAD, q_len=1, block_q=1, block_kv=1).hbm_elements
    assert [expand(step).coeff(N_k, 1)] == formulas("loki")


@pytest.mark.parametrize(
    ("name", "length"),
    [("linformer", 2 * BY_NAME["projected"]), ("linear_transformer", d), ("performer", 2 * BY_NAME["features"])],
)
def test_the_flops_of_linear_methods_cross_where_their_pages_say(name: str, length: Expr) -> None:
    flops = (
        iomodel.expressions(one).subs(**HEAD).flops.subs({N_q: length, N_k: length, d_v: d}) for one in (name, "flash2")
    )
    ours, exact = (expand(value.replace(ceiling, lambda x: x)) for value in flops)
    assert expand(ours - exact) == 0


SHARES = {
    ("sparse_transformer", "causal", "second"): lambda f: f[0],
    ("sparse_transformer", "causal", "fixed second"): lambda f: f[1],
    ("sparse_transformer", "causal", ""): lambda _: 0,
    ("sparse_transformer", "causal", "fixed"): lambda _: 0,
    ("routing_transformer", "full", ""): lambda f: f[0],
    ("routing_transformer", "causal", ""): lambda f: f[1],
    ("reformer", "full", ""): lambda f: f[0],
    ("reformer", "causal", ""): lambda f: 2 * f[0],
    ("nsa", "causal", ""): lambda f: f[0],
    ("moba", "causal", ""): lambda f: f[0],
    ("dsa", "full", ""): lambda f: f[0],
    ("dsa", "causal", ""): lambda f: f[0],
}
"""The share of each form, of the formulas of a row."""


@pytest.mark.parametrize(("name", "mask", "on"), SHARES)
def test_the_flops_of_sparse_methods_have_the_stated_share(name: str, mask: str, on: str) -> None:
    heads, switches = 128 if name == "dsa" else 1, dict.fromkeys(on.split(), True)
    w = iomodel.Attention(q_len=2**40, head_dim=64, mask=mask, heads=heads, kv_heads=1)
    tiles = dict.fromkeys(iomodel.expressions(name, mask, **switches).tiles, 1)
    exact = iomodel.cost("flash2", w, {"block_q": 1, "block_kv": 1}).flops
    point = {BY_NAME[key]: value for key, value in {**algorithm(name).options, **w.numbers}.items() if key in BY_NAME}
    stated = float(SHARES[name, mask, on]([formula.subs(point) for formula in formulas(name)] + [0]))
    assert isclose(iomodel.cost(name, w, tiles, **switches).flops / exact, stated, rel_tol=1e-6, abs_tol=1e-6)


@pytest.mark.parametrize("name", iomodel.list_algorithms("recurrence"))
def test_the_traffic_of_recurrences_grows_as_stated(name: str) -> None:
    moved = iomodel.expressions(name).subs(batch=1, heads=1, key_heads=1).hbm_elements.subs(d_v, d)
    tokens, chunk = BY_NAME["tokens"], BY_NAME["block_chunk"]
    whole = moved.subs(tokens, 7 * chunk) / (7 * chunk)  # whole chunks
    assert expand(whole - formulas(name)[0]) == 0


def test_the_algorithms_lack_the_features_that_the_page_of_features_says() -> None:
    lacking = {
        name: {way: set(some) for way, some in declaration.without.items()}
        for name, declaration in discovered().items()
        if declaration.without
    }
    as_they_are = {"paged", "latent", "kv_dtype", "head_scales", "token_scales"}
    assert lacking == {
        "eager": {"forward": as_they_are, "backward": as_they_are | {"softcap"}},
        "small_cache": {"forward": set(FEATURES)},
        "two_products": {"forward": set(FEATURES) - {"latent"}, "backward": set(FEATURES)},
        "standard": {"forward": {"paged"}, "backward": {"softcap"}},
    }
