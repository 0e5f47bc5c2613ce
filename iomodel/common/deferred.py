"""Modules that are imported when one of their names is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Deferred:
    """A module by its name, imported at the first look-up of an attribute.

    >>> module = Deferred("colorsys")
    >>> module.rgb_to_yiq(0.0, 0.0, 0.0)
    (0.0, 0.0, 0.0)
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        self.__dict__[attribute] = value
        return value
