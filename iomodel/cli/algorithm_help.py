"""Selection of the options that a help page shows: those of the algorithm that the command line names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

from iomodel.algorithms import algorithm, discovered
from iomodel.cli.masks import BELONGS
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import TILES
from iomodel.nests.feature_names import FEATURE_NAMES
from iomodel.workloads.attention import Attention
from iomodel.workloads.mlp import MLP
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload_kinds import UNMASKED

OF_ALGORITHM = "Options of the algorithm"
"""Panel of the options that belong to algorithms."""
OF_WORKLOAD = ("Workload", "Mask", "Linear layer", "MLP", "Cross-entropy", "Recurrence")
"""Panels of the fields of a call."""
OF_FEATURES, OF_TILES = "Features", "Tiles"
NAMED = {"kv_scales": ("head_scales", "token_scales"), "page_size": ("paged",)}
"""Features of a call by the option that asks for them, where the names differ."""


def named_algorithm(words: Sequence[str]) -> Algorithm | None:
    """Return the first algorithm among the words of a command line; None without one."""
    known = discovered()
    return next((algorithm(word) for word in words if word in known), None)


def relevant(parameters: Iterable[Any], declaration: Algorithm) -> list[Any]:
    """Select the parameters that concern an algorithm, without the list of the others that take an option."""
    passes = [direction for direction in declaration.directions if direction != "both"]
    options = {
        name for direction in passes for name in (*declaration.takes(direction), *declaration.written(direction))
    }
    options |= set() if declaration.approximates else declaration.common.keys()
    fields = _fields(declaration)
    if declaration.answers != "attention" or declaration.approximates:
        lacked = frozenset(FEATURE_NAMES) - {*declaration.features}
    else:
        lacked = frozenset.intersection(*(frozenset(declaration.without.get(direction, ())) for direction in passes))
    tiles = _tiles(declaration, passes)

    def concerns(name: str, panel: str | None) -> bool:
        if panel == OF_ALGORITHM:
            return name in options
        if panel == OF_FEATURES:
            return name in fields and not {*NAMED.get(name, (name,))} <= lacked
        if panel == OF_TILES:
            return name in tiles or name not in TILE_NAMES
        return panel not in OF_WORKLOAD or name in fields

    chosen = []
    for parameter in parameters:
        panel = getattr(parameter, "rich_help_panel", None)
        if concerns(parameter.name, panel):
            chosen.append(copy(parameter))
            if panel == OF_ALGORITHM:
                chosen[-1].help = _own_meaning(parameter.help or "")
    return chosen


TILE_NAMES = frozenset(entry.name for entry in TILES)


def _fields(declaration: Algorithm) -> set[str]:
    """Return the names of the options that describe a call of an algorithm."""
    if declaration.answers in UNMASKED:
        kind = UNMASKED[declaration.answers]
        return {*kind.model_fields, *(("loads",) if kind is MLP else ())}
    own = {*Attention.model_fields, *VarlenAttention.model_fields}
    masks = {"align", *(name for names in BELONGS.values() for name in names)}
    return own | masks | {"head_scales", "token_scales", "paged"}


def _tiles(declaration: Algorithm, passes: Iterable[str]) -> set[str]:
    """Return the names of the tiles of an algorithm."""
    from iomodel.counting.compiled_algorithm import tally
    from iomodel.counting.kinds import FormulaKind, mask_kind
    from iomodel.counting.options import structural

    mask = mask_kind("full" if "full" in (declaration.masks or ("full",)) else "causal")
    names: set[str] = set()
    for direction in passes:
        options = {**declaration.takes(direction), **declaration.common}
        for tiled in {options.get("tiled", True), True}:
            chosen = structural({**options, **({"tiled": tiled} if "tiled" in options else {})})
            names.update(tally(declaration, FormulaKind(mask, direction, (), declaration.answers), chosen).tiles)
    return names


def _own_meaning(help: str) -> str:
    """Return the help of an option without the algorithms that take it."""
    _, colon, meaning = help.partition(": ")
    return meaning[:1].upper() + meaning[1:] if colon else help
