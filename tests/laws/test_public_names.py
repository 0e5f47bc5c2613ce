"""The public names: of the root, and of the public rooms."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from inspect import isfunction
from pathlib import Path
from pkgutil import iter_modules

import pytest
import yaml

import iomodel
from tests.support.public_names import MODULES, MOVED, PUBLIC, ROOMS, ROOT

ROOM_NAMES = [(room, name) for room in ROOMS for name in getattr(iomodel, room).__all__]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there(name: str) -> None:
    assert PUBLIC[name].__module__.startswith("iomodel.")


@pytest.mark.parametrize("name", iomodel.nests.__all__)
def test_a_name_of_the_language_is_there(name: str) -> None:
    assert name in dir(iomodel.nests)
    assert getattr(iomodel.nests, name) is not None


@pytest.mark.parametrize(("room", "name"), ROOM_NAMES)
def test_a_room_has_the_value_of_the_public_name(room: str, name: str) -> None:
    value = getattr(getattr(iomodel, room), name)
    assert value.__name__ == name
    assert PUBLIC.get(name, value) is value


@pytest.mark.parametrize("name", MOVED)
def test_an_old_name_is_that_of_its_room_and_warns_where_it_is_used(name: str) -> None:
    text = f"iomodel.{name}: deprecated since 0.1, removed in 0.3; use iomodel.{MOVED[name]}.{name}"
    for line in (f"iomodel.{name}", f"from iomodel import {name}"):
        with pytest.warns(DeprecationWarning, match=re.escape(text)) as warned:
            exec(compile(f"import iomodel\n{line}", "a program", "exec"), {})
        assert {(str(each.message), each.filename, each.lineno) for each in warned} == {(text, "a program", 2)}
    with pytest.warns(DeprecationWarning, match=f"use iomodel.{MOVED[name]}"):
        assert getattr(iomodel, name) is PUBLIC[name]
    assert name not in vars(iomodel)


def test_no_room_hides_a_public_function() -> None:
    rooms = {info.name for info in iter_modules(iomodel.__path__)}
    assert not rooms & PUBLIC.keys()
    assert set(MODULES) <= rooms


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_needs_no_import_of_its_own(name: str) -> None:
    code = f"import iomodel\nassert iomodel.{name}.__name__ == 'iomodel.{name}'\nassert {name!r} in dir(iomodel)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_does_not_take_the_place_of_the_function_that_it_defines() -> None:
    code = "import iomodel.planning.plan\nassert callable(iomodel.planning.plan)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_root_and_the_rooms_show_their_public_names_alone() -> None:
    assert dir(iomodel) == sorted(iomodel.__all__) == sorted({*ROOT, *MODULES})
    for room in ROOMS:
        module = getattr(iomodel, room)
        assert dir(module) == sorted(set(module.__all__))


def test_the_version_is_that_of_the_distribution() -> None:
    assert iomodel.__version__ == version("iomodel")


CFF = {
    "abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi", "identifiers", "keywords",
    "license", "license-url", "message", "preferred-citation", "references", "repository", "repository-artifact",
    "repository-code", "title", "type", "url", "version",
}  # fmt: skip
"""The fields of version 1.2.0 of the Citation File Format."""


def test_a_citation_names_the_version_of_the_distribution() -> None:
    """And nothing that the project or the Citation File Format lacks; BibTeX in the paper says the same."""
    root = Path(__file__).parents[2]
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {name: citation[name] for name in ("version", "license", "keywords")} == {
        name: project[name] for name in ("version", "license", "keywords")
    }
    assert citation["authors"][0]["name"] in (root / "LICENSE").read_text(encoding="utf-8")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys() <= CFF
    assert citation["cff-version"] == "1.2.0"
    bibtex = (root / "docs" / "paper.md").read_text(encoding="utf-8").partition("@software{iomodel,\n")[2]
    entries = dict(line.strip().rstrip(",").split(" = ", 1) for line in bibtex.partition("\n}")[0].splitlines())
    fields = {name.strip(): value.replace("{", "").replace("}", "") for name, value in entries.items()}
    assert {"author", "title", "version", "note"} == fields.keys()
    assert fields["author"] == " and ".join(author["name"] for author in citation["authors"])
    assert (fields["title"], fields["version"]) == (citation["title"], citation["version"])
    assert fields["note"].endswith("docs/paper.md")


@pytest.mark.parametrize("module", [iomodel, iomodel.devices, iomodel.kernels])
def test_a_name_that_is_not_there_is_an_attribute_error(module: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'costs'"):
        module.costs  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_no_library() -> None:
    code = "import sys, iomodel\nassert not {'numpy', 'sympy', 'pydantic'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_public_module_loads_an_extra() -> None:
    extras = {"torch", "triton", "jax", "mcp", "ncu_report", "hypothesis", "matplotlib", "numba", "xarray", "pandas"}
    code = (
        f"import sys, iomodel\nfor name in {MODULES}: getattr(iomodel, name)\n"
        f"for room in {ROOMS}: [getattr(getattr(iomodel, room), name) for name in getattr(iomodel, room).__all__"
        " if room != 'testing']\n"
        f"assert not {extras} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_can_be_replaced_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = iomodel.cost
    with monkeypatch.context() as patch:
        patch.setattr(iomodel, "cost", None)
        assert iomodel.cost is None
    assert iomodel.cost is before


@pytest.mark.parametrize("name", [name for name in ROOT if isfunction(PUBLIC[name])])
def test_an_unknown_keyword_is_an_unknown_name_and_a_type_error(name: str) -> None:
    """With its arguments right or wrong: what a function does not take is named first, or its own error is."""
    wanted = {
        "hardware": ("h100-sxm5",), "model": ("llama-3-8b",), "list_implementations": ("flash2",),
        "plan": ("llama-3-8b", "h100-sxm5"), "cost": ("flash2", iomodel.Attention(q_len=8, head_dim=8)),
    }  # fmt: skip
    named = {"prompt": 8, "output": 8} if name == "plan" else {}
    if name in wanted or name.startswith("list_"):
        for kind in (iomodel.UnknownNameError, TypeError):
            with pytest.raises(kind, match="'no_such_argument' is unknown"):
                PUBLIC[name](*wanted.get(name, ()), **named, no_such_argument=1)
