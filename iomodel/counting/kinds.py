"""Kinds of formula that workloads need: mask, direction and features, without numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from iomodel.algorithms import list_algorithms
from iomodel.common.cache import cached_hash
from iomodel.common.validation import as_choice
from iomodel.counting.mask_kind import CAUSAL, FULL, MaskKind
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.workloads.call import Call, Direction, Mask
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.window import Window
from iomodel.workloads.workload import Workload


@cached_hash
@dataclass(frozen=True)
class FormulaKind:
    """The properties that a formula depends on besides numbers and options: mask, direction, features, operation."""

    mask: MaskKind = FULL
    direction: str = "forward"
    features: tuple[str, ...] = ()
    operation: str = "attention"


def mask_kind(mask: Mask) -> MaskKind:
    """Reduce a mask to the kind of its formula: bounded sides and alignment, without widths."""
    if isinstance(mask, Window):
        return MaskKind(mask.left is not None, mask.right is not None, top_left=mask.align == "top-left")
    if isinstance(mask, BlockMask | Documents):
        return TABULATED_MASK
    return CAUSAL if mask == "causal" else FULL


TABULATED_MASK = MaskKind(tabulated=True)


def kind_of(call: Workload) -> FormulaKind:
    """Return the kind of formula that a workload needs, computed once per workload."""
    kind: FormulaKind | None = call.memo.get("kind")
    if kind is None:
        mask = mask_kind(call.mask) if isinstance(call, Call) else FULL
        kind = call.memo["kind"] = _interned(mask, call.direction, call.features, call.operation)
    return kind


_interned = lru_cache(maxsize=1024)(FormulaKind)


def known_direction(direction: object) -> None:
    """Raise UnknownNameError unless the argument is a direction."""
    as_choice("direction", direction, get_args(Direction))


def check_answers(declaration: Algorithm, operation: str) -> None:
    """Raise InputError unless an algorithm covers an operation; the message names the algorithms that do."""
    if operation != declaration.answers:
        able = ", ".join(list_algorithms(operation))
        raise InputError(
            f"algorithm: {declaration.name} given, for {declaration.answers}; allowed for {operation}: {able}"
        )


def check_kind(declaration: Algorithm, kind: FormulaKind) -> None:
    """Raise InputError unless an algorithm covers the operation, direction, mask and features of a kind."""
    check_answers(declaration, kind.operation)
    if kind.direction not in declaration.directions:
        allowed = ", ".join(declaration.directions)
        raise InputError(
            f"direction: {kind.direction!r} given; allowed: {allowed}, because {declaration.name} supports no other"
        )
    masks = {"full": FULL, "causal": CAUSAL}
    if declaration.masks and kind.mask not in [masks[name] for name in declaration.masks]:
        other = "one of data" if kind.mask.tabulated else "a window"
        mask_name = next((repr(name) for name, mask in masks.items() if mask == kind.mask), other)
        allowed = " or ".join(map(repr, declaration.masks))
        raise InputError(
            f"mask: {mask_name} given; allowed: {allowed}, because {declaration.name} is defined for no other"
        )
    for direction in passes_of(kind.direction):
        if declaration.answers != "attention" or declaration.approximates:
            lacked = set(kind.features) - set(declaration.features)
        else:
            lacked = set(declaration.without.get(direction, ()))
        missing = lacked & set(kind.features)
        if missing:
            raise InputError(
                f"{min(missing)}: given; allowed: not with {declaration.name}, whose {direction} pass lacks it"
            )


def passes_of(direction: str) -> tuple[str, ...]:
    """Return the passes of a direction, in order."""
    return ("forward", "backward") if direction == "both" else (direction,)
