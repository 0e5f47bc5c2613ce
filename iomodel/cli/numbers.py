"""Parsing of numbers and lists of numbers from the command line or a file; the library checks their ranges."""

from __future__ import annotations

import re

import typer

from iomodel.common.input_files import readable
from iomodel.common.quantities import BYTES, LIKELY, RATES, SECONDS, SMALLEST, count, per_cent
from iomodel.common.units import UnitKind
from iomodel.errors import InputError, shown

_DIGITS = re.compile(r"[+-]?[0-9]{1,4000}")
THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+", re.ASCII)
"""An integer with points between its thousands, as in German."""
LARGEST_TEXT = 64 * 2**20
"""Largest file of lengths or blocks, far above useful sizes [B]."""


def integer(field: str, text: str) -> int:
    """Parse an integer in digits, or with a suffix: 8k is 8,000, which stderr says, and 8K 8,192, as vLLM reads them.

    >>> integer("q_len", "8K"), integer("q_len", "8k")
    (8192, 8000)
    """
    if _DIGITS.fullmatch(text):
        return int(text)
    if isinstance(number := count(text), int):
        if text.endswith("k"):
            binary = count(text.upper())
            other = f"; {text[:-1]}K is {binary:,}" if isinstance(binary, int) else ""
            typer.echo(f"note: {field}: {text} is {number:,}{other}", err=True)
        return number
    raise InputError(f"{field}: {shown(text)} given; allowed: an integer in digits{_nearest(text)}")


def _nearest(text: str) -> str:
    """Suggest the likely meaning: 8192.0, 8,192 and 8e3 are themselves, 8.192 may be, and auto is no option at all."""
    if text.lower() in ("auto", "default", "none"):
        return "; for its default, leave the option out"
    if THOUSANDS.fullmatch(text):
        return f", such as {text.replace('.', '')}"
    cleaned = re.sub(r"[,_' ]", "", text)
    try:
        return f", such as {BYTES.number(cleaned + 'B')}"
    except ValueError:
        return ""


def size(field: str, text: str) -> int:
    """Parse a number of bytes, in digits or with a unit, such as "228 KiB"; few digits alone are no memory.

    >>> size("sram_bytes", "228 KiB"), size("sram_bytes", "100 B"), size("sram_bytes", "4096")
    (233472, 100, 4096)
    """
    if not _DIGITS.fullmatch(text):
        return int(_with_unit(field, text, BYTES))
    number, (least, unit) = int(text), SMALLEST.get(field, (0, ""))
    if 0 < number < least:
        raise InputError(
            f"{field}: {shown(text)} given without a unit; allowed: bytes from {least:,}, or with a unit, such as "
            f"'{number} {unit}' or '{number} B'"
        )
    return number


def sizes(field: str, text: str) -> list[int]:
    """Parse a list of numbers of bytes.

    >>> sizes("sram", "32 KiB, 65536")
    [32768, 65536]
    """
    return [size(field, entry) for entry in _entries(field, text)]


def duration(field: str, text: str) -> float | str:
    """Parse a time in seconds, or with a unit; a latency whose unit decides stays a text, which the library reads.

    >>> duration("time", "0.183ms"), duration("tpot", "2s")
    (0.000183, '2s')
    """
    seconds = float(_with_unit(field, text, SECONDS))
    return text if field in LIKELY and seconds > LIKELY[field] and text.strip()[-1].isalpha() else seconds


def rate(field: str, text: str) -> float:
    """Parse a bandwidth in bytes per second, or with a unit.

    >>> rate("link", "50 GB/s")
    50000000000.0
    """
    return float(_with_unit(field, text, RATES))


def _with_unit(field: str, text: str, kind: UnitKind) -> int | float:
    """Parse a number with a unit; raise InputError that names the field."""
    try:
        return kind.number(text)
    except ValueError as error:
        raise InputError(f"{field}: {error}") from None


def real(text: str) -> float | str:
    """Parse a number, or a share in per cent; return other text unchanged for the library to reject.

    >>> real("0.9"), real("90%"), real("most")
    (0.9, 0.9, 'most')
    """
    try:
        return float(text)
    except ValueError:
        share = per_cent(text)
        return text if share is None else share


def reals(field: str, text: str) -> list[float | str]:
    """Parse a list of numbers separated by commas.

    >>> reals("lengths", "0.8, 1")
    [0.8, 1.0]
    """
    return [real(entry) for entry in _entries(field, text)]


def integers(field: str, text: str) -> list[int]:
    """Parse a list of integers separated by commas or line ends, or the file named by @FILE.

    >>> integers("q_lens", "100, 200,300")
    [100, 200, 300]
    """
    return [integer(field, entry) for entry in _entries(field, text)]


def pairs(field: str, text: str) -> tuple[list[int], list[int] | None]:
    """Parse queries and keys of each sequence; keys are None if every entry is one number.

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
        entries = [entry for entry in entries if entry]  # drop blank lines and trailing commas
    if not entries or not all(entries):
        raise InputError(f"{field}: {shown(text)} given; allowed: integers separated by commas, or @FILE")
    return entries


def _text(field: str, path: str) -> str:
    try:
        return readable(path, LARGEST_TEXT).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"{field}: {shown(path)} cannot be read ({reason(error)}); allowed: a text file") from None


def reason(error: Exception) -> str:
    """Describe in a few words why a file could not be read."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
