"""The counts without a formula, taken from the mask's data or by a walk over the tiles."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from iomodel.common.arithmetic import floor_sum
from iomodel.counting.mask_kind import PAGES
from iomodel.errors import InputError
from iomodel.workloads.call import Mask
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.masks.spans import band_of
from iomodel.workloads.window import Window

MOST_TILES = 10**7
"""Most query tiles of an enumeration, which then takes some seconds."""


class MaskedRows(NamedTuple):
    """The lengths, the page size and the mask of a call."""

    q_len: int
    kv_len: int
    page_size: int
    mask: Any


def visible_tiles(mask: Mask, lengths: tuple[int, int], tiles: tuple[int, int], group: int = 1) -> int:
    """Count the pairs of a query tile and a key tile with a visible pair, of one head, at `group` rows per query [-].

    >>> visible_tiles("causal", (512, 512), (128, 128))
    10
    """
    (q_len, kv_len), (u, v) = lengths, tiles
    band = band_of(mask, q_len, kv_len)
    if band is None:
        return counted("pairs", "query", u, v, group, MaskedRows(q_len, kv_len, 1, mask))
    first = -q_len if band.first is None else band.first
    last = kv_len if band.last is None else band.last
    rows, width, most = q_len * group, group * v, -(-kv_len // v)
    live = max(0, min(-(-rows // u), -(-group * (kv_len - first) // u)))  # the others see no key
    stops = [
        _clipped_sum(live - 1, width, u, u + last * group + width - 1, most),
        _clipped_sum(1, width, 1, min(live * u, rows) + last * group + width - 1, most),
    ]
    return sum(stops) - _clipped_sum(live, width, u, first * group, most) if live else 0


def masked_tiles(mask: Mask, lengths: tuple[int, int], tiles: tuple[int, int], group: int = 1) -> int | None:
    """Count the pairs of tiles with a visible and a hidden pair, in which a kernel applies the mask [-].

    None with more query tiles than are walked one by one.

    >>> masked_tiles("causal", (512, 512), (128, 128)), masked_tiles("full", (512, 512), (128, 128))
    (4, 0)
    """
    (q_len, kv_len), (u, v) = lengths, tiles
    rows, keys = -(-q_len * group // u), -(-kv_len // v)
    if rows > MOST_TILES:
        return None
    seen = visible_tiles(mask, lengths, tiles, group)
    if isinstance(mask, BlockMask):
        hidden = mask.model_copy(update={"blocks": ~mask.blocks})
        return seen + visible_tiles(hidden, lengths, tiles, group) - rows * keys
    number = np.arange(rows, dtype=object if q_len * group + kv_len > 2**40 else np.int64)
    first, last = number * u // group, (np.minimum((number + 1) * u, q_len * group) - 1) // group
    band = band_of(mask, q_len, kv_len)
    if isinstance(mask, Documents):
        (start, _), (_, stop) = mask.ranges(last), mask.ranges(first)
    else:
        assert band is not None
        (start, _), (_, stop) = band.span(last, last, kv_len), band.span(first, first, kv_len)
    whole = np.where(stop >= kv_len, keys, stop // v) - -(-start // v)
    return seen - int(np.maximum(0, whole).sum())


def _clipped_sum(count: int, divisor: int, slope: int, offset: int, most: int) -> int:
    """Add up floor((slope i + offset) / divisor) of the first `count` numbers i, each taken as 0 to `most`."""
    start = min(count, max(0, -(offset // slope)))
    stop = min(count, max(start, -((offset - most * divisor) // slope)))
    return floor_sum(stop - start, divisor, slope, slope * start + offset) + most * (count - stop)


def counted(quantity: str, outer: str, u: int, v: int, group: int, workload: MaskedRows) -> int:
    """Return one count of the visits of tiles of u rows of the `outer` axis to tiles of v rows of the other axis."""
    for (left, padded), name in PAGES.items():
        if quantity == name:
            page, known = workload.page_size, workload.mask
            shown = known if left or not isinstance(known, Window) else known.model_copy(update={"left": None})
            return _pages(u, v, group, workload.q_len, workload.kv_len, page, shown, padded)
    return int(getattr(workload.mask.tiles(outer, u, v, workload.q_len, workload.kv_len, group), quantity))


@lru_cache(maxsize=4096)
def _pages(u: int, v: int, group: int, q_len: int, kv_len: int, page: int, mask: Mask, padded: bool) -> int:
    """Count the pages touched by the key tiles that the query tiles visit, one visit after the other.

    Tile i of u rows visits the key tiles lo(i) .. hi(i)-1, a range, since the mask is a band; a prefix sum of the
    pages of each key tile gives the rest. Where the tile divides the page, or the page the tile, sums of floors do.
    """
    tiles = -(-q_len * group // u)
    if tiles > MOST_TILES:
        raise InputError(
            f"block_q: {u} given; {tiles:,} query tiles are too many to count pages under a mask one by one"
        )
    first = np.arange(tiles, dtype=object if q_len + kv_len > 2**40 else np.int64) * u
    last = first + u - 1 if padded else np.minimum(first + u, q_len * group) - 1
    band = band_of(mask, q_len, kv_len)
    assert band is not None, "pages under a mask given by data"
    low, high = band.span(first // group, last // group, kv_len)
    seeing = low < high
    starts, stops = low[seeing] // v, (high[seeing] - 1) // v + 1
    ends, times = np.unique(np.concatenate([starts, stops]), return_inverse=True)
    up_to = np.array([_pages_up_to(int(tile), v, page, kv_len) for tile in ends], dtype=object)
    return int(up_to[times[len(starts) :]].sum() - up_to[times[: len(starts)]].sum()) if len(starts) else 0


def _pages_up_to(tiles: int, v: int, page: int, kv_len: int) -> int:
    """Count the pages that the first key tiles touch, one tile after the other."""
    total = floor_sum(tiles, page, v, v + page - 1) - floor_sum(tiles, page, v, 0)
    beyond = -(-min(tiles * v, kv_len) // page) - -(-tiles * v // page)
    return total + beyond
