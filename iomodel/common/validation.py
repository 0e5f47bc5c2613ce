"""Base class of all Pydantic models: frozen, strict about names, with one-line errors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from typing import Annotated, Any, Self, TypeGuard

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from iomodel.common.faults import POWER, describe
from iomodel.common.results import PlainData
from iomodel.errors import InputError, shown, shown_name

LARGEST = 10**18
"""Largest accepted length or count, far above any use."""
MOST_ITEMS = 2**20
"""Most values of a range in a field."""


def index(value: object) -> object:
    """Convert integer types such as numpy.int64 to int, but not bool."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return value
    try:
        return operator.index(value)
    except TypeError:  # an array with several elements
        return value


Count = Annotated[int, BeforeValidator(index), Field(strict=True, ge=1, le=LARGEST)]
"""A positive integer up to LARGEST."""

Distance = Annotated[int, BeforeValidator(index), Field(strict=True, ge=0, le=LARGEST)]
"""A non-negative integer up to LARGEST."""


def finite(value: object) -> TypeGuard[int | float]:
    """Check for a number, not a bool, that a float can represent.

    >>> finite(0.5), finite(10**400), finite(float("nan"))
    (True, False, False)
    """
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:
        return False


def no_endless(data: Mapping[Any, Any]) -> None:
    """Raise ValueError for a very long range, of which each invalid item would be a separate error."""
    for name, value in data.items():
        if isinstance(value, range) and value[MOST_ITEMS:]:
            raise ValueError(f"{shown_name(name)}: {shown(value)} given; allowed: up to {MOST_ITEMS:,} values")


class Model(BaseModel, PlainData):
    """A frozen model whose constructor raises InputError, with one line for all invalid fields."""

    # A validator is built on first use: no process needs those of all the models that it imports.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings", defer_build=True)

    def __init__(self, /, **data: Any) -> None:
        try:
            no_endless(data)
        except ValueError as error:
            raise InputError(str(error)) from None
        try:
            self.__pydantic_validator__.validate_python(data, self_instance=self)
        except ValidationError as error:
            raise InputError(describe(error, list(type(self).model_fields))) from None

    # Validate nested models in place, so that errors keep the full path of the field.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        """Compare fields only, not cached values, which may be arrays."""
        if type(other) is not type(self):
            return NotImplemented
        fields = _fields_of(type(self))
        return bool(fields(self) == fields(other))

    def __hash__(self) -> int:
        return hash(_fields_of(type(self))(self))

    def to_dict(self) -> dict[str, Any]:
        """Convert the fields to plain data, ready for JSON."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the value from its plain data.

        Raises
        ------
        InputError
            What the constructor refuses.
        """
        if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
            raise InputError(f"{cls.__name__}: {shown(data)} given; allowed: an object")
        return cls(**data)


@cache
def _fields_of(model: type[Model]) -> Callable[[Model], Any]:
    return operator.attrgetter(*model.model_fields)


def as_mapping(name: str, value: object, example: str) -> dict[str, Any]:
    """Copy a mapping to a dict, or raise InputError with the name of the field.

    >>> as_mapping("tiles", 128, "{'block_q': 128}")
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: tiles: 128 given; allowed: a mapping, such as {'block_q': 128}
    """
    if isinstance(value, Mapping):
        return dict(value)
    raise InputError(f"{name}: {shown(value)} given; allowed: a mapping, such as {example}")


def as_integer(name: str, value: object, least: int = 1) -> int:
    """Validate an integer in least .. LARGEST, or raise InputError with the name of the field.

    >>> as_integer("block_q", 128)
    128
    >>> as_integer("block_q", 12.5)
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: block_q: 12.5 given; allowed: an integer from 1 to 10^18
    """
    number = index(value)
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= LARGEST:
        raise InputError(f"{name}: {shown(value)} given; allowed: {integers_from(least)}")
    return number


def integers_from(least: int = 1) -> str:
    """Describe the integers that fields of lengths and counts allow.

    >>> integers_from(0)
    'an integer from 0 to 10^18'
    """
    return f"an integer from {least} to {POWER[LARGEST]}"
