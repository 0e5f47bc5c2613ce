"""One file per algorithm. Whatever module of this folder has an ALGORITHM is found; there is no list to keep."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from iomodel.errors import UnknownNameError
from iomodel.nest import Algorithm


@cache
def discovered() -> dict[str, Algorithm]:
    """All algorithms by name."""
    names = (info.name for info in iter_modules(__path__) if not info.name.startswith("_"))
    modules = (import_module(f"{__name__}.{name}") for name in names)
    found = [module.ALGORITHM for module in modules]
    return {algorithm.name: algorithm for algorithm in sorted(found, key=lambda algorithm: algorithm.name)}


def list_algorithms() -> list[str]:
    """The names of all algorithms.

    >>> "flash2" in list_algorithms()
    True
    """
    return list(discovered())


def exact_algorithms() -> list[str]:
    """The names of those that compute attention itself."""
    return [name for name, found in discovered().items() if not found.approximates]


def algorithm(name: str) -> Algorithm:
    """The algorithm of that name; UnknownNameError says which there are.

    >>> algorithm("flash2").title
    'FlashAttention-2'
    """
    if not isinstance(name, str) or name not in discovered():
        raise UnknownNameError("algorithm", name, discovered())
    return discovered()[name]
