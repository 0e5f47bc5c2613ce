"""Public rooms whose names other rooms define."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from typing import Any


def attach_facade(name: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of the names that the stub beside a module imports.

    It does for absolute imports what `lazy_loader.attach_stub` does for those from below a package: each name is
    imported on its first use.
    """
    with open(f"{file}i", encoding="utf-8") as stub:  # noqa: PTH123 - pathlib is slow to import
        body = ast.parse(stub.read()).body
    homes = {alias.name: node.module for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}

    def get(attribute: str) -> Any:
        if attribute not in homes:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return getattr(import_module(str(homes[attribute])), attribute)

    return get, lambda: sorted(homes), sorted(homes)
