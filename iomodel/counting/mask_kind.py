"""The kinds of mask that a formula distinguishes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MaskKind:
    """The bounded sides of a mask and the alignment of its diagonal, without the widths that formulas keep as symbols.

    A `tabulated` mask is known from its data alone; its counts are :class:`Count` nodes.
    """

    left: bool = False
    right: bool = False
    causal: bool = False
    top_left: bool = False
    tabulated: bool = False

    @property
    def hides(self) -> bool:
        """True unless every query sees every key."""
        return self.left or self.right or self.tabulated


FULL = MaskKind()
CAUSAL = MaskKind(right=True, causal=True)
PAGES = {
    (left, padded): "".join(("pages", "" if left else " from the first key", " of padded tiles" if padded else ""))
    for left in (True, False)
    for padded in (False, True)
}
"""Names of the counts of pages, by whether the left side of a window is skipped and rows that pad a tile see keys."""
