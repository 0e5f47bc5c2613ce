"""Other calls, tiles and options that a kernel may have run instead of those it is compared at."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from typing import Any

from iomodel.cost import Cost, cost
from iomodel.errors import IOModelError
from iomodel.workload import Attention, Call, VarlenAttention, Window


def alternatives(asked: Cost) -> Iterator[tuple[str, Cost]]:
    """What each of them would cost, with what it is; those that are refused are left out.

    What has the formulas of the call comes first: others are compiled when they are asked for.
    """
    for words, workload, tiles, options in chain(_masks(asked), _tiles(asked), _alignments(asked), _options(asked)):
        try:
            yield words, cost(asked.algorithm, workload, tiles, **options)
        except IOModelError:
            continue


_Changed = tuple[str, Any, Any, Any]


def _options(asked: Cost) -> Iterator[_Changed]:
    """Each switch the other way."""
    w, tiles, options = asked.workload, asked.tiles, dict(asked.options)
    switches = {"packed": False, **options}
    for name, value in switches.items():
        if isinstance(value, bool) and (name != "packed" or w.group > 1):
            yield f"as with {name}={not value}", w, tiles, {**options, name: not value}


def _masks(asked: Cost) -> Iterator[_Changed]:
    """A window that is one key wider or narrower; no mask."""
    w, mask = asked.workload, asked.workload.mask
    if isinstance(mask, Window):
        for side, step in product(("left", "right"), (1, -1)):
            size = getattr(mask, side)
            if size is not None and size + step >= 0:
                word = "wider" if step > 0 else "narrower"
                yield (
                    f"a window one key {word}: {side}={size + step}",
                    _masked(w, mask, **{side: size + step}),
                    *_at(asked),
                )
    if mask != "full":
        yield 'no tile is skipped: as with mask="full"', _with(w, mask="full"), *_at(asked)


def _alignments(asked: Cost) -> Iterator[_Changed]:
    """The diagonal elsewhere, or one key further; only keys up to the query."""
    w, mask = asked.workload, asked.workload.mask
    if mask != "causal" and not isinstance(mask, Window):
        return
    window = mask if isinstance(mask, Window) else Window(right=0)
    if mask == "causal":
        yield "a window one key wider: right=1", _masked(w, window, right=1), *_at(asked)
    if window.right is None:
        yield "keys after the query are hidden: right=0", _masked(w, window, right=0), *_at(asked)
    align = "top-left" if window.align == "bottom-right" else "bottom-right"
    yield f"the diagonal lies {align}", _masked(w, window, align=align), *_at(asked)


def _tiles(asked: Cost) -> Iterator[_Changed]:
    """Exchanged tiles; ragged ones that count whole."""
    w, tiles = asked.workload, dict(asked.tiles)
    q, k = tiles.get("block_q"), tiles.get("block_kv")
    if q is None or k is None:
        return
    if q != k:
        swapped = {**tiles, "block_q": k, "block_kv": q}
        yield "block_q and block_kv are exchanged", w, swapped, asked.options
    rows = 1 if asked.options.get("packed") else q
    if isinstance(w, Attention):
        lengths: dict[str, Any] = {"q_len": _up(w.q_len, rows), "kv_len": _up(w.kv_len, k)}
    else:
        lengths = {"q_lens": [_up(n, rows) for n in w.q_lens], "kv_lens": [_up(n, k) for n in w.kv_lens]}
    yield "ragged tiles are counted whole", _with(w, **lengths), tiles, asked.options


def _at(asked: Cost) -> tuple[Any, Any]:
    return asked.tiles, asked.options


def _masked(workload: Attention | VarlenAttention, window: Window, **changed: Any) -> Call | None:
    return _with(
        workload, mask=Window(**{"left": window.left, "right": window.right, "align": window.align, **changed})
    )


def _with(workload: Attention | VarlenAttention, **changed: Any) -> Call | None:
    """The call with some fields changed; None, which is refused, where that is no call."""
    try:
        return workload.model_copy(update=changed)
    except IOModelError:
        return None


def _up(length: int, tile: int) -> int:
    return -(-length // tile) * tile
