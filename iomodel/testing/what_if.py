"""Alternative calls, tiles and options that may explain the counts of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.cost import Cost, cost
from iomodel.errors import IOModelError
from iomodel.nests.feature_names import default_of, other_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.window import Window

_Changed = tuple[str, Any, Any, Any]
Moved = Callable[[Cost], Mapping[Any, int]]
SIZES = tuple(1 << power for power in range(9))
"""Sizes of tiles that are tried."""


def alternatives(reference: Cost) -> Iterator[tuple[str, Cost]]:
    """Yield the cost of each alternative with its description; rejected alternatives are skipped.

    Alternatives with the formulas of the call come first, because the others are compiled on demand.
    """
    yield from _costs(reference, _changes(reference))


def other_tiles(reference: Cost) -> Iterator[tuple[str, Cost]]:
    """Yield the cost at each other size of one tile or of two."""
    yield from _costs(reference, _tile_sizes(reference))


def pairs(
    reference: Cost, singles: Sequence[tuple[str, Cost]], wrong: Sequence[Any], moved: Moved
) -> Iterator[tuple[str, Cost]]:
    """Yield the cost of every pair of changes that together change all wrong counts.

    `singles` are the changes made alone, and `moved` gives the counts of a cost.
    """
    before = moved(reference)
    changed = {text: _differing(before, moved(other)) for text, other in singles}
    useful = {text: other for text, other in singles if changed[text]}
    done: set[str] = set()
    for first, cost_of_first in useful.items():
        done.add(first)
        wanted = {
            text
            for text, keys in changed.items()
            if text not in done and changed[first] | keys >= set(wrong) and not (_tiled(first) and _tiled(text))
        }
        if wanted:
            both = chain(_changes(cost_of_first), _tile_sizes(cost_of_first))
            for second, cost_of_both in _costs(cost_of_first, (each for each in both if each[0] in wanted)):
                yield f"{first} and {second}", cost_of_both


def _differing(before: Mapping[Any, int], after: Mapping[Any, int]) -> set[Any]:
    """Collect the tensors whose counts differ."""
    return {key for key in before.keys() | after.keys() if before.get(key, 0) != after.get(key, 0)}


def _costs(reference: Cost, changes: Iterable[_Changed]) -> Iterator[tuple[str, Cost]]:
    for explanation, workload, tiles, options in changes:
        try:
            yield explanation, cost(reference.algorithm, workload, tiles, **options)
        except IOModelError:
            continue


def _changes(reference: Cost) -> Iterator[_Changed]:
    if isinstance(reference.workload, Linear):
        return chain(_options(reference), _as_written(reference))
    return chain(
        _masks(reference), _tiles(reference), _alignments(reference), _options(reference), _as_written(reference)
    )


def _options(reference: Cost) -> Iterator[_Changed]:
    """Yield each switch inverted."""
    w, tiles, options = reference.workload, reference.tiles, dict(reference.options)
    algorithm = find_algorithm(reference.algorithm)
    written = algorithm.written(getattr(w, "direction", "forward"))
    switches = {**algorithm.common, **options}
    for name, value in switches.items():
        if isinstance(value, bool) and name not in written and (name != "packed" or w.group > 1):
            yield f"{name}={not value}", w, tiles, {**options, name: not value}


def _as_written(reference: Cost) -> Iterator[_Changed]:
    """Yield each option as written that has a meaning, inverted; slabs need a tile that is not known."""
    w, tiles, options = reference.workload, reference.tiles, dict(reference.options)
    for name in find_algorithm(reference.algorithm).written(getattr(w, "direction", "forward")):
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
    else:
        yield 'tiles after the diagonal are skipped: mask="causal"', _with(w, mask="causal"), *_at(reference)


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


def _tile_sizes(reference: Cost) -> Iterator[_Changed]:
    """Yield other sizes of one tile, then of two."""
    tiles = dict(reference.tiles)
    names = [name for name in tiles if name.startswith("block_")]
    for number in (1, 2):
        for chosen in combinations(names, number):
            for sizes in product(SIZES, repeat=number):
                changed = dict(zip(chosen, sizes, strict=True))
                if all(tiles[name] != size for name, size in changed.items()):
                    text = ", ".join(f"{name}={size}" for name, size in changed.items())
                    yield text, reference.workload, {**tiles, **changed}, reference.options


def _tiled(text: str) -> bool:
    """Check whether a change sets tiles, by its description."""
    return text.startswith("block_")


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
