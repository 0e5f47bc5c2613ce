"""Numbers and lists of numbers as they are typed, or as a file holds them; their range is the library's affair."""

from __future__ import annotations

import re
from errno import EFBIG, EINVAL, EISDIR
from pathlib import Path

from iomodel.errors import InputError, shown
from iomodel.units import Kind
from iomodel.validation import LARGEST

_DIGITS = re.compile(r"[+-]?[0-9]{1,4000}")
_BYTES = Kind("B", 1, LARGEST, whole=True)
_SECONDS = Kind("s", 1e-12, 1e9, zero=True)
_LARGEST_FILE = 64 * 2**20
"""Far above a list of lengths or a table of blocks that is of use [B]."""


def integer(field: str, text: str) -> int:
    """The integer that digits spell.

    >>> integer("q_len", "8k")
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: q_len: '8k' given; allowed: an integer in digits, such as 8192
    """
    if _DIGITS.fullmatch(text):
        return int(text)
    raise InputError(f"{field}: {shown(text)} given; allowed: an integer in digits{_nearest(text)}")


def _nearest(text: str) -> str:
    """What was likely meant, if anything: 8k is 8 Ki of tokens; 8192.0, 8,192 and 8e3 are themselves."""
    cleaned = re.sub(r"[,_' ]", "", text)
    try:
        return f", such as {_BYTES.number(re.sub(r'[kK]i?$', 'Ki', cleaned) + 'B')}"
    except ValueError:
        return ""


def size(field: str, text: str) -> int:
    """A number of bytes: digits alone, or with a unit, as "228 KiB"."""
    if _DIGITS.fullmatch(text):
        return int(text)
    try:
        return int(_BYTES.number(text))
    except ValueError as error:
        raise InputError(f"{field}: {error}") from None


def sizes(field: str, text: str) -> list[int]:
    """The numbers of bytes of a list.

    >>> sizes("sram", "32 KiB, 65536")
    [32768, 65536]
    """
    return [size(field, entry) for entry in _entries(field, text)]


def duration(field: str, text: str) -> float:
    """A time in seconds, or with a unit.

    >>> duration("time", "0.183ms")
    0.000183
    """
    try:
        return float(_SECONDS.number(text))
    except ValueError as error:
        raise InputError(f"{field}: {error}") from None


def real(text: str) -> float | str:
    """The number, or the text itself for the library to refuse."""
    try:
        return float(text)
    except ValueError:
        return text


def integers(field: str, text: str) -> list[int]:
    """The integers of a list, or of the file that @FILE names: with commas or line ends between them.

    >>> integers("q_lens", "100, 200,300")
    [100, 200, 300]
    """
    return [integer(field, entry) for entry in _entries(field, text)]


def pairs(field: str, text: str) -> tuple[list[int], list[int] | None]:
    """Queries and keys of each sequence; None for the keys where every entry is one number.

    >>> pairs("q_lens", "100 900, 1 4096")
    ([100, 1], [900, 4096])
    """
    rows = [entry.split() for entry in _entries(field, text)]
    if all(len(row) == 1 for row in rows):
        return [integer(field, row[0]) for row in rows], None
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise InputError(
                f"{field}: {shown(' '.join(row))} given as entry {number}; allowed: one number, or a pair such as "
                "'100 900' (queries and keys), the same for every sequence"
            )
    return [integer(field, queries) for queries, _ in rows], [integer(field, keys) for _, keys in rows]


def _entries(field: str, text: str) -> list[str]:
    named = text.startswith("@")
    content = _text(field, text[1:]) if named else text
    entries = [entry.strip() for entry in re.split(r"[,\n]", content.strip().rstrip(","))]
    if named:
        entries = [entry for entry in entries if entry]  # blank lines, commas at the end of lines
    if not entries or not all(entries):
        raise InputError(f"{field}: {shown(text)} given; allowed: integers with commas between them, or @FILE")
    return entries


def _text(field: str, path: str) -> str:
    try:
        return readable(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"{field}: {shown(path)} cannot be read ({reason(error)}); allowed: a text file") from None


def readable(path: str) -> Path:
    """A file that is there and of a size to be read, or OSError or ValueError."""
    found = Path(path)
    if found.is_dir():
        raise OSError(EISDIR, "this is a directory")
    if found.exists() and not found.is_file():
        raise OSError(EINVAL, "this is no plain file")
    if found.stat().st_size > _LARGEST_FILE:
        raise OSError(EFBIG, f"{found.stat().st_size:,} B are more than {_LARGEST_FILE:,} B")
    return found


def reason(error: Exception) -> str:
    """Why a file was not read, in a few words."""
    if isinstance(error, UnicodeDecodeError):
        return "no UTF-8 text"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
