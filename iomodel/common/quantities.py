"""Quantities with units and counts with suffixes: the one reader of the Python functions and of the commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from iomodel.common.units import UnitKind
from iomodel.errors import InputError, shown

LARGEST = 10**18
"""Largest accepted length, count or size, far above any use."""
BYTES = UnitKind("B", 1, LARGEST, whole=True)
SECONDS = UnitKind("s", 1e-12, 1e9, zero=True)
RATES = UnitKind("B/s", 1, 1e15)
TIMES = frozenset({"ttft", "tpot", "host_seconds", "host_launch", "kernel_launch", "seconds"})
"""Arguments that are times."""
BANDWIDTHS = frozenset({"link", "network_bandwidth", "host_bandwidth", "disk_bandwidth"})
"""Arguments that are rates of bytes."""
LIKELY: Mapping[str, float] = {"ttft": 60.0, "tpot": 1.0}
"""The longest latency that a number without a unit can mean [s]; above it milliseconds were meant."""
SMALLEST: Mapping[str, tuple[int, str]] = {
    "sram_bytes": (1 << 10, "KiB"), "sram": (1 << 10, "KiB"), "overhead_bytes": (1 << 20, "GiB"),
}  # fmt: skip
"""The least memory that digits without a unit can mean on a command line [B], and the unit that less was meant in."""
SUFFIXES: Mapping[str, int] = {
    **{letter: 1000**power for power, letter in enumerate("kmgt", 1)},
    **{letter: 1024**power for power, letter in enumerate("KMGT", 1)},
}
"""Suffixes of counts, as vLLM reads them (vllm/engine/arg_utils.py, human_readable_int): 8k is 8,000, 8K is 8,192."""
_ARRIVALS = re.compile(
    r"\s*(\d{1,15}(?:\.\d{1,15})?)(k?)\s*(?:(?:requests?|reqs?|queries|q|r)\s*)?(?:/|per|p)\s*(s|m|h|d)[a-z]*\s*",
    re.ASCII | re.IGNORECASE,
)
"""A rate of arrivals, such as 500rpm, 500/min, 20 req/s or 20qps."""
_LASTS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
"""Units of time of a rate of arrivals [s]."""
_PER_CENT = re.compile(r"\s*(\d{1,3}(?:\.\d{1,15})?)\s*%\s*", re.ASCII)
_COUNT = re.compile(r"(\d{1,40})(?:\.(\d{1,40}))?([kmgtKMGT])", re.ASCII)


def unit_of(name: str) -> UnitKind | None:
    """Return the unit of an argument, by its name; None for a plain number."""
    last = name.rpartition(".")[2]
    if last in TIMES:
        return SECONDS
    return RATES if last in BANDWIDTHS else BYTES if last.endswith("_bytes") else None


def count(value: Any) -> Any:
    """Return the integer of a text with a suffix; any other value unchanged.

    >>> count("8k"), count("8K"), count("1.5k"), count("8,192")
    (8000, 8192, 1500, '8,192')
    """
    match = _COUNT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    whole, part, suffix = match.groups()
    scaled, rest = divmod(int(whole + (part or "")) * SUFFIXES[suffix], 10 ** len(part or ""))
    return value if rest else scaled


def per_cent(text: str) -> float | None:
    """Return the share that a text in per cent states; None for other text.

    >>> per_cent("90%"), per_cent("0.9")
    (0.9, None)
    """
    match = _PER_CENT.fullmatch(text)
    return None if match is None else float(match[1]) / 100


def as_part(value: object) -> str:
    """Suggest the share that is meant by a number above 1 that was probably given in per cent; else nothing.

    >>> as_part(90), as_part(0)
    (', such as 0.9', '')
    """
    number = value if isinstance(value, int | float) else 0
    return f", such as {number / 100:g}" if 1 < number <= 100 else ""


def _arrivals(value: str) -> str | float:
    """Return the requests per second of a rate of arrivals; any other text unchanged.

    >>> _arrivals("600rpm"), _arrivals("20 req/s"), _arrivals("7.2k/hour"), _arrivals("20")
    (10.0, 20.0, 2.0, '20')
    """
    match = _ARRIVALS.fullmatch(value)
    return value if match is None else float(match[1]) * (1000 if match[2] else 1) / _LASTS[match[3].lower()]


def quantity(name: str, value: Any) -> Any:
    """Return the number of a text with a unit in the base unit of an argument; any other value unchanged.

    >>> quantity("sram_bytes", "227 KiB"), quantity("tpot", "50ms"), quantity("link", "50GB/s"), quantity("q_len", "8k")
    (232448, 0.05, 50000000000, 8000)
    >>> quantity("tpot", 50)
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: tpot: 50 given without a unit; allowed: seconds up to 1, or with a unit, such as '50ms'
    """
    unit = unit_of(name)
    if isinstance(value, str) and name.rpartition(".")[2] == "load":
        value = _arrivals(value)
    if not isinstance(value, str):
        most = LIKELY.get(name.rpartition(".")[2])
        if most is not None and type(value) in (int, float) and most < value < float("inf"):
            raise InputError(
                f"{name}: {shown(value)} given without a unit; allowed: seconds up to {most:g}, or with a unit, such "
                f"as '{shown(value, 12)}ms'"
            )
        return value
    if unit is None and (share := per_cent(value)) is not None:
        return share
    if unit is None or value.isdigit():
        return count(value)
    try:
        return unit.number(value)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
