"""The layers, read from pyproject.toml, and the imports, read from the code: pictures of them cannot go stale."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The topmost module of each band of the main contract, from the bottom up.
BANDS = {
    "iomodel.residency": "The language: symbols, tensors, nests, masks",
    "iomodel.counts": "Declarations, and what folds over them",
    "iomodel.cost_array": "From formulas to integers, one or many",
    "iomodel.placement": "The search for tiles, and its proof",
    "iomodel.many.chunks": "Searches for many problems in lock step",
    "iomodel.timing": "What each resource has to do, and for how long",
    "iomodel.compare_time": "Answers: tiles, seconds",
    "iomodel.compare": "Questions that put answers together",
    "iomodel.trace": "Sweeps and traces",
    "iomodel.__main__": "The command line",
}


def contracts() -> dict[str, list[list[str]]]:
    """The contracts about layers: name, and the layers from the top down, each a list of modules."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        found = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    split = {c["name"]: [layer.split(" | ") for layer in c["layers"]] for c in found if c["type"] == "layers"}
    inner = {c["name"]: c["containers"][0] for c in found if "containers" in c}
    return {
        name: [[f"{inner[name]}.{module}" if name in inner else module for module in layer] for layer in layers]
        for name, layers in split.items()
    }


def bands(layers: list[list[str]]) -> dict[str, list[list[str]]]:
    """The layers of the main contract under the titles of the bands, from the top down."""
    ends = [next(i for i, layer in enumerate(layers) if module in layer) for module in reversed(BANDS)]
    return {
        title: layers[start:stop]
        for title, start, stop in zip(reversed(BANDS.values()), ends, [*ends[1:], len(layers)], strict=True)
    }


def package(module: str) -> str:
    """The package of its kind that a module is in; "" for those at the top."""
    _, *parts = module.split(".")
    return parts[0] if len(parts) > 1 or (parts and (ROOT / "iomodel" / parts[0]).is_dir()) else ""


def stack(layers: list[list[str]]) -> str:
    """Layers as HTML, a row of modules each; the package of a module is its colour."""
    rows = []
    for layer in layers:
        names = [(package(module), module.removeprefix("iomodel.")) for module in layer]
        rows.append(
            "".join(f'<code class="module" data-package="{home}">{escape(name)}</code>' for home, name in names)
        )
    return '<div class="layers">' + "".join(f"<div>{row}</div>" for row in rows) + "</div>"


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
