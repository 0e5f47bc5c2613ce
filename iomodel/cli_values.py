"""Text from the command line to the library's values; what a value may be, the library itself says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from iomodel.compare import known_options
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.units import Kind
from iomodel.validation import LARGEST, as_integer
from iomodel.workload import Attention, Mask, MaskName, Window

Given = Mapping[str, Any]
"""What was typed, by the name of the field; None where nothing was."""

MASKS = (*get_args(MaskName), "window")
_DIGITS = re.compile(r"[+-]?[0-9]{1,4000}")
_BYTES = Kind("B", 1, LARGEST, whole=True)


def integer(field: str, text: str) -> int:
    """The integer that digits spell; its range is the library's affair.

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


def real(text: str) -> float | str:
    """The number, or the text itself for the library to refuse."""
    try:
        return float(text)
    except ValueError:
        return text


def mask(given: Given) -> Mask:
    """The mask that --mask, --window-left, --window-right and --align describe together."""
    kind, align = given["mask"] or "full", given["align"]
    sides = {side: given[f"window_{side}"] for side in ("left", "right")}
    if kind not in MASKS:
        raise UnknownNameError("mask", kind, MASKS)
    typed = [f"window_{side}" for side, text in sides.items() if text is not None]
    if kind == "window":
        if not typed:
            raise InputError("window_left, window_right: none given; mask window needs at least one of them")
        widths = {side: _distance(f"window_{side}", text) for side, text in sides.items() if text is not None}
        return Window(**widths, **({"align": align} if align is not None else {}))
    if typed:
        raise InputError(f"{typed[0]}: given with mask {kind}; allowed: with --mask window")
    if align is None:
        return "full" if kind == "full" else "causal"
    if kind == "full":
        raise InputError(f"align: {shown(align)} given with mask full; allowed: with --mask causal or window")
    diagonal = Window(right=0, align=align)
    return "causal" if diagonal.align == "bottom-right" else diagonal


def _distance(field: str, text: str) -> int:
    return as_integer(field, integer(field, text), least=0)


def workload(given: Given) -> Attention:
    """The attention call; fields that were not typed are left to the library's defaults."""
    plain = {name: given[name] for name in Attention.model_fields if name != "mask" and given[name] is not None}
    texts = {"dtype", "direction"}
    values = {name: text if name in texts else integer(name, text) for name, text in plain.items()}
    return Attention(**values, mask=mask(given))


def budget(given: Given) -> dict[str, Any]:
    """The arguments of `solve` and `compare` that say what must be kept to."""
    readers = {
        "sram_bytes": size,
        "sram_elements": integer,
        "alignment": integer,
        "min_block_kv": integer,
    }
    values = {name: read(name, given[name]) for name, read in readers.items() if given[name] is not None}
    share = {} if given["epsilon"] is None else {"epsilon": real(given["epsilon"])}
    return {"hardware": given["hardware"], **values, **share}


def options(given: Given, algorithms: list[str]) -> dict[str, Any]:
    """The algorithms' options that were typed."""
    known = known_options(algorithms)
    typed = {name: given[name] for name in known if given.get(name) is not None}
    whole = {name for name, default in known.items() if type(default) is int}
    return {name: integer(name, value) if name in whole else value for name, value in typed.items()}


def tiles(given: Given, names: list[str]) -> dict[str, int]:
    """The tiles that were typed."""
    return {name: integer(name, given[name]) for name in names if given[name] is not None}
