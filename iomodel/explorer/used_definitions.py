"""Definitions that some functions and classes use, over all modules of the package, by their source."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from typing import NamedTuple

from iomodel.explorer.transpile import PRIVATE, source
from iomodel.explorer.transpile_expressions import BUILTINS

Place = tuple[str, str]
"""A module and a name that it defines."""


class ModuleNames(NamedTuple):
    """The definitions of a module by name, and the places of the names of the package that it imports."""

    defined: Mapping[str, ast.stmt]
    imported: Mapping[str, Place]


def used_definitions(roots: Mapping[str, Sequence[str]], outside: Collection[str]) -> dict[str, tuple[str, ...]]:
    """List the definitions that the roots use, by module, each module after those that it uses.

    Names of `outside`, and those that the transpiler provides, are not followed. A name with a further underscore in
    front is for its module alone.

    >>> used_definitions({"iomodel.timing.overlap": ["times"]}, ())
    {'iomodel.timing.overlap': ('_MOST', 'times', '__served', '__cycles')}
    """
    found: dict[str, set[str]] = {}
    public: set[Place] = {(module, name) for module, names in roots.items() for name in names}
    needed: dict[str, set[str]] = {}

    def follow(module: str, name: str) -> None:
        if name in found.setdefault(module, set()):
            return
        found[module].add(name)
        known = _names(module)
        for used in sorted(_uses(known.defined[name]) - BUILTINS - frozenset(outside)):
            if used in known.defined:
                follow(module, used)
            elif used in known.imported:
                public.add(known.imported[used])
                needed.setdefault(module, set()).add(known.imported[used][0])
                follow(*known.imported[used])

    for module, name in sorted(public):
        follow(module, name)
    order = TopologicalSorter({module: sorted(needed.get(module, ())) for module in sorted(found)}).static_order()
    return {module: tuple(_marked(module, found[module], public)) for module in order}


def _marked(module: str, names: set[str], public: set[Place]) -> list[str]:
    """Return names in the order of their source, those for the module alone with a further underscore."""
    listed = [name for name in _names(module).defined if name in names]
    return [name if (module, name) in public and (name[0] != "_" or name in PRIVATE) else f"_{name}" for name in listed]


@cache
def _names(module: str) -> ModuleNames:
    tree = ast.parse(source(module))
    defined: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                defined[target.id] = node
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("iomodel.")
        for alias in node.names
    }
    return ModuleNames(defined, {name: (module or "", own) for name, (module, own) in imported.items()})


def _uses(definition: ast.stmt) -> frozenset[str]:
    """Collect the names that run: those of annotations, decorators and bases do not."""
    names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.AnnAssign):
            parts: list[ast.AST | None] = [node.value]
        elif isinstance(node, ast.FunctionDef):
            parts = [*node.args.defaults, *node.args.kw_defaults, *node.body]
        elif isinstance(node, ast.ClassDef):
            parts = [*node.body]
        else:
            parts = [*ast.iter_child_nodes(node)]
        for part in [] if isinstance(node, ast.Name) else parts:
            if part is not None:
                visit(part)

    visit(definition)
    return frozenset(names)
