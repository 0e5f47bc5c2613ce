"""Parts of the page: an edit makes anew what follows from it, and a kept part is that which is made."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from sympy import Dummy
from sympy.printing.mathml import MathMLPresentationPrinter

from iomodel.algorithms import algorithm
from iomodel.explorer import parts
from iomodel.explorer.built import shipped_algorithms
from iomodel.explorer.call_kinds import answer, kinds
from iomodel.explorer.parts import Merged, kept, meaning_of, part, state_of, state_of_plans
from iomodel.explorer.typeset import SHORT, Typeset
from tests.support.inside import FloorSum, derived, quick

NAMES = tuple(shipped_algorithms())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the sources, which a test edits."""
    copy = tmp_path / "iomodel"
    shutil.copytree(derived.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "_*s", "_derived", "static"))
    monkeypatch.setattr(derived, "PACKAGE", copy)
    clear()
    yield copy
    clear()


def clear() -> None:
    for cached in (state_of, state_of_plans, derived.digest):
        cached.cache_clear()


def states() -> dict[str, str]:
    clear()
    return {"plans": state_of_plans(NAMES), **{name: state_of(name) for name in NAMES}}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("algorithms/two_pass.py", {"two_pass"}),
        ("algorithms/flash3.py", {"flash3"}),
        ("algorithms/_flash3_residency.py", {"flash3", "split_kv"}),
        ("algorithms/gemm.py", set()),
        ("planning/plan.py", {"plans"}),
        ("counting/folds.py", {"plans", *NAMES}),
        ("cli/values.py", set()),
        ("plots/canvas.py", set()),
    ],
)
def test_an_edit_changes_the_parts_that_follow_from_it(package: Path, file: str, changed: set[str]) -> None:
    before = states()
    with (package / file).open("a", encoding="utf-8") as source:
        source.write("\n# an edit\n")
    after = states()
    assert {name for name in before if before[name] != after[name]} == changed


@pytest.mark.parametrize("name", ["flash3", "gemm"])
def test_plans_follow_from_the_facts_and_the_forward_nests_of_algorithms(name: str) -> None:
    declared = algorithm(name).declaration  # type: ignore[attr-defined]
    known = declared.implementations
    meaning = meaning_of(declared)
    assert meaning == meaning_of(algorithm(name))
    assert " at 0x" not in meaning
    assert meaning_of(replace(declared, cite="another", title="another")) == meaning
    if name == "flash3":
        assert meaning_of(replace(declared, backward=algorithm("flash2").backward)) == meaning
    changed = [replace(declared, preference=9)]
    if known:
        changed.append(replace(declared, implementations=(*known, *known[:1])))
    if name == "flash3":
        changed.append(replace(declared, declare=algorithm("flash1").declare))
    assert all(meaning_of(other) != meaning for other in changed)


def test_a_kept_part_is_that_which_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(derived, "_folder", lambda: tmp_path / "derived")
    monkeypatch.setattr(derived, "pending", {})
    made = part("tiled_query")
    derived.keep()
    monkeypatch.setattr(parts, "_made", None)  # what is kept is not made
    again = part("tiled_query")
    assert again == json.loads(json.dumps(made))
    tables = []
    for one in (made, again):
        merged = Merged()
        merged.add(one)
        tables.append((merged.nodes.texts(), merged.collected("calls"), merged.collected("clock"), [*merged.lines]))
    assert tables[0] == tables[1]
    assert kept("part-tiled_query", "another state", lambda: "made anew") == "made anew"


def test_factors_in_front_of_sums_change_no_value() -> None:
    typeset, choose = Typeset(), Random(3)
    formulas = {expr for kind in [*kinds(["two_pass"])][:6] for expr in answer(kind).expressions.reads.values()}
    assert len(formulas) > 3
    for formula in formulas:
        factored = typeset.factored(formula)
        point = {symbol: choose.randint(1, 99) for symbol in formula.free_symbols | formula.atoms(Dummy)}
        assert factored.subs(point) == formula.subs(point)
        assert factored.count_ops() <= formula.count_ops()


def test_a_line_is_that_of_the_printer_of_sympy() -> None:
    typeset, printer = Typeset(), MathMLPresentationPrinter()
    formulas = {expr for kind in [*kinds(["two_pass"])][:6] for expr in answer(kind).expressions.reads.values()}
    short = [formula for formula in formulas if formula.count_ops() < SHORT and not formula.has(FloorSum)]
    assert len(short) > 2
    for formula in short:
        text = printer.doprint(typeset.factored(quick(formula))).replace("&InvisibleTimes;", "&#8290;")
        assert typeset.lines[typeset.line(formula)] == text
