"""A new algorithm is one file here, one reference kernel and one page; what is missing turns red, not silent."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from sympy import expand

import iomodel
from iomodel.algorithms import algorithm, discovered
from iomodel.counting.bands import TABULATED, Count
from iomodel.counting.bound_formulas import FORMULAS
from iomodel.counting.mask_kind import PAGES
from iomodel.nests.algorithm import Published
from iomodel.nests.alphabet import (
    OPTIONS,
    TILES,
    WORKLOAD,
)
from iomodel.nests.features import FEATURES
from iomodel.nests.symbols import (
    BY_NAME,
    NAME_OF,
)
from iomodel.nests.tensors import split
from iomodel.workloads.call import CACHE_ONLY, Call, Mask
from tests.support.strategies import APPROXIMATE, DRAWN, DRAWN_FOR, EVERY, VARIANTS, Variant, cases

ROOT = Path(__file__).parents[2]
MASKS: list[Mask] = [
    "full",
    "causal",
    *(iomodel.Window(left=left, right=right) for left, right in [(1, None), (None, 1), (1, 1)]),
]
PUBLISHED = [(name, form) for name in iomodel.list_algorithms() for form in algorithm(name).published]
TABLE = iomodel.BlockMask([[True]], block_q=1, block_kv=1)
each_algorithm = pytest.mark.parametrize("name", iomodel.list_algorithms())
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str, scope="module")


class Way(NamedTuple):
    """An algorithm in a direction of its own."""

    name: str
    direction: str

    def __str__(self) -> str:
        return f"{self.name} {self.direction}"


WAYS = [Way(name, way) for name in iomodel.list_algorithms() for way in algorithm(name).directions if way != "both"]
each_way = pytest.mark.parametrize("way", WAYS, ids=str)


def parameters(way: Way) -> set[str]:
    """What the reference kernel is told."""
    folder = "reference.backward" if way.direction == "backward" else "reference"
    return set(signature(import_module(f"tests.{folder}.{way.name}").run).parameters)


def test_there_are_algorithms() -> None:
    assert {"standard", "flash1", "flash2", "flash3", "tiled_query", "split_kv", "small_cache", "two_pass"} <= set(
        iomodel.list_algorithms()
    )
    files = {path.stem for path in (ROOT / "iomodel" / "algorithms").glob("[!_]*.py")}
    kinds = ("attention", "linear", "mlp", "cross_entropy", "recurrence", "elementwise")
    named = {name for kind in kinds[:-1] for name in iomodel.list_algorithms(kind)}
    assert {*named, "elementwise", "sampling"} == files  # two files declare all elementwise kernels
    assert [*discovered()] == sorted(name for kind in kinds for name in iomodel.list_algorithms(kind))


@each_way
def test_it_has_a_reference_kernel(way: Way) -> None:
    if algorithm(way.name).approximates:
        assert {"Q", "K", "V", "right", "capacity"} <= parameters(way)
        return
    taken = {"Q", "K", "V", "left", "right", "align", "seen", "packed"}
    assert taken | ({"dO", "saved"} if way.direction == "backward" else {"extras"}) <= parameters(way)


@each_way
def test_its_reference_kernel_is_told_every_tile_and_option(way: Way) -> None:
    compared = [variant for variant in EVERY if (variant.algorithm, variant.direction) == way]
    tiles = {tile for variant in compared for tile in variant.tiles}
    options = set(algorithm(way.name).takes(way.direction)) - {algorithm(way.name).tiled_by}
    assert compared
    assert tiles | options <= parameters(way)


@each_algorithm
def test_every_option_is_one_of_some_direction(name: str) -> None:
    found = algorithm(name)
    directions = set(found.directions) - {"both"}
    assert set(found.options) == set().union(*(found.takes(direction) for direction in directions))
    assert found.saved.keys() <= found.takes().keys() if "forward" in directions else not found.saved


@each_algorithm
def test_it_has_a_page(name: str) -> None:
    page = ROOT / "docs" / "algorithms" / f"{name}.md"
    assert page.is_file()
    assert f'"{name}"' in page.read_text(encoding="utf-8")  # its code runs this algorithm


@each_way
def test_it_is_compared_under_every_option(way: Way) -> None:
    compared = [variant for variant in EVERY if (variant.algorithm, variant.direction) == way]
    for option, default in algorithm(way.name).takes(way.direction).items():
        if isinstance(default, bool):
            assert {variant.options[option] for variant in compared} == {False, True}
        elif algorithm(way.name).approximates:
            assert option in DRAWN_FOR
        else:
            assert type(default) in DRAWN
    for variant in compared:
        assert isinstance(cases(variant), st.SearchStrategy)


def test_a_night_compares_a_hundred_thousand_shapes() -> None:
    assert len(VARIANTS) * settings.get_profile("nightly").max_examples >= 100_000


@pytest.mark.parametrize("variant", APPROXIMATE, ids=str)
def test_an_approximation_keeps_to_the_alphabet(variant: Variant) -> None:
    for mask in algorithm(variant.algorithm).masks:
        stays_within(iomodel.expressions(variant.algorithm, mask, variant.direction, **variant.options))


@each_algorithm
def test_an_approximation_says_what_it_is(name: str) -> None:
    """Which masks it takes; and nothing that only an exact algorithm has."""
    found = algorithm(name)
    if not found.approximates:
        assert not found.masks
        return
    assert found.masks
    assert set(found.masks) <= {"full", "causal"}
    assert found.directions == ("forward",)
    assert not any([found.classes, found.without, found.saved, found.tiled_by])


@each_algorithm
def test_its_requirements_say_what_is_allowed(name: str) -> None:
    found = algorithm(name)
    for requirement in found.requires:
        names = {NAME_OF[symbol] for symbol in requirement.holds.free_symbols}
        assert requirement.field in names
        told = dict.fromkeys([*names, "most"], 1)
        assert "{" not in requirement.allowed.format(**told)
        assert {field for field, _ in requirement.given} <= {*found.options, "mask"}


@each_variant
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_its_formulas_keep_to_the_alphabet(variant: Variant, mask: Mask, packed: bool) -> None:
    stays_within(iomodel.expressions(variant.algorithm, mask, variant.direction, packed=packed, **variant.options))


def known(variant: Variant) -> list[str]:
    """The features that a variant has."""
    served = set(FEATURES) - set(CACHE_ONLY if variant.direction == "backward" else ())
    return sorted(served - variant.without)


FEATURED = [(variant, name) for variant in VARIANTS for name in known(variant)]


@pytest.mark.parametrize(("variant", "name"), FEATURED, ids=str)
def test_its_formulas_keep_to_the_alphabet_with_every_feature(variant: Variant, name: str) -> None:
    for mask in ("full", "causal") if name == "paged" else ("causal", TABLE):
        stays_within(iomodel.expressions(variant.algorithm, mask, variant.direction, **variant.options, **{name: True}))


@pytest.mark.parametrize("name", [name for name in iomodel.list_algorithms() if "both" in algorithm(name).directions])
def test_its_formulas_keep_to_the_alphabet_in_both_directions(name: str) -> None:
    e = iomodel.expressions(name, "causal", "both")
    stays_within(e)
    assert set(e.own_tiles) <= set(iomodel.expressions(name, "causal", "both").tiles)


def stays_within(e: iomodel.results.Expressions) -> None:
    """The formulas speak of the workload, of the options that are numbers, and of the tiles that are told."""
    tiles = {BY_NAME[name] for name in e.tiles}
    options = {entry.symbol for entry in OPTIONS if entry.name in algorithm(e.algorithm).takes(e.direction)}
    allowed = {entry.symbol for entry in WORKLOAD} | options | tiles
    assert tiles <= {entry.symbol for entry in TILES}
    for formula in (*e.reads.values(), *e.writes.values(), *e.quantities.values()):
        assert formula.free_symbols <= allowed
        for node in formula.atoms(Count):  # of tiles, or of a split of whole tiles; lengths come with the data
            quantity, outer, *sizes = node.args
            assert str(quantity) in {*TABULATED, *PAGES.values()}
            assert str(outer) in {"query", "key"}
            free = set().union(*(size.free_symbols for size in sizes if size != split.chunk))
            assert free <= tiles | {BY_NAME["group"]}


@pytest.mark.parametrize(("name", "form"), PUBLISHED, ids=[f"{name}: {form.cite}" for name, form in PUBLISHED])
def test_a_published_form_is_the_derived_total(name: str, form: Published) -> None:
    masks: Any = algorithm(name).masks or ("full",)
    found = iomodel.expressions(name, masks[0], form.direction, **form.options)
    derived = found.subs(batch=1, heads=1, kv_heads=1, group=1)
    assert expand(derived.hbm_elements - form.elements) == 0
    assert form.elements.free_symbols <= set(BY_NAME.values())
    assert form.cite


@each_way
def test_it_has_a_published_form(way: Way) -> None:
    assert any(form.direction == way.direction for form in algorithm(way.name).published)


@each_algorithm
def test_its_published_forms_are_of_its_directions(name: str) -> None:
    found = algorithm(name)
    for form in found.published:
        assert form.direction in set(found.directions) - {"both"}
        assert form.options.keys() <= found.takes(form.direction).keys()


@each_algorithm
def test_its_classes_have_bounds(name: str) -> None:
    """Every algorithm that computes attention exactly is in a class, and an approximation in none."""
    found = algorithm(name)
    assert bool(found.classes) == (not found.approximates)
    assert found.classes <= FORMULAS.keys()


@each_algorithm
def test_what_it_lacks_is_a_feature(name: str) -> None:
    found = algorithm(name)
    assert found.without.keys() <= set(found.directions) - {"both"}
    for direction, lacked in found.without.items():
        assert lacked <= FEATURES.keys(), direction


CALL = {"q_len": 4, "head_dim": 2, "value_dim": 1, "heads": 2, "kv_heads": 1}
SWITCHED: dict[str, dict[str, Any]] = {
    "latent": {"latent": True},
    "kv_dtype": {"kv_dtype": "fp8"},
    "head_scales": {"kv_scales": "head"},
    "token_scales": {"kv_scales": "token"},
    "paged": {"page_size": 2},
    "bias": {"bias": True},
    "softcap": {"softcap": 1.0},
    "alibi": {"alibi": True},
    "sinks": {"sinks": True},
    "dropout": {"dropout": 0.1},
}


def test_every_feature_is_one_of_a_call() -> None:
    """And the other way round: each can be asked for, alone, and is put on a nest."""
    assert SWITCHED.keys() == FEATURES.keys()
    assert iomodel.Attention(**CALL).features == ()
    for name, given in SWITCHED.items():
        assert iomodel.Attention(**CALL, **given).features == (name,)


def test_a_call_tells_its_features_in_the_order_in_which_they_are_put_on() -> None:
    apart = {name: given for name, given in SWITCHED.items() if name not in {"latent", "head_scales"}}
    everything = iomodel.Attention(
        **CALL, **{field: value for given in apart.values() for field, value in given.items()}
    )
    assert list(everything.features) == [name for name in FEATURES if name in apart]


def test_every_other_field_of_a_call_is_of_every_algorithm() -> None:
    """A field that no feature answers to is one that each algorithm counts with: a new one needs a thought here."""
    plain = {"heads", "kv_heads", "head_dim", "value_dim", "dtype", "mask", "direction"}
    switched = {field for given in SWITCHED.values() for field in given}
    assert set(Call.model_fields) == plain | switched


@each_algorithm
def test_it_names_a_paper(name: str) -> None:
    assert re.search(r"arXiv:\d{4}\.\d{5}", algorithm(name).cite)
    assert re.search(r"arXiv:\d{4}\.\d{5}", import_module(f"iomodel.algorithms.{name}").__doc__ or "")


@each_algorithm
def test_it_is_named_as_its_file(name: str) -> None:
    assert import_module(f"iomodel.algorithms.{name}").ALGORITHM.name == name
    assert algorithm(name).title
