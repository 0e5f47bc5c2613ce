"""Keywords of functions: one that a function does not take is an error of this library, and a TypeError."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from iomodel.errors import UnknownKeywordError

F = TypeVar("F", bound=Callable[..., Any])


def refuse_unknown(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise UnknownKeywordError for the first keyword that a function does not take.

    >>> refuse_unknown("plan", ["promt"], ["prompt", "output"])
    Traceback (most recent call last):
    ...
    iomodel.errors.UnknownKeywordError: argument of plan: 'promt' is unknown; did you mean 'prompt'? allowed: ...
    """
    names = tuple(known)
    for name in given:
        if name not in names:
            raise UnknownKeywordError(f"argument of {function}", name, names)


def strict(function: F) -> F:
    """Let a function without options refuse an unknown keyword as those with options do."""

    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        try:
            return function(*values, **named)
        except TypeError:
            refuse_unknown(function.__name__, named, signature(function).parameters)
            raise

    return cast("F", call)
