"""What may not be imported, what may not be called, and what is public."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
from sympy import Add, Symbol

import iomodel
from iomodel.counting.evaluation.codegen import source
from iomodel.counting.evaluation.integral import integral

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "iomodel").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
REFERENCES = [path for path in TESTS if "reference" in path.parts]
INSTRUMENT = "iomodel.testing.machine"  # the counting memory, which imports nothing but errors
# Each turns text into code. PyYAML's load builds whatever object its loader allows.
# Folders of tests that are not named after the one room whose inside they test; None is every room.
ROOMS_OF = {
    "fuzz": None, "laws": None, "support": None, "reference": {"testing"}, "with_gpu": {"devices"},
    "with_torch": {"devices", "torch"},
}  # fmt: skip
FORBIDDEN = {"eval", "exec", "sympify", "parse_expr", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}


def faults(source: str) -> list[str]:
    """The forbidden calls, by line; a name is forbidden by itself and as an attribute of anything."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [(node.lineno, ast.unparse(node.func)) for node in calls]
    return [f"{line}: {name}" for line, name in names if {name, name.rpartition(".")[2]} & FORBIDDEN]


def imported(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {"." * node.level + (node.module or "") for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name for name in names if name.partition(".")[0] == "iomodel"}


def insides(source: str) -> set[str]:
    """The rooms whose modules, or names that the room does not list as public, are imported."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module]
    names = [(node.module.split("."), alias.name) for node in nodes for alias in node.names]
    names += [(name.split("."), "") for name in imported(source)]
    return {
        path[1]
        for path, name in names
        if path[0] == "iomodel" and len(path) > 1 and not (len(path) == 2 and public(path[1], name))
    }


def public(room: str, name: str) -> bool:
    """The room lists the name as public; "" is the room itself."""
    names = getattr(import_module(f"iomodel.{room}"), "__all__", ())
    return name in names or (not name and bool(names))


def test_tests_import_the_inside_of_their_own_room_alone() -> None:
    """Others use public names, or tests.support, so that a name that moves is edited in two places at most."""
    faults = []
    for path in TESTS:
        folder = path.relative_to(ROOT / "tests").parts[0]
        own = ROOMS_OF.get(folder, {folder})
        if own is not None and (others := insides(path.read_text(encoding="utf-8")) - own):
            faults.append(f"{path.relative_to(ROOT)}: inside of {', '.join(sorted(others))}")
    assert not faults


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_reference_kernels_import_the_counting_memory_and_nothing_else_of_the_library(path: Path) -> None:
    assert imported(path.read_text(encoding="utf-8")) <= {INSTRUMENT}


def test_the_counting_memory_imports_nothing_but_errors() -> None:
    """So that instrument and formulas share nothing but the words of messages: followed through whatever it imports."""
    found, ahead = set(), {INSTRUMENT}
    while ahead:
        name = ahead.pop()
        found.add(name)
        path = ROOT.joinpath(*name.split("."))
        source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
        ahead |= imported(source) - found
    messages = {"iomodel.errors", "iomodel.errors.synonyms"}
    assert {name for name in found if not name.startswith("iomodel.testing.")} == messages
    assert found - messages == {
        f"iomodel.testing.{name}" for name in ("counted_run", "hbm", "machine", "sram", "widths")
    }


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_text_becomes_code(path: Path) -> None:
    found = faults(path.read_text(encoding="utf-8"))
    if (
        path == ROOT / "iomodel" / "counting" / "evaluation" / "definitions.py"
    ):  # formulas become functions here, and nowhere else
        assert [fault.partition(": ")[2] for fault in found] == ["exec"]
    else:
        assert found == []


def test_the_text_of_a_formula_holds_no_name_that_a_user_chose() -> None:
    evil = Symbol("x): import os  #", integer=True, positive=True)
    clash = [Symbol(name, integer=True, positive=True) for name in ("t0", "formulas", "Maximum", "for", "v0")]
    text = source([integral(evil * Add(*clash) ** 2 + Add(*clash))], [*clash, evil], [evil])
    assert re.findall(r"[A-Za-z_]\w*", text) == re.findall(r"def|formulas|return|[vt]\d", text)
    formula = (evil + clash[0]) * Add(*clash) + Add(*clash)
    assert iomodel.theory.evaluate(formula, {evil: 7, **dict.fromkeys(clash, 2)}) == 9 * 10 + 10


@pytest.mark.parametrize("call", ["eval('1')", "sympy.sympify(x)", "parse_expr(x)", "exec(x)", "yaml.load(f, L)"])
def test_a_forbidden_call_is_found(call: str) -> None:
    assert faults(f"def f(x):\n    return {call}\n")


def test_the_public_names_are_sorted_and_there() -> None:
    assert iomodel.__all__ == sorted(set(iomodel.__all__))
    assert all(hasattr(iomodel, name) for name in iomodel.__all__)
    assert SOURCES
    assert REFERENCES
