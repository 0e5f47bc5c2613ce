"""A new algorithm is one file here, one reference kernel and one page; what is missing turns red, not silent."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from sympy import expand

import iomodel
from iomodel.algorithms import algorithm, discovered
from iomodel.bounds import FORMULAS
from iomodel.nest import Published
from iomodel.symbols import BY_NAME, NAME_OF, TILES, WORKLOAD
from iomodel.workload import Mask
from tests.strategies import DRAWN, VARIANTS, Variant, cases

ROOT = Path(__file__).parent.parent
MASKS: list[Mask] = [
    "full",
    "causal",
    *(iomodel.Window(left=left, right=right) for left, right in [(1, None), (None, 1), (1, 1)]),
]
PUBLISHED = [(name, form) for name in iomodel.list_algorithms() for form in algorithm(name).published]
each_algorithm = pytest.mark.parametrize("name", iomodel.list_algorithms())


def test_there_are_algorithms() -> None:
    assert {"standard", "flash1", "flash2", "tiled_query"} <= set(iomodel.list_algorithms())
    files = {path.stem for path in (ROOT / "iomodel" / "algorithms").glob("[!_]*.py")}
    assert set(iomodel.list_algorithms()) == files == set(discovered())


@each_algorithm
def test_it_has_a_reference_kernel(name: str) -> None:
    run = import_module(f"tests.reference.{name}").run
    assert {"Q", "K", "V", "left", "right", "align", "packed"} <= set(signature(run).parameters)


@each_algorithm
def test_its_reference_kernel_is_told_every_tile_and_option(name: str) -> None:
    known = set(signature(import_module(f"tests.reference.{name}").run).parameters)
    tiles = {tile for variant in VARIANTS if variant.algorithm == name for tile in variant.tiles}
    assert tiles | (set(algorithm(name).options) - {algorithm(name).tiled_by}) <= known


@each_algorithm
def test_it_has_a_page(name: str) -> None:
    page = ROOT / "docs" / "algorithms" / f"{name}.md"
    assert page.is_file()
    assert f'"{name}"' in page.read_text(encoding="utf-8")  # its code runs this algorithm


@each_algorithm
def test_it_is_compared_under_every_option(name: str) -> None:
    compared = [variant for variant in VARIANTS if variant.algorithm == name]
    for option, default in algorithm(name).options.items():
        if isinstance(default, bool):
            assert {variant.options[option] for variant in compared} == {False, True}
        else:
            assert type(default) in DRAWN
    assert compared
    for variant in compared:
        assert isinstance(cases(variant), st.SearchStrategy)


def test_a_night_compares_a_hundred_thousand_shapes() -> None:
    assert len(VARIANTS) * settings.get_profile("nightly").max_examples >= 100_000


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_its_formulas_keep_to_the_alphabet(variant: Variant, mask: Mask, packed: bool) -> None:
    e = iomodel.expressions(variant.algorithm, mask=mask, packed=packed, **variant.options)
    allowed = {entry.symbol for entry in (*WORKLOAD, *TILES)}
    for formula in (*e.reads.values(), *e.writes.values(), *e.quantities.values()):
        assert formula.free_symbols <= allowed
    assert {NAME_OF[symbol] for symbol in e.footprint.free_symbols} <= {entry.name for entry in WORKLOAD} | set(e.tiles)


@pytest.mark.parametrize(("name", "form"), PUBLISHED, ids=[f"{name}: {form.cite}" for name, form in PUBLISHED])
def test_a_published_form_is_the_derived_total(name: str, form: Published) -> None:
    derived = iomodel.expressions(name, mask="full", **form.options).subs(batch=1, heads=1, kv_heads=1, group=1)
    assert expand(derived.hbm_elements - form.elements) == 0
    assert form.elements.free_symbols <= set(BY_NAME.values())
    assert form.cite


@each_algorithm
def test_it_has_a_published_form(name: str) -> None:
    assert algorithm(name).published


@each_algorithm
def test_its_classes_have_bounds(name: str) -> None:
    assert algorithm(name).classes
    assert algorithm(name).classes <= FORMULAS.keys()


@each_algorithm
def test_it_names_a_paper(name: str) -> None:
    assert re.search(r"arXiv:\d{4}\.\d{5}", algorithm(name).cite)
    assert re.search(r"arXiv:\d{4}\.\d{5}", import_module(f"iomodel.algorithms.{name}").__doc__ or "")


@each_algorithm
def test_it_is_named_as_its_file(name: str) -> None:
    assert import_module(f"iomodel.algorithms.{name}").ALGORITHM.name == name
    assert algorithm(name).title
