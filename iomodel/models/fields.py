"""Fields of a config.json, each read with its type and range checked, or one line that names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from iomodel.errors import InputError, shown
from iomodel.validation import LARGEST, as_integer

Data = Mapping[str, Any]


class Fields:
    """A config, under it what its family takes where the file leaves a field out; null counts as left out.

    >>> Fields({"head_dim": None, "hidden_size": "big"}).maybe("head_dim")
    >>> Fields({"hidden_size": "big"}, "text_config.").count("hidden_size")
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: text_config.hidden_size: 'big' given; allowed: an integer from 1 to 1000000000000000000
    """

    def __init__(self, data: Data, path: str = "", defaults: Data | None = None) -> None:
        self._data, self.prefix, self._defaults = data, path, defaults or {}

    def path(self, name: str) -> str:
        """The field as errors name it."""
        return self.prefix + name

    def given(self, name: str) -> Any:
        """What the file says, or the family; None where neither does. A null in the file means none."""
        return self._data.get(name, self._defaults.get(name))

    def names(self) -> Iterator[str]:
        """The fields of the file."""
        return (name for name in self._data if isinstance(name, str))

    def first(self, *names: str) -> str | None:
        """The first of these fields that has a value."""
        return next((name for name in names if self.given(name) is not None), None)

    def maybe(self, *names: str, least: int = 1) -> int | None:
        """An integer, or None where no such field has a value."""
        name = self.first(*names)
        return None if name is None else as_integer(self.path(name), self.given(name), least)

    def count(self, *names: str, least: int = 1) -> int:
        """An integer that must be there."""
        found = self.maybe(*names, least=least)
        if found is None:
            raise InputError(
                f"{self.path(names[0])}: not given, but required; allowed: an integer from {least} to {LARGEST}"
            )
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """A switch."""
        value = self.given(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        raise InputError(f"{self.path(name)}: {shown(value)} given; allowed: true or false")

    def real(self, name: str) -> float | None:
        """A positive number, or None."""
        value = self.given(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise InputError(
                f"{self.path(name)}: {shown(value)} given; allowed: a number above 0 and below 1e9, or null"
            )
        return float(value)

    def text(self, *names: str) -> str | None:
        """A short printable text, or None."""
        name = self.first(*names)
        if name is None:
            return None
        value = self.given(name)
        if isinstance(value, str) and value and value.isprintable() and len(value) <= 200:
            return value
        raise InputError(f"{self.path(name)}: {shown(value)} given; allowed: a text of up to 200 printable characters")

    def listed(self, name: str) -> list[Any] | None:
        """A list, or None."""
        value = self.given(name)
        if value is None or isinstance(value, list):
            return value
        raise InputError(f"{self.path(name)}: {shown(value)} given; allowed: a list")

    def positions(self, name: str) -> frozenset[int] | None:
        """A list of layer numbers, from 0."""
        found = self.listed(name)
        if found is None:
            return None
        return frozenset(as_integer(self.path(f"{name}.{place}"), value, 0) for place, value in enumerate(found))

    def mapping(self, name: str) -> dict[str, Any] | None:
        """A mapping, or None."""
        value = self.given(name)
        if value is None or isinstance(value, dict):
            return value
        raise InputError(f"{self.path(name)}: {shown(value)} given; allowed: a mapping")
