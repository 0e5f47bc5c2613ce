"""The public names: what a type checker reads of them is what a program gets."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import iomodel


def test_the_type_checker_reads_the_same_names() -> None:
    tree = ast.parse(Path(iomodel.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    read = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert read == iomodel._HOMES


@pytest.mark.parametrize("name", iomodel.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(iomodel, name).__module__.startswith("iomodel.")


@pytest.mark.parametrize("first", ["iomodel.solve", "iomodel.cost", "iomodel.expressions"])
def test_a_function_hides_the_module_of_its_name(first: str) -> None:
    names = sorted(set(iomodel.__all__) & set(iomodel._PUBLIC))
    code = f"import {first}, iomodel\nassert all(callable(getattr(iomodel, name)) for name in {names})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_loads_no_library() -> None:
    code = "import sys, iomodel\nassert not {'numpy', 'sympy', 'pydantic'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_can_be_replaced_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = iomodel.cost
    with monkeypatch.context() as patch:
        patch.setattr(iomodel, "cost", None)
        assert iomodel.cost is None
    assert iomodel.cost is before
