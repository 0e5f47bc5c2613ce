"""Sliding windows: masks bounded on either side of the diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from iomodel.common.validation import Distance, Model

Align = Literal["bottom-right", "top-left"]


class Window(Model):
    """A band: query i sees the keys i + off - left .. i + off + right.

    Parameters
    ----------
    left, right : int or None
        Keys visible beside the diagonal [keys]; None is unbounded. A call keeps a window unbounded on both sides as
        the mask "full".
    align : {"bottom-right", "top-left"}
        Alignment of the diagonal: off = kv_len - q_len, so that the last query sees the last key, or off = 0.

    Raises
    ------
    InputError
        A side is negative or not an integer, or the alignment is unknown.

    Examples
    --------
    >>> Window(4095, 0)  # Mistral 7B's sliding window
    Window(left=4095, right=0, align='bottom-right')
    """

    by_position = ("left", "right")

    left: Distance | None = None
    right: Distance | None = None
    align: Align = "bottom-right"

    if TYPE_CHECKING:

        def __init__(
            self, left: int | None = None, right: int | None = None, *, align: Align = "bottom-right"
        ) -> None: ...


def open_ended(mask: object) -> tuple[str, ...]:
    """Say that each query sees all later keys, under a window whose right side was left out; nothing of other masks.

    >>> open_ended(Window(4095)), open_ended(Window(4095, 0))
    (('each query sees all later keys (a window without right)',), ())
    """
    ends = not isinstance(mask, Window) or mask.left is None or mask.right is not None
    return () if ends else ("each query sees all later keys (a window without right)",)
