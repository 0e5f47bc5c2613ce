"""Columns of an array of calls: the fields of a template, the tiles and the columns that replace them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.counting.choice import split_choice
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import TILE_NAMES
from iomodel.workloads.workload import Shape
from iomodel.workloads.workload_kinds import KINDS, NOUNS


def columns_of_calls(
    declaration: Algorithm, workload: object, tiles: Mapping[str, Any] | None, columns: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields, tiles and options of an array of calls, those of a template replaced by columns.

    A field of the template whose default is taken from others follows them again where it has that default. Raise
    InputError for a template of another kind of workload than the algorithm answers, or of several lengths.

    >>> from iomodel.algorithms import algorithm
    >>> w = KINDS["attention"](heads=8, kv_heads=2, q_len=128, head_dim=64)
    >>> columns_of_calls(algorithm("flash2"), w, {"block_q": 64}, {"seq_len": [128, 256]})
    {'heads': 8, 'kv_heads': 2, 'head_dim': 64, 'q_len': [128, 256], 'block_q': 64}
    """
    kind: type[Shape] | None = KINDS.get(declaration.answers)
    sizes, own = split_choice(declaration, tiles, columns)
    if kind is None:
        raise InputError(
            f"algorithm: {declaration.name} given; allowed: an algorithm of {', '.join(KINDS)}, in an array of calls"
        )
    fields = kind.spelled_here(own)
    if workload is not None and not isinstance(workload, kind):
        raise InputError(
            f"workload: {shown(workload)} given; allowed: {NOUNS[declaration.answers]}, whose fields columns replace"
        )
    template = {} if workload is None else workload.template
    for name in sizes or {}:
        if not isinstance(name, str):
            raise UnknownNameError(f"tile of {declaration.name}", name, TILE_NAMES)
    return {**template, **fields, **(sizes or {})}
