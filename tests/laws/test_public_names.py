"""The public names: what a type checker reads of them is what a program gets."""

import ast
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import iomodel


@pytest.mark.parametrize("package", [iomodel, iomodel.nests])
def test_the_type_checker_reads_the_same_names(package: Any) -> None:
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    read = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert read == package._HOMES


@pytest.mark.parametrize("name", iomodel.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(iomodel, name).__module__.startswith("iomodel.")


@pytest.mark.parametrize("name", iomodel.nests.__all__)
def test_a_name_of_the_language_is_there(name: str) -> None:
    assert name in dir(iomodel.nests)
    assert getattr(iomodel.nests, name) is not None


def test_no_room_hides_a_public_function() -> None:
    rooms = {info.name for info in iter_modules(iomodel.__path__)}
    assert not rooms & set(iomodel.__all__)
    assert set(iomodel._MODULES) <= rooms


@pytest.mark.parametrize("name", iomodel._MODULES)
def test_a_public_module_needs_no_import_of_its_own(name: str) -> None:
    code = f"import iomodel\nassert iomodel.{name}.__name__ == 'iomodel.{name}'\nassert {name!r} in dir(iomodel)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_loads_no_library() -> None:
    code = "import sys, iomodel\nassert not {'numpy', 'sympy', 'pydantic'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_public_module_loads_an_extra() -> None:
    extras = {"torch", "triton", "jax", "mcp", "ncu_report", "hypothesis", "matplotlib", "numba", "xarray", "pandas"}
    code = (
        "import sys, iomodel\nfor name in iomodel._MODULES: getattr(iomodel, name)\n"
        f"assert not {extras} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_can_be_replaced_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = iomodel.cost
    with monkeypatch.context() as patch:
        patch.setattr(iomodel, "cost", None)
        assert iomodel.cost is None
    assert iomodel.cost is before
