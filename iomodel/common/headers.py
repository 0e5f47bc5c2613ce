"""Headers of results as plain data: their schema, the release that wrote them, and keys of a later release."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache, wraps
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from iomodel.errors import InputError, shown

FIRST = 1
"""Number of a schema, which rises when a key leaves or changes its meaning."""
_writing: ContextVar[bool] = ContextVar("writing", default=False)
_unread: ContextVar[list[str] | None] = ContextVar("unread", default=None)
_reading: ContextVar[bool] = ContextVar("reading", default=False)


@lru_cache(maxsize=1)
def package_version() -> str:
    """Return the version of the package, as recorded in results and stores."""
    try:
        return version("iomodel")
    except PackageNotFoundError:
        return "unknown"


def schema_of(kind: type) -> str:
    """Return the schema of a type of results.

    >>> class EstimateArray: ...
    >>> schema_of(EstimateArray)
    'iomodel.estimate-array/1'
    """
    return schema_named(re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower())


def schema_named(name: str) -> str:
    """Return the schema of plain data with a name.

    >>> schema_named("error")
    'iomodel.error/1'
    """
    return f"iomodel.{name}/{FIRST}"


def headed(write: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Put the header before the plain data of a result; results inside it have none."""

    @wraps(write)
    def to_dict(self: Any, *values: Any, **options: Any) -> dict[str, Any]:
        if _writing.get() or type(self).constructed:
            return write(self, *values, **options)
        token = _writing.set(True)
        try:
            data = write(self, *values, **options)
        finally:
            _writing.reset(token)
        stated = vars(self).get("assumed") if "assumed" not in data else None
        more = {"assumed": list(stated)} if stated else {}
        return {"schema": schema_of(type(self)), "iomodel": package_version(), **data, **more}

    return to_dict


def reading(read: Callable[..., Any]) -> Callable[..., Any]:
    """Check the header of plain data before they are read, and keep the unknown keys of a later release apart."""

    @wraps(read)
    def from_dict(kind: Any, data: Any) -> Any:
        if _reading.get() or not isinstance(data, Mapping):
            return read(kind, data)
        later = _check(kind, data)
        tokens = _reading.set(True), _unread.set([] if later else None)
        try:
            header = {"schema", "iomodel", *({"assumed"} - kind.__dataclass_fields__.keys())}
            value = read(kind, {key: item for key, item in data.items() if key not in header})
            skipped = tuple(_unread.get() or ())
        finally:
            _reading.reset(tokens[0])
            _unread.reset(tokens[1])
        if skipped:
            vars(value)["_unread"] = skipped
        if "assumed" in header & data.keys():
            vars(value)["assumed"] = tuple(data["assumed"])
        return value

    return from_dict


def leaves_unread(keys: list[Any]) -> bool:
    """Note unknown keys as unread where a later release wrote the data; False where they are refused."""
    unread = _unread.get()
    if unread is not None:
        unread += map(str, keys)
    return unread is not None


def _check(kind: type, data: Mapping[str, Any]) -> bool:
    """Check that data are of a type of results; return True if a later release wrote them."""
    own, given = schema_of(kind), data.get("schema")
    if isinstance(given, str) and given.startswith("iomodel.") and given != own:
        raise InputError(f"schema: {shown(given)} given; allowed: {own!r}")
    return _release(data.get("iomodel")) > _release(package_version())


def _release(text: object) -> tuple[int, ...]:
    """Return the numbers of a version.

    >>> _release("0.10.1") > _release("0.2.0")
    True
    """
    numbers = re.match(r"\d{1,9}(?:\.\d{1,9}){0,5}", text, re.ASCII) if isinstance(text, str) else None
    return tuple(map(int, numbers[0].split("."))) if numbers else ()
