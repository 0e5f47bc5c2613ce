"""Units of hardware figures: exact parsing of "228 KiB" or "3.35 TB/s", bounds, and formatting."""

from __future__ import annotations

import math
import operator
import re
from difflib import get_close_matches
from fractions import Fraction
from typing import NamedTuple

from iomodel.errors import shown

BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
SMALL = {"m": Fraction(1, 10**3), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9)}

_PREFIXES: dict[str, dict[str, int | Fraction]] = {
    "B": {**BINARY, **DECIMAL},
    "B/s": {**BINARY, **DECIMAL},
    "FLOP/s": {**DECIMAL},
    "OP/s": {**DECIMAL},
    "Hz": {**DECIMAL},
    "W": {"k": 10**3, "m": SMALL["m"]},
    "s": {**SMALL, "µ": SMALL["u"]},
}
_WORDS = {
    **dict.fromkeys(("kb", "k", "kilobytes"), "KiB"), "kb/s": "kB/s", "bytes": "B", "byte": "B",
    **dict.fromkeys(("m", "megabytes"), "MB"), **dict.fromkeys(("g", "gigabytes"), "GB"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"), "usec": "us", "microseconds": "us",
    **dict.fromkeys(("msec", "msecs", "millisecond", "milliseconds"), "ms"),
    "ko": "kB", "mo": "MB", "go": "GB", "to": "TB", "kio": "KiB", "mio": "MiB", "gio": "GiB", "tio": "TiB",
    **dict.fromkeys(("gbps", "gb/sec"), "GB/s"), **dict.fromkeys(("tbps", "tb/sec"), "TB/s"), "tflops": "TFLOP/s",
}  # fmt: skip
"""Units in other words, each with the one that is probably meant."""
_BITS = re.compile(r"[kMGT]?b(?:ps|/s|it/s)")
_NUMBER = r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?"
_COMMA = re.compile(r"\s*(\d{1,40}),(\d{1,40})\s*([A-Za-zµ/]{0,9})\s*", re.ASCII)
"""A number with a decimal comma, or with a comma between thousands."""
_TEXT = re.compile(rf"\s*({_NUMBER})\s*([A-Za-zµ].*?)?\s*", re.ASCII)


def factors(unit: str) -> dict[str, Fraction]:
    """Map every accepted spelling of a unit to its value in base units.

    >>> sorted(factors("W").items())
    [('W', Fraction(1, 1)), ('kW', Fraction(1000, 1)), ('mW', Fraction(1, 1000))]
    """
    scaled = {prefix + unit: Fraction(factor) for prefix, factor in _PREFIXES.get(unit, {}).items()}
    return {unit: Fraction(1), **scaled}


def _pointed(text: str) -> str:
    """Write a number with a comma as it is read; empty for other text. Three digits behind it are thousands.

    >>> _pointed("0,5s"), _pointed("2,048 B"), _pointed("much")
    ("'0.5s'", "'2048B'", '')
    """
    match = _COMMA.fullmatch(text) if len(text) <= 100 else None
    if match is None:
        return ""
    whole, part, unit = match.groups()
    return f"'{whole}{'' if len(part) == 3 else '.'}{part}{unit}'"


class UnitKind(NamedTuple):
    """The base unit of a figure and its plausible range.

    Parameters
    ----------
    unit : the base unit, "" for a plain count.
    low, high : least and largest value accepted [unit].
    whole : True if only integers make sense (bytes, counts).
    zero : True if 0 is allowed although `low` is above it.

    >>> UnitKind("B", 1, 2**40, whole=True).number("228 KiB")
    233472
    """

    unit: str
    low: float
    high: float
    whole: bool = False
    zero: bool = False

    def number(self, raw: object, unit: object = None) -> int | float:
        """Convert a value to base units exactly; a ValueError states the problem and the nearest fix in one line."""
        if isinstance(raw, str):
            match = _TEXT.fullmatch(raw) if len(raw) <= 100 else None
            if not match or (match[2] and unit is not None):
                raise ValueError(f"{shown(raw)} is not a number; write {_pointed(raw) or self.example}")
            raw, unit = Fraction(match[1]), match[2] if match[2] else unit
        elif isinstance(raw, bool) or not (isinstance(raw, float) or hasattr(raw, "__index__")):
            raise ValueError(f"a number is needed, given {shown(raw)}; write {self.example}")
        elif isinstance(raw, float):
            if not math.isfinite(raw):
                raise ValueError(f"the number must be finite, given {shown(raw)}")
            raw = Fraction(repr(float(raw)))
        else:
            try:
                raw = Fraction(operator.index(raw))
            except TypeError:  # an array with several elements
                raise ValueError(f"a number is needed, given {shown(raw)}; write {self.example}") from None
        return self._checked(raw * self._factor(unit), raw, unit)

    def _factor(self, unit: object) -> Fraction:
        known = factors(self.unit)
        if unit is None:
            return Fraction(1)
        if isinstance(unit, str) and unit in known:
            return known[unit]
        folded = {name.lower(): name for name in known}
        near = _WORDS.get(str(unit).lower()) or folded.get(str(unit).lower())
        close = [near] if near in known else get_close_matches(str(unit), known, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]!r}? " if close else ""
        if _BITS.fullmatch(str(unit)):
            hint = "bits are an eighth of as many bytes: 400 Gb/s are 50 GB/s; "
        allowed = ", ".join(known) if self.unit else "no unit, a plain number"
        raise ValueError(f"unit {shown(unit)} is not allowed here; {hint}allowed: {allowed}")

    def _checked(self, value: Fraction, raw: Fraction, unit: object) -> int | float:
        if not (self.low <= value <= self.high or (self.zero and value == 0)):
            least = ("0 or from " if self.zero and self.low > 0 else "from ") + self.show(self.low)
            text = f"{_short(raw)} {unit or self.unit}".strip()
            raise ValueError(f"must be {least} to {self.show(self.high)}, given {text}")
        if value.denominator == 1:
            return int(value)
        if self.whole:
            raise ValueError(f"must be a whole number of {self.unit or 'units'}, given {_short(raw)}")
        return float(value)

    @property
    def example(self) -> str:
        """An example of the notation of such a figure."""
        units = {"B": "'228 KiB'", "B/s": "'3.35 TB/s'", "FLOP/s": "'989.4 TFLOP/s'", "OP/s": "'5 TOP/s'"}
        more = {"Hz": "'1.83 GHz'", "W": "'700 W'", "s": "'2.5 us'"}
        return {**units, **more}.get(self.unit, f"a number {'of ' * bool(self.unit)}{self.unit}".strip())

    def show(self, value: float) -> str:
        """Format a value in human units: KiB for memory, TB/s, TFLOP/s, GHz, us otherwise.

        >>> UnitKind("B/s", 1, 1e15).show(3.352e12)
        '3.352 TB/s'
        """
        steps = BINARY if self.unit == "B" else SMALL if self.unit == "s" else DECIMAL
        steps = steps if self.unit in _PREFIXES else {}
        usable = [(factor, prefix) for prefix, factor in steps.items() if factor <= value and prefix != "P"]
        usable = usable if value < 1 or self.unit != "s" else []
        factor, prefix = max(usable, default=(1, ""))
        return f"{float(value / Fraction(factor)):.7g} {prefix}{self.unit}".strip()


def _short(value: Fraction) -> str:
    """Format a fraction for an error message, without thousands of digits."""
    try:
        return f"{float(value):.6g}"
    except OverflowError:
        return "a number beyond 1e308"
