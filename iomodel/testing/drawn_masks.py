"""Masks as Hypothesis strategies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from iomodel.common.validation import as_integer
from iomodel.errors import InputError, UnknownNameError
from iomodel.testing.drawing import st
from iomodel.workloads.call import Mask
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.window import Align, Window

Kind = Literal["full", "causal", "window", "documents", "blocks"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BY_FORMULA: tuple[Kind, ...] = ("full", "causal", "window")
"""Kinds of masks given by numbers instead of data."""


def masks(
    q_len: int | None = None, kv_len: int | None = None, *, kinds: Iterable[Kind] = BY_FORMULA, max_side: int = 8
) -> st.SearchStrategy[Mask]:
    """Draw masks for `iomodel.Attention`.

    Parameters
    ----------
    q_len, kv_len : int, optional
        Lengths of the call [rows], required for masks given by data; kv_len defaults to q_len.
    kinds : iterable of {"full", "causal", "window", "documents", "blocks"}
        Kinds to draw; a kind listed twice is drawn twice as often. Documents need as many queries as keys; they are
        dropped from several kinds if the lengths differ.
    max_side : int
        Largest side of a window [keys].

    Raises
    ------
    UnknownNameError, InputError
        A kind is unknown, or there is none; a length is not a positive integer, or is missing for a mask given by data.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(masks(kinds=["window"]), lambda mask: mask.left is not None and mask.left > 2)
    Window(left=3, right=None, align='bottom-right')
    """
    names = known_kinds(kinds)
    most = as_integer("max_side", max_side, least=0)
    rows = None if q_len is None else as_integer("q_len", q_len)
    columns = rows if kv_len is None else as_integer("kv_len", kv_len)
    if rows != columns and set(names) != {"documents"}:
        names = [kind for kind in names if kind != "documents"]
    if rows is None or columns is None:
        for kind in names:
            if kind not in BY_FORMULA:
                raise InputError(f"q_len: not given, but required for {kind}; allowed: an integer from 1 up")
        rows = columns = 1
    elif rows != columns and "documents" in names:
        raise InputError(f"kv_len: {columns} given for documents; allowed: {rows}, as many as queries")
    return st.sampled_from(names).flatmap(lambda kind: of_kind(kind, rows, columns, most))


def known_kinds(kinds: Iterable[str]) -> list[Kind]:
    """Validate kinds of masks and return them as a list, or raise an error."""
    names: list[Any] = [kinds] if isinstance(kinds, str) else list(kinds)
    for kind in names:
        if kind not in KINDS:
            raise UnknownNameError("mask", kind, KINDS)
    if not names:
        raise InputError(f"masks: none given; allowed: some of {', '.join(KINDS)}")
    return names


def of_kind(kind: Kind, q_len: int, kv_len: int, max_side: int) -> st.SearchStrategy[Any]:
    """Draw masks of one kind for a call of these lengths."""
    if kind == "window":
        side = st.none() | st.integers(0, max_side)
        drawn = st.builds(Window, left=side, right=side, align=st.sampled_from(get_args(Align)))
        return drawn.filter(lambda window: (window.left, window.right) != (None, None))  # that is the full mask
    if kind == "documents":
        return st.builds(Documents, lengths=_documents(q_len), causal=st.booleans())
    return _blocks(q_len, kv_len) if kind == "blocks" else st.just(kind)


def _documents(length: int) -> st.SearchStrategy[Sequence[int]]:
    """Draw the lengths of documents that fill a sequence."""
    ends = st.sets(st.integers(1, length)).map(lambda ends: sorted(ends | {length}))
    return ends.map(lambda ends: [stop - start for start, stop in zip([0, *ends], ends, strict=False)])


@st.composite
def _blocks(draw: st.DrawFn, q_len: int, kv_len: int) -> BlockMask:
    block_q, block_kv = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    rows, columns = -(-q_len // block_q), -(-kv_len // block_kv)
    row = st.lists(st.booleans(), min_size=columns, max_size=columns)
    return BlockMask(draw(st.lists(row, min_size=rows, max_size=rows)), block_q, block_kv)
