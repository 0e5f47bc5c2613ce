"""The mask that the options of the command line describe together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from iomodel.block_mask import BlockMask
from iomodel.commands.numbers import integer, integers, readable, reason
from iomodel.documents import Documents
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.validation import as_integer
from iomodel.workload import Mask, MaskName, Window

MASKS = (*get_args(MaskName), "window", "documents", "blocks")
NEEDED: dict[str, tuple[str, ...]] = {
    "documents": ("document_lengths",),
    "blocks": ("block_mask", "mask_block_q", "mask_block_kv"),
}
"""Options without which a mask says nothing."""
BELONGS: dict[str, tuple[str, ...]] = {
    "window": ("window_left", "window_right"),
    "documents": ("document_lengths", "document_causal"),
    "blocks": ("block_mask", "mask_block_q", "mask_block_kv"),
}
"""Options that go with one mask alone."""


def mask(given: Mapping[str, Any]) -> Mask:
    """The mask that --mask and the options beside it describe."""
    kind = given["mask"] or "full"
    if kind not in MASKS:
        raise UnknownNameError("mask", kind, MASKS)
    for owner, names in BELONGS.items():
        typed = [name for name in names if given[name] is not None]
        if typed and owner != kind:
            raise InputError(f"{typed[0]}: given with mask {kind}; allowed: with --mask {owner}")
    if given["align"] is not None and kind not in ("causal", "window"):
        raise InputError(
            f"align: {shown(given['align'])} given with mask {kind}; allowed: with --mask causal or window"
        )
    for name in NEEDED.get(kind, ()):
        if given[name] is None:
            raise InputError(f"{name}: not given, but required by --mask {kind}")
    if kind == "window":
        return _window(given)
    if kind == "documents":
        return Documents(integers("document_lengths", given["document_lengths"]), bool(given["document_causal"]))
    if kind == "blocks":
        sides = (integer(name, given[name]) for name in ("mask_block_q", "mask_block_kv"))
        return _blocks(given["block_mask"], *sides)
    if given["align"] is None:
        return "full" if kind == "full" else "causal"
    diagonal = Window(right=0, align=given["align"])
    return "causal" if diagonal.align == "bottom-right" else diagonal


def _window(given: Mapping[str, Any]) -> Window:
    sides = {side: given[f"window_{side}"] for side in ("left", "right") if given[f"window_{side}"] is not None}
    if not sides:
        raise InputError("window_left, window_right: none given; mask window needs at least one of them")
    widths = {side: _distance(f"window_{side}", text) for side, text in sides.items()}
    return Window(**widths, **({"align": given["align"]} if given["align"] is not None else {}))


def _distance(field: str, text: str) -> int:
    return as_integer(field, integer(field, text), least=0)


def _blocks(path: str, block_q: int, block_kv: int) -> BlockMask:
    """The mask of a table that `numpy.save` wrote; nothing in the file is executed."""
    try:
        with readable(path).open("rb") as file:
            table = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        why = reason(error) if isinstance(error, OSError) else "no file of numpy.save"
        raise InputError(
            f"block_mask: {shown(path)} cannot be read ({why}); "
            "allowed: a .npy file of one 2-D table of True and False, a row for each block of queries"
        ) from None
    sides = {"mask_block_q": block_q, "mask_block_kv": block_kv}
    return BlockMask(table, *(as_integer(name, value) for name, value in sides.items()))
