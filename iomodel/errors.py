"""Exceptions raised by iomodel on purpose, all subclasses of ValueError."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, ClassVar


class IOModelError(ValueError):
    """Base class of all errors raised by iomodel; message and attributes survive pickling.

    Attributes
    ----------
    code : str
        The kind of error in one word, for logs and for clients of a service; the same in every release.

    >>> issubclass(IOModelError, ValueError), InputError("q_len: 0 given").code
    (True, 'input')
    """

    code: ClassVar[str] = "error"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args), vars(self)


class InputError(IOModelError):
    """A field holds a value that is not allowed."""

    code = "input"


MOST_SUGGESTED = 6
"""Most names that a message suggests."""


class UnknownNameError(IOModelError):
    """A name (algorithm, device, tile, option) does not exist.

    The message suggests the names of which the given one is the first part, or the most similar name.

    >>> print(UnknownNameError("algorithm", "flash", ["flash1", "flash2"]))
    algorithm: 'flash' is unknown; did you mean 'flash2'? allowed: flash1, flash2
    >>> print(UnknownNameError("hardware", "H100", ["a100-pcie", "h100-pcie", "h100-sxm5"]))
    hardware: 'H100' is unknown; did you mean 'h100-pcie' or 'h100-sxm5'? allowed: a100-pcie, h100-pcie, h100-sxm5
    """

    code = "unknown-name"

    def __init__(self, field: str, given: object, allowed: Iterable[str], likely: Iterable[str] | None = None) -> None:
        self.field, self.given, self.allowed = field, given, tuple(allowed)
        meant = self.allowed if likely is None else tuple(likely)
        wanted = shown(given).strip("'")
        near = [name for name in meant if wanted and name.startswith(f"{wanted.lower()}-")][:MOST_SUGGESTED]
        near = near or get_close_matches(wanted, meant, n=1, cutoff=0.5)
        near = near or get_close_matches(wanted.lower(), meant, n=1, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        names = ", ".join(self.allowed) or "none"
        super().__init__(f"{field}: {shown(given)} is unknown; {hint}allowed: {names}")


class SpecError(IOModelError):
    """A hardware or model file is invalid; the message names the path of the field."""

    code = "spec"


class UnfinishedError(IOModelError):
    """A sweep cannot go on now: a full disk, a lost scheduler. Its store stays, and a later run resumes it."""

    code = "unfinished"


class InfeasibleError(IOModelError):
    """No tile fits the budget; `least` is the smallest feasible budget, in `unit`."""

    code = "infeasible"

    def __init__(self, message: str, *, least: int, unit: str) -> None:
        self.least, self.unit = least, unit
        super().__init__(message)


def _restored(kind: type[IOModelError], args: tuple[Any, ...]) -> IOModelError:
    """Restore an error with its message, without calling its constructor."""
    return kind.__new__(kind, *args)


def shown_name(part: object, limit: int = 60) -> str:
    """Format a name that a caller chose, such as a key or a file, as it is, or in quotes if one line cannot hold it.

    >>> shown_name("inputs"), shown_name("a" * 100, limit=10)
    ('inputs', "'aaaaaa...")
    """
    text = str(part)
    return text if text.isprintable() and len(text) <= limit else shown(text, limit)


def shown(value: object, limit: int = 60) -> str:
    """Format a value for an error message: one line, at most `limit` characters.

    >>> shown("a" * 100, limit=10)
    "'aaaaaa..."
    """
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # an int beyond the digit limit, or deep nesting
        bits = value.bit_length() if isinstance(value, int) else 0
        text = f"an integer of {bits} bits" if bits > 10_000 else f"a value of type {type(value).__name__}"
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= limit else text[: limit - 3] + "..."
