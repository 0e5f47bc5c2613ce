"""Links to a call on the page, with the names and values of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.compiled_algorithm import tally
from iomodel.counting.kinds import FormulaKind, mask_kind
from iomodel.counting.options import check_options, structural
from iomodel.devices.device import hardware as find_hardware
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.explorer.call_kinds import numbers_of, switches_of
from iomodel.explorer.form import FOLLOWS, SHAPE, call_fields
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.implementation import TEXTBOOK
from iomodel.workloads.attention import Attention
from iomodel.workloads.window import Window


def link(
    algorithm: str,
    call: object,
    hardware: str,
    tiles: Mapping[str, int] | None = None,
    implementation: str | None = None,
    **options: Any,
) -> str:
    """Write the part of a link after ``#``, which opens the page of all calls at one of them.

    Raises
    ------
    UnknownNameError, InputError
        A name is unknown, or the page does not have the call: features, masks given by data, other workloads.

    >>> link("flash3", Attention(heads=32, q_len=8192, head_dim=128, mask="causal"), "h100-sxm5", {"block_q": 128})
    'algorithm=flash3&hardware=h100-sxm5&kv_heads=32&q_len=8192&mask=causal&block_q=128'
    """
    declared = find_algorithm(algorithm)
    if not isinstance(call, Attention):
        raise InputError(f"workload: {type(call).__name__} given; allowed on the page: Attention")
    if call.features:
        raise InputError(f"{call.features[0]}: given; allowed on the page: calls without features")
    device = find_hardware(hardware)
    if device.id is None:
        raise InputError(f"hardware: {shown(hardware)} given; allowed in a link: the name of a shipped device")
    fields = {"algorithm": declared.name, "hardware": device.id, **_call(call)}
    if call.direction != "forward":
        fields["direction"] = call.direction
    if implementation is not None:
        known = [*(kernels.name for kernels in declared.implementations), TEXTBOOK.name]
        if implementation not in known:
            raise UnknownNameError("implementation", implementation, known)
        fields["implementation"] = implementation
    fields |= _options(declared, call, options)
    fields |= {name: str(size) for name, size in _tiles(declared, call, tiles or {}, options).items()}
    return urlencode(fields, quote_via=quote)


def _call(call: Attention) -> dict[str, str]:
    """Return the fields that differ from the first call of the page."""
    fields = {name: str(getattr(call, name)) for name in (*SHAPE, "dtype")}
    fields = {
        name: text
        for name, text in fields.items()
        if text != _default(name) and not (_default(name) == "auto" and text == fields[FOLLOWS[name]])
    }
    if not isinstance(call.mask, Window):
        if call.mask not in ("full", "causal"):
            raise InputError(f"mask: {type(call.mask).__name__} given; allowed on the page: full, causal, Window")
        return fields if call.mask == "full" else {**fields, "mask": str(call.mask)}
    sides = {"window_left": call.mask.left, "window_right": call.mask.right}
    widths = {name: str(width) for name, width in sides.items() if width is not None}
    if not widths:
        return fields
    aligned = {} if call.mask.align == _default("align") else {"align": call.mask.align}
    return {**fields, "mask": "window", **widths, **aligned}


def _default(name: str) -> str:
    return str(call_fields()[name]["default"])


def _options(declared: Algorithm, call: Attention, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each given option that the page has."""
    check_options(declared, options, direction=call.direction)
    known = {*switches_of(declared, call.direction), *numbers_of(declared, call.direction), "packed"}
    for name in options.keys() - known:
        raise InputError(f"{name}: given; allowed on the page: {', '.join(sorted(known))}")
    words = {True: "on", False: "off"}
    return {name: words[value] if isinstance(value, bool) else str(value) for name, value in options.items()}


def _tiles(
    declared: Algorithm, call: Attention, tiles: Mapping[str, int], options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Check the names of tiles."""
    chosen = structural(check_options(declared, options, direction=call.direction))
    known = tally(declared, FormulaKind(mask_kind(call.mask), call.direction), chosen).tiles
    for name in tiles:
        if name not in known:
            raise InputError(f"{name}: given; allowed for {declared.name}: {', '.join(known) or 'no tiles'}")
    return tiles
