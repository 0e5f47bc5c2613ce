"""Rows of one axis that a tile of the other sees under a mask, as spans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from iomodel.common.band import Band
from iomodel.workloads.masks.tabulated import Spans, Tabulated
from iomodel.workloads.window import Window

if TYPE_CHECKING:
    from iomodel.workloads.call import Mask


def band_of(mask: Mask, q_len: int, kv_len: int) -> Band | None:
    """Return the keys that a query sees as a band; None for a mask given by data."""
    if isinstance(mask, Tabulated):
        return None
    if mask == "full":
        return Band()
    if mask == "causal":
        return Band.around(kv_len - q_len, None, 0)
    assert isinstance(mask, Window)
    return Band.around(kv_len - q_len if mask.align == "bottom-right" else 0, mask.left, mask.right)


@dataclass(frozen=True)
class MaskSpans:
    """A mask over queries of `group` rows each and keys of one row."""

    mask: Mask
    q_len: int
    kv_len: int
    group: int = 1

    def without_left(self) -> MaskSpans:
        """Return the mask without the left side of a window."""
        if not isinstance(self.mask, Window):
            return self
        return replace(self, mask=self.mask.model_copy(update={"left": None}))

    def spans(self, axis: str, start: int, stop: int, more: int = 0) -> Spans | None:
        """Return the rows of `axis` that the rows start .. stop - 1 of the other axis see; None is all of them.

        Of queries, also of `more` rows after the last one, which see keys of a band as queries would.
        """
        if self.mask == "full":
            return None
        own, other = (self.group, 1) if axis == "key" else (1, self.group)
        first, last = start // own, (stop - 1) // own
        if isinstance(self.mask, Tabulated):
            seen = self.mask.spans(axis, first, last, self.q_len, self.kv_len)
        else:
            seen = self._band_spans(axis, first, last, -(-more // self.group))
        return [(low * other, high * other) for low, high in seen]

    def _band_spans(self, axis: str, first: int, last: int, more: int) -> Spans:
        band = band_of(self.mask, self.q_len, self.kv_len) or Band()
        band, length = (band, self.kv_len) if axis == "key" else (band.transposed(), self.q_len + more)
        low, high = map(int, band.span(first, last, length))
        return [(low, high)] if low < high else []
