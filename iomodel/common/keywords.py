"""Keywords of functions: synonyms of their names, and the error for one that a function does not take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from iomodel.common.spellings import renamed
from iomodel.errors import IOModelError, UnknownKeywordError, nearest_names

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


_assumed: ContextVar[dict[str, tuple[str, ...]] | None] = ContextVar("assumed", default=None)


def note_assumed(label: str, notes: tuple[str, ...]) -> None:
    """Note what is assumed about the name of a device, for the answer of the function that the user called."""
    names = _assumed.get()
    if names is not None:
        names[label] = tuple(dict.fromkeys((*names.get(label, ()), *notes)))


def strict(function: F) -> F:
    """Let a function take the synonyms of its keywords, and refuse an unknown one in the words of this library.

    A result states what the names of devices left open (`note_assumed`). Only a call that the function refuses is
    spelled anew, so that a call in its own words costs nothing.

    >>> @strict
    ... def planned(model, *, prompt):
    ...     return model, prompt
    >>> planned("llama-3-8b", input_len=2048)
    ('llama-3-8b', 2048)
    >>> planned("llama-3-8b", promt=2048)
    Traceback (most recent call last):
    ...
    iomodel.errors.UnknownKeywordError: argument of planned: 'promt' is unknown; did you mean 'prompt'? allowed: ...
    """

    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        token = _assumed.set({}) if _assumed.get() is None else None
        if token is None:
            return answer(*values, **named)
        try:
            result, notes = answer(*values, **named), _assumed.get()
        finally:
            _assumed.reset(token)
        return result.assuming(notes) if notes and hasattr(result, "assuming") else result

    def answer(*values: Any, **named: Any) -> Any:
        try:
            return function(*values, **named)
        except (TypeError, IOModelError) as error:
            spelled = _spelled_anew(function, named)
            if spelled is None:
                if isinstance(error, UnknownKeywordError):
                    _refuse_misspelt(function, error)
                elif not isinstance(error, IOModelError):
                    _refuse_misfit(function, values, named)
                raise
        return function(*values, **spelled)

    return cast("F", call)


def _spelled_anew(function: Callable[..., Any], named: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return keywords under the names of a function's parameters; None if they have these names already."""
    known = [name for name, kind in signature(function).parameters.items() if kind.kind != Parameter.VAR_KEYWORD]
    spelled = renamed(named, known)
    return spelled if spelled.keys() != named.keys() else None


def _refuse_misspelt(function: Callable[..., Any], error: UnknownKeywordError) -> None:
    """Raise UnknownKeywordError for an option that no algorithm has and that is near a keyword of a function."""
    parameters = signature(function).parameters
    if not nearest_names(error.given, error.allowed) and nearest_names(error.given, [*parameters]):
        refuse_unknown(function.__name__, [str(error.given)], parameters)


def _refuse_misfit(function: Callable[..., Any], values: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Raise UnknownKeywordError for a keyword that a function does not take, or that means one that it lacks."""
    own = signature(function)
    try:
        own.bind(*values, **named)
    except TypeError:
        parameters = own.parameters
    else:
        return  # the error is from within
    open_ended = any(parameter.kind == Parameter.VAR_KEYWORD for parameter in parameters.values())
    absent = [name for name in [*parameters][len(values) :] if name not in named]
    unknown = [name for name in named if name not in parameters and (not open_ended or nearest_names(name, absent))]
    refuse_unknown(function.__name__, unknown, parameters)
