"""Masks described by the options of the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.cli.numbers import LARGEST_TEXT, integer, integers, reason
from iomodel.common.input_files import readable
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.errors.synonyms import key, meant
from iomodel.workloads.call import Mask, MaskName
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.window import Window

MASKS = (*get_args(MaskName), "window", "documents", "blocks")
NEEDED: dict[str, tuple[str, ...]] = {
    "documents": ("document_lengths",),
    "blocks": ("block_mask", "mask_block_q", "mask_block_kv"),
}
"""Options required by a mask."""
BELONGS: dict[str, tuple[str, ...]] = {
    "window": ("window_left", "window_right"),
    "documents": ("document_lengths", "document_causal"),
    "blocks": ("block_mask", "mask_block_q", "mask_block_kv"),
}
"""Options specific to one mask."""
CAUSAL: dict[str, dict[str, Any]] = {"window": {"window_right": "0"}, "documents": {"document_causal": True}}
"""The option by which a mask of options is causal too."""


def mask(arguments: Mapping[str, Any], algorithm: str | None = None) -> Mask:
    """Build the mask described by --mask and its options, which imply the mask that has them.

    Without them it is the only mask of the algorithm, else full.
    """
    arguments = _implied(arguments)
    masks = () if algorithm is None else find_algorithm(algorithm).masks
    kind = arguments["mask"] or (masks[0] if len(masks) == 1 else "full")
    if kind not in MASKS:
        raise _sized(kind) or UnknownNameError("mask", kind, MASKS)
    for owner, names in BELONGS.items():
        typed = [name for name in names if arguments[name] is not None]
        if typed and owner != kind:
            raise InputError(f"{typed[0]}: given with mask {kind}; allowed: only with --mask {owner}")
    if arguments["align"] is not None and kind not in ("causal", "window"):
        raise InputError(
            f"align: {shown(arguments['align'])} given with mask {kind}; allowed: only with --mask causal or window"
        )
    for name in NEEDED.get(kind, ()):
        if arguments[name] is None:
            raise InputError(f"{name}: not given, but required by --mask {kind}")
    if kind == "window":
        return _window(arguments)
    if kind == "documents":
        return Documents(
            integers("document_lengths", arguments["document_lengths"]), bool(arguments["document_causal"])
        )
    if kind == "blocks":
        sides = (integer(name, arguments[name]) for name in ("mask_block_q", "mask_block_kv"))
        return _blocks(arguments["block_mask"], *sides)
    if arguments["align"] is None:
        return "full" if kind == "full" else "causal"
    diagonal = Window(right=0, align=arguments["align"])
    return "causal" if diagonal.align == "bottom-right" else diagonal


SIZED = re.compile(r"(\D+?)[\s:=(_-]*(\d.*?)\)?")
"""The name of a mask with its sizes, such as window:1024 or documents(512,1024)."""
SPELLED = {
    "window": "--sliding-window {} for as many visible keys, the query's own the last; or --window-left and "
    "--window-right",
    "documents": "--document-lengths {}",
    "blocks": "--block-mask FILE with --mask-block-q {} and --mask-block-kv",
}
"""The options that state the sizes of a mask."""


def _sized(text: str) -> InputError | None:
    """Return the error for the name of a mask with its sizes behind it; None for any other text."""
    found = SIZED.fullmatch(text.strip())
    named = [] if found is None else [name for name in meant(found[1], MASKS) or [key(found[1])] if name in SPELLED]
    if found is None or not named:
        return None
    said, sides = SPELLED[named[0]].format(found[2]), re.findall(r"\d+", found[2])
    if named[0] == "window" and len(sides) == 2:
        said = "--window-left {} --window-right {}".format(*sides)
    return InputError(f"mask: {shown(text)} given; allowed: {said}")


def _implied(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the mask that the options of masks imply; causal with a window or documents is their causal form."""
    typed = {name for name, value in arguments.items() if value is not None}
    owners = [owner for owner, names in BELONGS.items() if typed.intersection(names)]
    forms = {None: {}, "causal": CAUSAL.get(owners[0])} if len(owners) == 1 else {}
    form = forms.get(arguments["mask"])
    if form is None or any(arguments[name] not in (None, value) for name, value in form.items()):
        return arguments
    return {**arguments, "mask": owners[0], **form}


def _window(arguments: Mapping[str, Any]) -> Window:
    sides = {side: arguments[f"window_{side}"] for side in ("left", "right") if arguments[f"window_{side}"] is not None}
    if not sides:
        raise InputError("window_left, window_right: none given; mask window needs at least one")
    widths: dict[str, Any] = {side: _distance(f"window_{side}", text) for side, text in sides.items()}
    return Window(**widths, **({"align": arguments["align"]} if arguments["align"] is not None else {}))


def _distance(field: str, text: str) -> int:
    return as_integer(field, integer(field, text), least=0)


def _blocks(path: str, block_q: int, block_kv: int) -> BlockMask:
    """Read the mask from a table written by `numpy.save`, without executing anything in the file."""
    try:
        with readable(path, LARGEST_TEXT).open("rb") as file:
            table = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        cause = reason(error) if isinstance(error, OSError) else "not a file of numpy.save"
        raise InputError(
            f"block_mask: {shown(path)} cannot be read ({cause}); "
            "allowed: a .npy file with one 2-D boolean array, one row per block of queries"
        ) from None
    sides = {"mask_block_q": block_q, "mask_block_kv": block_kv}
    return BlockMask(table, *(as_integer(name, value) for name, value in sides.items()))
