"""Bytes of a storage that views of it cover together, from below."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from iomodel.torch.operator_call import TensorArgument

Interval = tuple[int, int]


def covered(views: Iterable[TensorArgument]) -> int:
    """Return a lower bound on the bytes that views of one storage cover together [B]; exact where all are dense.

    >>> first = TensorArgument((4, 8), "float32", 4)
    >>> second = TensorArgument((4, 8), "float32", 4, offset=16)
    >>> covered([first, second])
    192
    """
    dense: list[Interval] = []
    strided: dict[object, list[TensorArgument]] = {}
    for view in {(view, view.offset): view for view in views}.values():
        span = dense_span(view)
        if span is not None:
            dense.append(span)
        else:
            strided.setdefault((view.shape, view.strides, view.element_bytes), []).append(view)
    return max([united(dense), *map(_apart, strided.values())])


def dense_span(view: TensorArgument) -> Interval | None:
    """Return the first and the last byte of a view whose elements are next to each other, in any order of its axes."""
    if not view.elements:
        return 0, 0
    if view.strides is not None:
        expected = 1
        for step, length in sorted(zip(view.strides, view.shape, strict=True)):
            if length > 1 and step:
                if step != expected:
                    return None
                expected *= length
    start = view.offset * view.element_bytes
    return start, start + view.distinct_bytes


def united(spans: Iterable[Interval]) -> int:
    """Return the length of a union of intervals."""
    total, end = 0, 0
    for first, last in sorted(spans):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total


def _apart(alike: list[TensorArgument]) -> int:
    """Return the bytes of views of one shape if none overlaps another, as the parts of a split do, else of one view."""
    run, period, alone = 1, 0, True
    for step, length in sorted(zip(alike[0].strides or (), alike[0].shape, strict=True)):
        if length == 1 or not step:
            continue
        if not period and step == run:
            run *= length  # elements next to each other
        else:
            period = period or step
            alone &= step % period == 0
    places = sorted(view.offset for view in alike)
    gaps = [later - earlier for earlier, later in pairwise(places)]
    disjoint = alone and all(gap >= run for gap in gaps) and places[-1] - places[0] + run <= period
    return sum(view.distinct_bytes for view in alike) if disjoint else alike[0].distinct_bytes
