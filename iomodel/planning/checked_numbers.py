"""Validation of shares, prices and times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from iomodel.common.quantities import as_part, quantity
from iomodel.common.validation import as_mapping
from iomodel.errors import InputError, shown

MOST = 1e15
"""Largest accepted price, load or time."""


def as_real(name: str, value: object, *, zero: bool = False, most: float = MOST) -> float:
    """Validate a positive number, or zero if allowed; raise InputError with the name of the field.

    >>> as_real("price_per_hour", "2.5")
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: price_per_hour: '2.5' given; allowed: a number above 0, at most 1e+15, such as 2.5
    """
    value = quantity(name, value)
    numeric = not isinstance(value, bool | str | bytes) and (hasattr(value, "__float__") or hasattr(value, "__index__"))
    try:
        number = float(value) if numeric else float("nan")  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):  # an array with several elements, or beyond the range of floats
        number = float("nan")
    if isfinite(number) and (0 < number <= most or (zero and number == 0)):
        return number
    allowed = "a number from 0" if zero else "a number above 0,"
    text = re.sub(r"(\d),(\d)", r"\1.\2", value) if isinstance(value, str) else ""  # a decimal comma
    digits = re.search(r"\d+(\.\d+)?", text)
    near = f", such as {digits[0]}" if digits else ""
    raise InputError(f"{name}: {shown(value)} given; allowed: {allowed} {'to' if zero else 'at most'} {most:g}{near}")


def as_share(name: str, value: object) -> float:
    """Validate a share above 0 and at most 1, which may be given in per cent, such as "90%"."""
    share = quantity(name, value)
    try:
        return as_real(name, share, most=1.0)
    except InputError as error:
        raise InputError(f"{error}{as_part(share)}") from None


def as_prices(prices: object, field: str = "prices") -> dict[str, float]:
    """Validate prices by device, each above 0; none if they are None [1/h]."""
    if prices is None:
        return {}
    price_table: Mapping[str, Any] = as_mapping(field, prices, "{'h100-sxm5': 2.5}")
    return {name: as_real(f"{field}.{name}", value) for name, value in price_table.items()}


def as_targets(ttft: object, tpot: object) -> dict[str, float]:
    """Validate the targets that are given [s]."""
    return {name: as_real(name, value) for name, value in (("ttft", ttft), ("tpot", tpot)) if value is not None}


def as_price(price: object) -> tuple[float | None, dict[str, float]]:
    """Validate a price: a number for each device, or prices by name; return both forms, one of them empty [1/h].

    >>> as_price(2.5), as_price({"t4": 0.5})
    ((2.5, {}), (None, {'t4': 0.5}))
    """
    if price is None or isinstance(price, Mapping):
        return None, as_prices(price, "price")
    return as_real("price", price), {}
