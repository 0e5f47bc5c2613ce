"""The layers, read from pyproject.toml, and the imports, read from the code: pictures of them cannot go stale."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = "Rooms import downwards"


def rooms() -> list[list[str]]:
    """The rooms of the main contract from the top down, those of one row side by side."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == CONTRACT)
    return [layer.split(" | ") for layer in layers]


def subject(room: str) -> str:
    """The first line of a room's docstring."""
    path = ROOT / "iomodel" / room
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").splitlines()[0]


def table() -> str:
    """The rooms as HTML: a row for each layer of the contract, from the top down."""
    cells = "".join(
        "<tr><td>" + "<br>".join(f'<code data-package="{room}">{room}</code>' for room in layer)
        + "</td><td>" + "<br>".join(escape(subject(room)) for room in layer) + "</td></tr>"
        for layer in rooms()
    )  # fmt: skip
    return f'<table class="rooms"><tbody>{cells}</tbody></table>'


def package(module: str) -> str:
    """The room that a module is in; "" for the modules at the root."""
    _, *parts = module.split(".")
    return parts[0] if len(parts) > 1 or (parts and (ROOT / "iomodel" / parts[0]).is_dir()) else ""


def imports() -> dict[str, set[str]]:
    """The modules of the library, and those that each imports when it is loaded."""
    files = sorted((ROOT / "iomodel").rglob("*.py"))
    named = {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}
    return {
        name: {_known(found, named) for found in _loaded(ast.parse(file.read_text(encoding="utf-8")))} - {name, ""}
        for name, file in named.items()
        if name != "iomodel"  # imports what is asked for, later
    }


def order(graph: dict[str, set[str]]) -> list[str]:
    """The modules, each after all that it imports, and next to its package where that can be."""
    done: list[str] = []
    ahead = dict(graph)
    while ahead:
        ready = [name for name, needs in ahead.items() if not needs & ahead.keys()]
        last = package(done[-1]) if done else ""
        name = min(ready or ahead, key=lambda name: (package(name) != last, package(name), name))
        done.append(name)
        del ahead[name]
    return done


def _known(name: str, named: dict[str, Path]) -> str:
    """A module of ours: the name itself, or what it is a name in."""
    return next((each for each in (name, name.rpartition(".")[0]) if each in named and each != "iomodel"), "")


def _loaded(tree: ast.AST) -> Iterator[str]:
    """Names that are imported outside functions, not for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif not isinstance(node, ast.FunctionDef) and not _for_types(node):
            yield from _loaded(node)


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
