"""Exceptions raised by iomodel on purpose, all subclasses of ValueError."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

__all__ = ["IOModelError", "InfeasibleError", "InputError", "SpecError", "UnfinishedError", "UnknownNameError"]


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
    """A field holds a value that is not allowed.

    >>> InputError("q_len: 0 given; allowed: at least 1").field
    'q_len'
    """

    code = "input"

    @cached_property
    def field(self) -> str:
        """The field, or the fields, as the message names them."""
        return str(self).partition(":")[0]


class UnknownNameError(IOModelError):
    """A name (algorithm, device, tile, option) does not exist.

    The message suggests the nearest names, and lists all, or says what lists them where they are many.

    >>> print(UnknownNameError("algorithm", "flash3", ["flash1", "flash2"]))
    algorithm: 'flash3' is unknown; did you mean 'flash1' or 'flash2'? allowed: flash1, flash2
    >>> print(UnknownNameError("mask", "sliding", ["full", "causal", "window"]))
    mask: 'sliding' is unknown; did you mean 'window'? allowed: full, causal, window
    >>> print(UnknownNameError("hardware", "a10x", ["a10", "h100-pcie"], listing="list_hardware()"))
    hardware: 'a10x' is unknown; did you mean 'a10'? allowed: a name of list_hardware()

    A name that another argument takes stands in the wrong place:

    >>> print(UnknownNameError("hardware", "gpt2", ["a10"], place="model"))
    hardware: 'gpt2' is unknown; did you mean model='gpt2'? allowed: a10
    """

    code = "unknown-name"

    def __init__(
        self,
        field: str,
        given: object,
        allowed: Iterable[str],
        likely: Iterable[str] | None = None,
        *,
        listing: str | None = None,
        place: str | None = None,
    ) -> None:
        self.field, self.given, self.allowed = field, given, tuple(allowed)
        names = f"a name of {listing}" if listing else ", ".join(self.allowed) or "none"
        hint = f"did you mean {place}={shown(given)}? " if place else ""
        hint = hint or hinted(given, self.allowed if likely is None else tuple(likely))
        super().__init__(f"{field}: {shown(given)} is unknown; {hint}allowed: {names}")


class AmbiguousNameError(UnknownNameError):
    """A name is the beginning of several names.

    >>> print(AmbiguousNameError("hardware", "h100", ["h100-pcie", "h100-sxm5"]))
    hardware: 'h100' is ambiguous: h100-pcie, h100-sxm5; allowed: one of these names
    """

    def __init__(self, field: str, given: object, meant: Iterable[str]) -> None:
        self.field, self.given, self.allowed = field, given, tuple(meant)
        names = ", ".join(self.allowed)
        super(UnknownNameError, self).__init__(
            f"{field}: {shown(given)} is ambiguous: {names}; allowed: one of these names"
        )


class UnknownKeywordError(UnknownNameError, TypeError):
    """A keyword argument does not exist, which is a TypeError too, as for every function of Python.

    >>> issubclass(UnknownKeywordError, TypeError)
    True
    """


class UnknownFieldError(UnknownKeywordError, InputError):
    """A field does not exist in a workload, or in another value that is built from fields."""

    def __init__(self, message: str, given: str, allowed: Iterable[str]) -> None:
        super(UnknownNameError, self).__init__(message)
        self.field, self.given, self.allowed = given, given, tuple(allowed)


class SpecError(IOModelError):
    """A hardware or model file is invalid; the message names the path of the field."""

    code = "spec"


class MissingRateError(SpecError):
    """A device lacks a figure that a time needs; parts that need no time are answered by other functions."""


class UnfinishedError(IOModelError):
    """A sweep cannot go on now: a full disk, a lost scheduler. Its store stays, and a later run resumes it."""

    code = "unfinished"


class InfeasibleError(IOModelError):
    """No tile fits the budget; `least` is the smallest feasible budget, in `unit`."""

    code = "infeasible"

    def __init__(self, message: str, *, least: int, unit: str) -> None:
        self.least, self.unit = least, unit
        super().__init__(message)


MOST_COMPARED = 100
"""Most letters of a value that are compared with names."""
MOST_SUGGESTED = 6
"""Most names that a message suggests."""


def hinted(given: object, names: Sequence[str]) -> str:
    """Write the question whether one of some names is meant, or why none is; empty where nothing is near.

    >>> hinted("casual", ["full", "causal"]), hinted("verbose", ["json"])
    ("did you mean 'causal'? ", 'an answer depends on none; ')
    """
    from iomodel.errors.synonyms import absence

    near = [repr(name) for name in nearest_names(given, names)]
    if near:
        return f"did you mean {' or '.join(filter(None, [', '.join(near[:-1]), near[-1]]))}? "
    said = absence(given) if isinstance(given, str) else ""
    return f"{said}; " if said else ""


def nearest_names(given: object, names: Sequence[str]) -> list[str]:
    """Select the names that are likely meant: synonyms, those with the same letters or words, or those an edit away.

    A word of the table of synonyms is never taken for a name with similar letters.

    >>> nearest_names("A100 80GB", ["a100-pcie-80gb", "a100-sxm4-40gb", "a100-sxm4-80gb"])
    ['a100-pcie-80gb', 'a100-sxm4-80gb']
    >>> nearest_names("meta-llama/Llama-3.1-8B-Instruct", ["llama-3-8b", "llama-3.1-8b", "llama-3.1-70b"])
    ['llama-3.1-8b']
    >>> nearest_names("input", ["output"]), nearest_names("ouptut", ["output"])
    ([], ['output'])
    >>> nearest_names("4090", ["rtx4090", "rtx3090"]), nearest_names("h100 80gb", ["a100-pcie-80gb", "h100-pcie"])
    (['rtx4090'], ['h100-pcie'])
    """
    wanted = shown(given).strip("'").lower()[:MOST_COMPARED]
    letters, words = _letters(wanted), _words(wanted)
    if not letters:
        return []
    from iomodel.errors.synonyms import known, meant, spellings

    same = [name for name in names if _letters(name) == letters] or meant(wanted, names)
    near = same or family(wanted, names) or _longest(name for name in names if _inside(name, letters, words))
    if not near and len(letters) > SHORT and any(map(str.isdigit, letters)):
        near = [name for name in names if _letters(name).startswith(letters)]
    if not near and not known(wanted):
        near = _numbered_alike(wanted, names) or _edited(wanted, names) or _sharing_a_number(wanted, names)
    if not near and not known(wanted) and len(wanted) >= LONG:
        others = spellings(tuple(names))
        alike = [word for word in others if _edits(wanted, word, 1) == 1 or _shortens(wanted, word)]
        near = list(dict.fromkeys(chain.from_iterable(others[word] for word in alike)))
    return near[:MOST_SUGGESTED]


def _shortens(wanted: str, name: str) -> bool:
    """Check that the words of a text are the beginnings of the first words of a name, two at least.

    >>> _shortens("gpu-mem-util", "gpu_memory_utilization"), _shortens("gpu", "gpu_memory_utilization")
    (True, False)
    """
    words, own = _split(wanted), _split(name)
    begun = all(whole.startswith(word) for whole, word in zip(own, words, strict=False))
    return 1 < len(words) <= len(own) and begun


def _edited(wanted: str, names: Sequence[str]) -> list[str]:
    """Select the names that a text begins with, and those that the fewest edits lead to, one or, in a long word, two;
    else those with other digits.

    >>> _edited("rtx4090ti", ["rtx4070ti", "rtx4090"]), _edited("gpt9", ["gpt2", "gemma"])
    (['rtx4090', 'rtx4070ti'], ['gpt2'])
    >>> _edited("mi400", ["m1", "mi300x", "mi325x"])
    ['mi300x', 'mi325x']
    """
    most = 2 if len(wanted) >= LONG else int(len(wanted) > SHORT)
    begun = [name for name in names if len(name) > SHORT and _continues(wanted, name)]
    for parts in (names, [name.partition("-")[0] for name in names]):
        edits = {name: _edits(wanted, part, most) for name, part in zip(names, parts, strict=True)}
        least = min(filter(None, edits.values()), default=None)
        if least:
            return list(dict.fromkeys((*begun, *(name for name, count in edits.items() if count == least))))
    stem = _stem(wanted) if wanted.isalnum() else ""
    return begun or [name for name in names if len(stem) > 1 and stem == _stem(name) != name]


def _stem(name: str) -> str:
    """Return what stands before the first digit of a name; the whole of a name without one."""
    return name[: next((place for place, letter in enumerate(name) if letter.isdigit()), len(name))]


def _continues(wanted: str, name: str) -> bool:
    """Check whether a text begins with a name, and not in the middle of a number."""
    rest = wanted.removeprefix(name)
    return rest != wanted and not (name[-1].isdigit() and rest[:1].isdigit())


def _numbered_alike(wanted: str, names: Iterable[str]) -> list[str]:
    """Select the names that end with a number that is given alone."""
    if len(wanted) <= SHORT or not wanted.isdigit():
        return []
    return [name for name in names if name.endswith(wanted) and not name[: -len(wanted)][-1:].isdigit()]


def _sharing_a_number(wanted: str, names: Sequence[str]) -> list[str]:
    """Select the names with the first of the numbered words of a text, such as h100, that any name has."""
    shared = ([name for name in names if word in _words(name)] for word in _split(wanted) if _numbered({word}))
    return next(filter(None, shared), [])


SHORT, LONG = 2, 8
"""Letters up to which a word has no mistake, and from which on it may have two."""


def _edits(wanted: str, name: str, most: int) -> int | None:
    """Count the letters inserted, left out, replaced or exchanged with the next; None beyond the most.

    >>> _edits("casual", "causal", 1), _edits("input", "output", 1), _edits("hadware", "hardware", 1)
    (1, None, 1)
    """
    if abs(len(wanted) - len(name)) > most:
        return None
    above, row = list[int](), [*range(len(name) + 1)]
    for i, letter in enumerate(wanted):
        before, above, row = above, row, [i + 1]
        for j, other in enumerate(name):
            edits = min(above[j] + (letter != other), above[j + 1] + 1, row[j] + 1)
            if i and j and letter == name[j - 1] and other == wanted[i - 1]:
                edits = min(edits, before[j - 1] + 1)
            row.append(edits)
    return row[-1] if row[-1] <= most else None


def family(wanted: str, names: Iterable[str]) -> list[str]:
    """Select the names with all the words of a text, or those that begin with it.

    >>> family("H100", ["h100-pcie", "h100-sxm5", "h20"])
    ['h100-pcie', 'h100-sxm5']
    """
    words, known = _words(wanted.lower()), list(names)
    if not words:
        return []
    return [name for name in known if words <= _words(name)] or [n for n in known if n.startswith(wanted.lower())]


def _inside(name: str, letters: str, words: set[str]) -> bool:
    """Check whether a text has all the words of a name, or a name of several words within it."""
    own = _words(name)
    return bool(own) and (own <= words or (len(own) > 1 and _letters(name) in letters))


def _longest(names: Iterable[str]) -> list[str]:
    return sorted(names, key=len)[-1:]


def _letters(name: str) -> str:
    """Return the letters and digits of a name."""
    return "".join(filter(str.isalnum, name))


def _words(name: str) -> set[str]:
    """Return the words of a name, which anything but letters, digits and a decimal point separates."""
    return {*_split(name)}


def _split(name: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "." else " " for letter in name).split()


def _numbered(words: set[str]) -> set[str]:
    """Return the words with a digit and a letter, such as h100."""
    return {word for word in words if any(map(str.isdigit, word)) and any(map(str.isalpha, word))}


def _restored(kind: type[IOModelError], args: tuple[Any, ...]) -> IOModelError:
    """Restore an error with its message, without calling its constructor."""
    return kind.__new__(kind, *args)


def reason_of(error: Exception) -> str:
    """State why a file cannot be read: the words of the system, else the kind of the error."""
    return error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__


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
