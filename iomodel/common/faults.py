"""One-line messages for the faults that Pydantic finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from iomodel.errors import nearest_names, shown, shown_name

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
        return "not given, but required"
    if kind == "value_error":
        return str(fault["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return _unknown(str(fault["loc"][-1]), value, fields)
    if kind not in ALLOWED:
        return f"{value} given; {fault['msg']}"
    figures = {name: _written(figure) for name, figure in fault.get("ctx", {}).items()}
    return f"{value} given; allowed: {ALLOWED[kind].format(**figures)}"


def _written(figure: Any) -> Any:
    return POWER.get(figure, f"{figure:g}" if isinstance(figure, float) else figure)


def _unknown(name: str, value: str, fields: Sequence[str]) -> str:
    if not fields:
        return f"{value} given; allowed: no such field"
    near = [repr(field) for field in nearest_names(name, fields)]
    hint = f"; did you mean {' or '.join(near)}?" if near else ";"
    return f"{value} given for an unknown field{hint} allowed: {', '.join(fields)}"
