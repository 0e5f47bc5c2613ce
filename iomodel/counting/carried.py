"""Kinds of formula that a release carries compiled.

These are the kinds of every algorithm with its default options, under full, causal and windowed masks, in every
direction, with the rows of a group packed and not; and those of the kernels that plans run, with the features of the
shipped models.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any

from iomodel.counting.kinds import FormulaKind
from iomodel.counting.mask_kind import CAUSAL, FULL, MaskKind
from iomodel.counting.options import check_options, structural
from iomodel.nests.algorithm import Algorithm

Options = tuple[tuple[str, Any], ...]
PLANNED: dict[str, dict[str, Any]] = {"flash3": {"lse": False}, "split_kv": {}, "flash2": {"lse": False}}
"""Options of the kernels that plans run, whose forward pass has more features here."""
MASKS = {"full": FULL, "causal": CAUSAL, "window": MaskKind(left=True, right=True)}
FEATURES: dict[str, list[tuple[str, ...]]] = {
    "full": [(), ("latent", "sinks"), ("latent", "kv_dtype", "sinks")],
    "causal": [
        *((), ("kv_dtype",), ("latent",), ("latent", "kv_dtype")),
        *(("sinks",), ("kv_dtype", "sinks"), ("softcap",), ("kv_dtype", "softcap")),
    ],
    "window": [(), ("kv_dtype",), ("sinks",), ("kv_dtype", "sinks"), ("softcap",), ("kv_dtype", "softcap")],
}
"""Features of the attention of shipped models by mask: latents, sinks, capped scores, a cache in another dtype."""


def carried(declared: Algorithm) -> Iterator[tuple[FormulaKind, Options]]:
    """Yield the kinds that a release carries of an algorithm, with the options of each."""
    if declared.answers != "attention":
        sets = chain.from_iterable(combinations(declared.features, n) for n in range(len(declared.features) + 1))
        for features, direction in product(sets, declared.directions[:2]):
            if len({*features} & {*declared.exclusive}) <= 1:
                kind = FormulaKind(direction=direction, features=features, operation=declared.answers)
                yield kind, structural(check_options(declared, {}, False, direction))
        return
    masks = [mask for name, mask in MASKS.items() if not declared.masks or name in declared.masks]
    packings: list[dict[str, Any]] = [{}] if declared.approximates else [{}, {"packed": True}]
    tilings = (False, True) if declared.tiled_by else (False,)
    for direction, mask, packing, tiled in product(declared.directions, masks, packings, tilings):
        yield FormulaKind(mask, direction), structural(check_options(declared, packing, tiled, direction))
    for mask_name, packing in product(FEATURES if declared.name in PLANNED else (), packings):
        options = structural(check_options(declared, PLANNED[declared.name] | packing, True, "forward"))
        for features in FEATURES[mask_name]:
            yield FormulaKind(MASKS[mask_name], "forward", features), options
