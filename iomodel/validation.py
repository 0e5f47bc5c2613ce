"""The base of all Pydantic models here: frozen, strict about names, errors in one line."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, TypeGuard

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from iomodel.errors import InputError, shown

LARGEST = 10**18
"""The largest length or count accepted: far above any use, and small enough to compute with."""
LONGEST_KEY = 60
"""The longest key that an error repeats in full [characters]."""
MOST_ITEMS = 2**20
"""Values of a range that a field looks at one by one."""
MOST_FAULTS = 8
"""Faults that one error tells of; a list of a thousand entries that are all wrong has as many."""


def index(value: object) -> object:
    """Accept whatever is an integer by its own account (int, numpy.int64), but no bool."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return value
    try:
        return operator.index(value)
    except Exception:  # an array of several; an __index__ that fails
        return value


Count = Annotated[int, BeforeValidator(index), Field(strict=True, ge=1, le=LARGEST)]
"""A positive integer up to LARGEST."""

Distance = Annotated[int, BeforeValidator(index), Field(strict=True, ge=0, le=LARGEST)]
"""A non-negative integer up to LARGEST."""


def finite(value: object) -> TypeGuard[int | float]:
    """Whether this is a number, no bool, that a float can hold.

    >>> finite(0.5), finite(10**400), finite(float("nan"))
    (True, False, False)
    """
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:
        return False


def no_endless(data: Mapping[Any, Any]) -> None:
    """ValueError for a field that is a very long range: each item that is wrong would be an error of its own."""
    for name, value in data.items():
        if isinstance(value, range) and value[MOST_ITEMS:]:
            raise ValueError(f"{_key(name)}: {shown(value)} given; allowed: up to {MOST_ITEMS:,} values")


class Model(BaseModel):
    """A frozen model whose constructor raises InputError: one line for every field at fault."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    def __init__(self, /, **data: Any) -> None:
        try:
            no_endless(data)
        except ValueError as error:
            raise InputError(str(error)) from None
        try:
            self.__pydantic_validator__.validate_python(data, self_instance=self)
        except ValidationError as error:
            raise InputError(describe(error)) from None

    # Tells Pydantic to validate a nested model in place, so that errors keep the full path of the field.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        """Compare fields, not what is cached beside them, which may be arrays."""
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).model_fields)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in type(self).model_fields))

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data, ready for JSON."""
        return self.model_dump(mode="json")


def describe(error: ValidationError, root: str = "") -> str:
    """All faults of a validation, each as `path: what is wrong, given ...`, joined by '; '."""
    lines = []
    for fault in error.errors(include_url=False):
        if fault["type"] == "default_factory_not_called":
            continue  # the field that it would follow is at fault, and named
        path = ".".join([root] * bool(root) + [_key(part) for part in fault["loc"]])
        message = "not given, but required" if fault["type"] == "missing" else fault["msg"]
        message = message.removeprefix("Value error, ")
        given = "" if fault["type"] in ("missing", "value_error") else f", given {shown(fault['input'])}"
        if not path and fault["type"].startswith("string_"):
            path = "name of a field"  # one that no text can hold
        named = path and not message.startswith(f"{path}: ")
        lines.append(f"{path}: {message}{given}" if named else message + given)
    every = list(dict.fromkeys(lines))
    more = [f"and {len(every) - MOST_FAULTS:,} more such faults"] * (len(every) > MOST_FAULTS)
    return "; ".join([*every[:MOST_FAULTS], *more])


def _key(part: object) -> str:
    """A step of the path to a fault: a name of ours, a place, or a key that a file or a caller made up."""
    text = str(part)
    return text if text.isprintable() and len(text) <= LONGEST_KEY else shown(text)


def as_mapping(name: str, value: object, example: str) -> dict[str, Any]:
    """A mapping as a dict of its own, or InputError with the name of the field.

    >>> as_mapping("tiles", 128, "{'block_q': 128}")
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: tiles: 128 given; allowed: a mapping, such as {'block_q': 128}
    """
    if isinstance(value, Mapping):
        try:
            return dict(value)
        except Exception:  # a mapping that does not give what it says it has
            pass
    raise InputError(f"{name}: {shown(value)} given; allowed: a mapping, such as {example}")


def as_integer(name: str, value: object, least: int = 1) -> int:
    """A whole number in least .. LARGEST, or InputError with the name of the field.

    >>> as_integer("block_q", 128)
    128
    >>> as_integer("block_q", 12.5)
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: block_q: 12.5 given; allowed: an integer from 1 to 1000000000000000000
    """
    whole = index(value)
    if isinstance(whole, bool) or not isinstance(whole, int) or not least <= whole <= LARGEST:
        raise InputError(f"{name}: {shown(value)} given; allowed: an integer from {least} to {LARGEST}")
    return whole
