"""Alternative calls, tiles and options that may explain the counts of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.cost import Cost, cost
from iomodel.errors import IOModelError
from iomodel.nests.feature_names import default_of, other_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.window import Window


def alternatives(reference: Cost) -> Iterator[tuple[str, Cost]]:
    """Yield the cost of each alternative with its description; rejected alternatives are skipped.

    Alternatives with the formulas of the call come first, because the others are compiled on demand.
    """
    for explanation, workload, tiles, options in chain(
        _masks(reference), _tiles(reference), _alignments(reference), _options(reference), _as_written(reference)
    ):
        try:
            yield explanation, cost(reference.algorithm, workload, tiles, **options)
        except IOModelError:
            continue


_Changed = tuple[str, Any, Any, Any]


def _options(reference: Cost) -> Iterator[_Changed]:
    """Yield each switch inverted."""
    w, tiles, options = reference.workload, reference.tiles, dict(reference.options)
    written = find_algorithm(reference.algorithm).written(w.direction)
    switches = {"packed": False, **options}
    for name, value in switches.items():
        if isinstance(value, bool) and name not in written and (name != "packed" or w.group > 1):
            yield f"{name}={not value}", w, tiles, {**options, name: not value}


def _as_written(reference: Cost) -> Iterator[_Changed]:
    """Yield each option as written that has a meaning, inverted; slabs need a tile that is not known."""
    w, tiles, options = reference.workload, reference.tiles, dict(reference.options)
    for name in find_algorithm(reference.algorithm).written(w.direction):
        if name != "value_slabs":
            value = default_of(name) if name in options else other_of(name)
            yield f"{name}={value}", w, tiles, {**options, name: value}


def _masks(reference: Cost) -> Iterator[_Changed]:
    """Yield windows one key wider or narrower, and no mask."""
    w, mask = reference.workload, reference.workload.mask
    if isinstance(mask, Window):
        for side, step in product(("left", "right"), (1, -1)):
            size = getattr(mask, side)
            if size is not None and size + step >= 0:
                word = "wider" if step > 0 else "narrower"
                yield (
                    f"a window one key {word}: {side}={size + step}",
                    _masked(w, mask, **{side: size + step}),
                    *_at(reference),
                )
    if mask != "full":
        yield 'no tile is skipped: mask="full"', _with(w, mask="full"), *_at(reference)


def _alignments(reference: Cost) -> Iterator[_Changed]:
    """Yield the other alignment, a diagonal one key further, and a causal bound."""
    w, mask = reference.workload, reference.workload.mask
    if mask != "causal" and not isinstance(mask, Window):
        return
    window = mask if isinstance(mask, Window) else Window(right=0)
    if mask == "causal":
        yield "a window one key wider: right=1", _masked(w, window, right=1), *_at(reference)
    if window.right is None:
        yield "keys after the query are hidden: right=0", _masked(w, window, right=0), *_at(reference)
    align = "top-left" if window.align == "bottom-right" else "bottom-right"
    yield f"diagonal at {align}", _masked(w, window, align=align), *_at(reference)


def _tiles(reference: Cost) -> Iterator[_Changed]:
    """Yield exchanged tiles, and ragged tiles counted in full."""
    w, tiles = reference.workload, dict(reference.tiles)
    q, k = tiles.get("block_q"), tiles.get("block_kv")
    if q is None or k is None:
        return
    if q != k:
        swapped = {**tiles, "block_q": k, "block_kv": q}
        yield "block_q and block_kv are exchanged", w, swapped, reference.options
    rows = 1 if reference.options.get("packed") else q
    if isinstance(w, Attention):
        lengths: dict[str, Any] = {"q_len": _up(w.q_len, rows), "kv_len": _up(w.kv_len, k)}
    else:
        lengths = {"q_lens": [_up(n, rows) for n in w.q_lens], "kv_lens": [_up(n, k) for n in w.kv_lens]}
    yield "ragged tiles are counted in full", _with(w, **lengths), tiles, reference.options


def _at(reference: Cost) -> tuple[Any, Any]:
    return reference.tiles, reference.options


def _masked(workload: Attention | VarlenAttention, window: Window, **changed: Any) -> Call | None:
    return _with(
        workload, mask=Window(**{"left": window.left, "right": window.right, "align": window.align, **changed})
    )


def _with(workload: Attention | VarlenAttention, **changed: Any) -> Call | None:
    """Change some fields of the call; None (rejected later) if the result is invalid."""
    try:
        return workload.model_copy(update=changed)
    except IOModelError:
        return None


def _up(length: int, tile: int) -> int:
    return -(-length // tile) * tile
