"""Validation of fields: the base class of all Pydantic models, with one-line errors, and checks of single values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Annotated, Any, ClassVar, Self, TypeGuard

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo

from iomodel.common.quantities import LARGEST as LARGEST  # noqa: PLC0414 - rooms import it from here
from iomodel.common.quantities import as_part, count, quantity
from iomodel.common.results import PlainData
from iomodel.errors import InputError, UnknownFieldError, UnknownNameError, hinted, shown, shown_name

MOST_ITEMS = 2**20
"""Most values of a range in a field."""


def index(value: object) -> object:
    """Convert integer types such as numpy.int64 and texts such as "8k" to int, but not bool."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return count(value)
    try:
        return operator.index(value)
    except TypeError:  # an array with several elements
        return value


Count = Annotated[int, BeforeValidator(index), Field(strict=True, ge=1, le=LARGEST)]
"""A positive integer up to LARGEST."""

Distance = Annotated[int, BeforeValidator(index), Field(strict=True, ge=0, le=LARGEST)]
"""A non-negative integer up to LARGEST."""


def _in_base_unit(value: Any, info: ValidationInfo) -> Any:
    return quantity(str(info.field_name), value)


Measured = BeforeValidator(_in_base_unit)
"""The validator of a field that takes a text with the unit of its name."""


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
    """Raise InputError for a very long range, of which each invalid item would be a separate error."""
    for name, value in data.items():
        if isinstance(value, range) and value[MOST_ITEMS:]:
            raise InputError(f"{shown_name(name)}: {shown(value)} given; allowed: up to {MOST_ITEMS:,} values")


class Model(BaseModel, PlainData):
    """A frozen model whose constructor raises InputError, with one line for all invalid fields."""

    # A validator is built on first use: no process needs those of all the models that it imports.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings", defer_build=True)
    by_position: ClassVar[tuple[str, ...]] = ()
    """The fields that may be given by position, in their order."""

    def __init__(self, /, *values: Any, **data: Any) -> None:
        if values:
            data = self._placed(values, data)
        no_endless(data)
        try:
            self.__pydantic_validator__.validate_python(data, self_instance=self)
        except ValidationError as error:
            raise _refusal(error, type(self)) from None

    # Validate nested models in place, so that errors keep the full path of the field.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def _placed(self, values: tuple[Any, ...], data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields, those given by position under their names."""
        kind, names = type(self).__name__, type(self).by_position
        if len(values) > len(names):
            required = [f"{name}=..." for name, field in type(self).model_fields.items() if field.is_required()]
            by_name = f"fields by name, as {kind}({', '.join(required)})" if required else "fields by name"
            allowed = f"{len(names)} ({', '.join(names)})" if names else by_name
            raise InputError(f"{kind}: {len(values)} values given; allowed: {allowed}")
        placed = dict(zip(names, values, strict=False))
        for name in placed.keys() & data.keys():
            raise InputError(f"{name}: given by position and by name; allowed: once")
        return {**placed, **data}

    @classmethod
    def model_validate(cls, obj: Any, **settings: Any) -> Self:
        """Validate fields as the constructor does; raise InputError for what it refuses."""
        try:
            return super().model_validate(obj, **settings)
        except ValidationError as error:
            raise _refusal(error, cls) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **settings: Any) -> Self:
        """Validate the text of a JSON object as the constructor does; raise InputError for what it refuses."""
        try:
            return super().model_validate_json(json_data, **settings)
        except ValidationError as error:
            raise _refusal(error, cls) from None

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except ValidationError:
            raise InputError(
                f"{name}: {shown(value)} given for a frozen {type(self).__name__}; allowed: a new one, such as "
                f"replace({name}=...)"
            ) from None

    def __delattr__(self, name: str) -> None:
        try:
            super().__delattr__(name)
        except ValidationError:
            raise InputError(f"{name}: deleted from a {type(self).__name__}; allowed: no change") from None

    def __dir__(self) -> list[str]:
        """List the attributes that this library defines."""
        return [name for name in super().__dir__() if name not in _HIDDEN]

    def replace(self, **fields: Any) -> Self:
        """Copy the value with some fields changed, and validate the copy.

        A field whose default is taken from others, such as the `kv_len` of a call, follows them again where it has
        that default.

        Raises
        ------
        InputError
            What the constructor refuses.
        """
        return type(self)(**{**self.template, **self.spelled_here(fields)})

    @property
    def template(self) -> dict[str, Any]:
        """The fields that are not their defaults, which may be taken from other fields."""
        own: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: own[name] for name, field in type(self).model_fields.items() if not _is_default(field, name, own)}

    @classmethod
    def spelled_here(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return fields in the words of this library; those of other libraries are known for workloads."""
        return fields

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


_HIDDEN = frozenset(name for name in dir(BaseModel) if not name.startswith("__")) | {
    "memo",
    "by_position",
    "template",
    "spelled_here",
}
"""Attributes of Pydantic's models, and of the machinery of this library."""


def _refusal(error: ValidationError, kind: type[Model]) -> InputError:
    """Return the error of a constructor: that of an unknown keyword if any field is unknown."""
    fields = list(kind.model_fields)
    text = describe(error, fields)
    for fault in error.errors(include_url=False, include_context=False):
        if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
            return UnknownFieldError(text, str(fault["loc"][0]), fields)
    return InputError(text)


def _is_default(field: Any, name: str, own: Mapping[str, Any]) -> bool:
    """Check that a field has the value that it would have if it were not given."""
    if field.is_required():
        return False
    if field.default_factory is None:
        return type(field.default) is type(own[name]) and bool(field.default == own[name])
    made = field.default_factory(own) if field.default_factory_takes_validated_data else field.default_factory()
    return bool(made == own[name])


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
    number = index(quantity(name, value) if isinstance(value, str) else value)
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= LARGEST:
        raise InputError(f"{name}: {shown(value)} given; allowed: {integers_from(least)}")
    return number


def as_choice(name: str, value: object, allowed: Collection[str]) -> str:
    """Validate one of several names, or raise UnknownNameError with the name of the field.

    >>> as_choice("unit", "bytes", ("bytes", "elements"))
    'bytes'
    """
    if isinstance(value, str) and value in allowed:
        return value
    raise UnknownNameError(name, value, allowed)


def integers_from(least: int = 1) -> str:
    """Describe the integers that fields of lengths and counts allow.

    >>> integers_from(0)
    'an integer from 0 to 10^18'
    """
    return f"an integer from {least} to {POWER[LARGEST]}"


MOST_FAULTS = 8
"""Most faults listed in one error; a list of a thousand invalid entries has a thousand."""
ALLOWED = {
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "True or False",
    "bool_parsing": "True or False",
    "string_type": "text",
    "string_pattern_mismatch": "text that matches {pattern}",
    "string_too_short": "text of at least {min_length} characters",
    "string_too_long": "text of at most {max_length} characters",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping of the fields of {class_name}",
    "union_tag_invalid": "a mapping with {discriminator} one of {expected_tags}",
    "greater_than_equal": "at least {ge}",
    "greater_than": "above {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "below {lt}",
    "literal_error": "{expected}",
}
"""The values that a field allows, by the type of the fault; its figures are those of the validator."""
POWER = {10**18: "10^18"}
"""Powers that are easier to read than their digits."""


MEANT = {"q_len": ("kv_len", "; allowed: 1, to decode a token of each sequence, or the queries of a prefill")}
"""For a field that is missing, a field that leaves its value open, and the values that are usually meant."""


def describe(error: ValidationError, fields: Sequence[str] = ()) -> str:
    """Format all faults of a validation as `path: value given; allowed: ...`, joined by '; '.

    `fields` are the names that the model has, for the message about another one.
    """
    faults = [fault for fault in error.errors(include_url=False) if fault["type"] != "default_factory_not_called"]
    lines = [_line(fault, fields) for fault in faults]  # a missing factory is caused by an invalid field
    every = list(dict.fromkeys(lines))
    more = [f"and {len(every) - MOST_FAULTS:,} more faults"] * (len(every) > MOST_FAULTS)
    return "; ".join([*every[:MOST_FAULTS], *more])


def _line(fault: Mapping[str, Any], fields: Sequence[str]) -> str:
    kind, place = fault["type"], fault["loc"]
    path = ".".join(shown_name(part) for part in place)
    if not path and kind.startswith("string_"):
        path = "name of a field"  # not encodable as text
    message = _message(fault, fields if len(place) == 1 else ())
    return f"{path}: {message}" if path and not message.startswith(f"{path}: ") else message


def _message(fault: Mapping[str, Any], fields: Sequence[str]) -> str:
    kind, value = fault["type"], shown(fault["input"])
    if kind == "missing":
        beside, meant = MEANT.get(str(fault["loc"][-1]), ("", ""))
        given = isinstance(fault["input"], Mapping) and beside in fault["input"]
        return f"not given, but required{meant}" if given else "not given, but required"
    if kind == "value_error":
        return str(fault["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return _unknown(str(fault["loc"][-1]), value, fields)
    if kind not in ALLOWED:
        return f"{value} given; {fault['msg']}"
    figures = {name: _written(figure) for name, figure in fault.get("ctx", {}).items()}
    share = as_part(fault["input"]) if figures.get("le") == "1" else ""
    return f"{value} given; allowed: {ALLOWED[kind].format(**figures)}{share}"


def _written(figure: Any) -> Any:
    return POWER.get(figure, f"{figure:g}" if isinstance(figure, float) else figure)


def _unknown(name: str, value: str, fields: Sequence[str]) -> str:
    if not fields:
        return f"{value} given; allowed: no such field"
    return f"{value} given for an unknown field; {hinted(name, fields)}allowed: {', '.join(fields)}"
