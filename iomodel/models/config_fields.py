"""Fields of a config.json, over the defaults of its model type, read with checks and one-line errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from iomodel.common.validation import as_integer, integers_from
from iomodel.errors import InputError, shown, shown_name

Data = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of one config, over the defaults of its model type; null is no value, and no default replaces it.

    >>> Fields({"head_dim": None, "hidden_size": "big"}).maybe("head_dim")
    >>> Fields({"hidden_size": "big"}, "text_config.").count("hidden_size")
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: text_config.hidden_size: 'big' given; allowed: an integer from 1 to 10^18
    """

    data: Data
    prefix: str = ""
    defaults: Data = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    """Names of the fields looked up so far."""
    assumed: dict[str, int] = field(default_factory=dict)
    """Integers read so far that are defaults of the model type."""

    unread: list[str] = field(default_factory=list)
    """Notes on fields of an unexpected type that were passed over."""
    own: Data = field(default_factory=dict)
    """Names that the model type has for fields with a common name."""

    def optional(self, read: Callable[..., Any], *names: str) -> Any:
        """Read a field that changes no shape; one of an unexpected type is no value, and a note says so.

        >>> fields = Fields({"max_position_embeddings": "long"})
        >>> fields.optional(fields.maybe, "max_position_embeddings"), fields.unread
        (None, ["The field max_position_embeddings is passed over: 'long' given; allowed: an integer from 1 to 10^18."])
        """
        try:
            return read(*names)
        except InputError as error:
            name, _, reason = str(error).partition(": ")
            note = f"The field {name} is passed over: {reason}."
            if note not in self.unread:
                self.unread.append(note)
            return None

    def over(self, changes: Data) -> Fields:
        """Return the fields with some replaced, as in one layer that differs from the others."""
        return replace(self, data={**self.data, **changes})

    def inside(self, name: str) -> Fields | None:
        """Return the fields of a nested mapping, or None."""
        value = self.mapping(name)
        return None if value is None else Fields(value, self.path(f"{name}."), unread=self.unread)

    def path(self, name: str) -> str:
        """Return the name of the field in error messages."""
        return self.prefix + shown_name(self.own.get(name, name))

    def given(self, name: str) -> Any:
        """Look up a field in the file, then in the defaults; None if absent from both, or null in the file."""
        self.read.add(name)
        return self.data.get(name, self.defaults.get(name))

    def stated(self, *names: str) -> bool:
        """Check whether the file gives any of these fields a value."""
        return any(self.data.get(name) is not None for name in names)

    def nullable(self, name: str) -> bool:
        """Check that a field has no value and its model type derives one: the default of the type is null."""
        return self.given(name) is None and self.defaults.get(name, "required") is None

    def names(self) -> Iterator[str]:
        """Iterate over the fields of the file."""
        return (name for name in self.data if isinstance(name, str))

    def first(self, *names: str) -> str | None:
        """Return the first of these fields that has a value.

        A field of the file that the model type has no default for is another name of one that it has.
        """
        valued = [name for name in names if self.given(name) is not None]
        stated = (name for name in valued if name in self.data)
        if not valued or valued[0] in self.data:
            return next(stated, None)
        return next((name for name in stated if name not in self.defaults), valued[0])

    def maybe(self, *names: str, least: int = 1) -> int | None:
        """Read an integer, or None if none of these fields has a value."""
        name = self.first(*names)
        if name is None:
            return None
        value = as_integer(self.path(name), self.given(name), least)
        if name not in self.data:
            self.assumed[name] = value
        return value

    def count(self, *names: str, least: int = 1) -> int:
        """Read a required integer."""
        value = self.maybe(*names, least=least)
        if value is None:
            raise InputError(f"{self.path(names[0])}: not given, but required; allowed: {integers_from(least)}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Read a boolean."""
        value = self.given(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        raise InputError(f"{self.path(name)}: {shown(value)} given; allowed: true or false")

    def real(self, name: str) -> float | None:
        """Read a positive number, or None."""
        value = self.given(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise InputError(
                f"{self.path(name)}: {shown(value)} given; allowed: a number above 0 and below 1e9, or null"
            )
        return float(value)

    def text(self, *names: str, longest: int = 200) -> str | None:
        """Read a printable string, or None."""
        name = self.first(*names)
        if name is None:
            return None
        value = self.given(name)
        if isinstance(value, str) and value and value.isprintable() and len(value) <= longest:
            return value
        raise InputError(
            f"{self.path(name)}: {shown(value)} given; allowed: a text of up to {longest} printable characters"
        )

    def listed(self, name: str) -> list[Any] | None:
        """Read a list, or None."""
        value = self.given(name)
        if value is None or isinstance(value, list):
            return value
        raise InputError(f"{self.path(name)}: {shown(value)} given; allowed: a list")

    def positions(self, name: str) -> frozenset[int] | None:
        """Read a list of layer numbers, counted from 0."""
        if isinstance(self.given(name), str):
            texts = [part.strip() for part in self.given(name).split(",")]
            if not all(part.isdigit() and len(part) < 10 for part in texts):
                raise InputError(f"{self.path(name)}: {shown(self.given(name))} given; allowed: numbers between commas")
            return frozenset(map(int, texts))
        numbers = self.listed(name)
        if numbers is None:
            return None
        return frozenset(as_integer(self.path(f"{name}.{place}"), value, 0) for place, value in enumerate(numbers))

    def mapping(self, name: str) -> dict[str, Any] | None:
        """Read a mapping, or None."""
        value = self.given(name)
        if value is None or isinstance(value, dict):
            return value
        raise InputError(f"{self.path(name)}: {shown(value)} given; allowed: a mapping")


@lru_cache(maxsize=1)
def _types() -> Mapping[str, Mapping[str, Any]]:
    text = files(__package__).joinpath("class_defaults.json").read_text(encoding="utf-8")
    types: Mapping[str, Mapping[str, Any]] = json.loads(text)["types"]
    return types


def class_defaults(*names: str) -> Mapping[str, Any]:
    """Return the defaults of the first of these model types that has a class; none if no type has one.

    >>> class_defaults("qwen2")["num_key_value_heads"], class_defaults("of no class")
    (32, {})
    """
    types = _types()
    return next((types[name] for name in names if name in types), {})


def all_defaults() -> frozenset[str]:
    """Return the names of the fields for which any model type has a default.

    >>> "num_key_value_heads" in all_defaults()
    True
    """
    return frozenset(name for values in _types().values() for name in values)
