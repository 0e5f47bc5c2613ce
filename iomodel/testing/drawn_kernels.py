"""Hypothesis strategies for the launches of a kernel: its lengths and its compile-time arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer, as_mapping
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.testing.drawing import st


class KernelCall(NamedTuple):
    """The numbers of one launch.

    Attributes
    ----------
    sizes : mapping of str to int
        Lengths of the call.
    meta : mapping of str to int
        Compile-time arguments.
    """

    sizes: Mapping[str, int]
    meta: Mapping[str, int]


def kernel_calls(
    sizes: Mapping[str, int], meta: Mapping[str, int | Iterable[int]], *, tiled: Mapping[str, str] | None = None
) -> st.SearchStrategy[KernelCall]:
    """Draw lengths and compile-time arguments for :func:`iomodel.triton.count`.

    Half of the lengths that a tile cuts are at a multiple of the tile, or one beside it: a kernel that forgets a mask
    or a tile has other counts there.

    Parameters
    ----------
    sizes : mapping of str to int
        The largest value of each length, such as ``{"rows": 40}``; the least is 1.
    meta : mapping of str to int or iterable of int
        The values of each compile-time argument, such as ``{"BLOCK_M": (16, 32)}``, or the largest: then powers of two
        up to it.
    tiled : mapping of str to str, optional
        The compile-time argument that cuts a length, such as ``{"rows": "BLOCK_M"}``.

    Returns
    -------
    strategy of KernelCall
        Each with `sizes` and `meta`.

    Raises
    ------
    InputError, UnknownNameError
        A number is not a positive integer; there is nothing to draw from; a name of `tiled` is unknown.

    Examples
    --------
    >>> from hypothesis import find
    >>> calls = kernel_calls({"n": 50}, {"BLOCK": 32}, tiled={"n": "BLOCK"})
    >>> call = find(calls, lambda call: call.sizes["n"] > call.meta["BLOCK"])
    >>> dict(call.sizes), dict(call.meta)
    ({'n': 2}, {'BLOCK': 1})
    """
    largest = {
        name: as_integer(f"sizes {name}", size) for name, size in as_mapping("sizes", sizes, "{'rows': 40}").items()
    }
    choices = {name: _values(name, values) for name, values in as_mapping("meta", meta, "{'BLOCK': 32}").items()}
    cut = as_mapping("tiled", {} if tiled is None else tiled, "{'rows': 'BLOCK'}")
    for size, tile in cut.items():
        if size not in largest:
            raise UnknownNameError("tiled", size, largest)
        if tile not in choices:
            raise UnknownNameError(f"tiled {size}", tile, choices)

    @st.composite
    def drawn(draw: Any) -> KernelCall:
        chosen = {name: draw(st.sampled_from(values)) for name, values in choices.items()}
        lengths = {}
        for name, most in largest.items():
            length = draw(st.integers(1, most))
            tile = chosen[cut[name]] if name in cut else None
            if tile is not None and draw(st.booleans()):
                beside = -(-length // tile) * tile + draw(st.sampled_from((0, 1, -1)))
                length = min(max(1, beside), most)
            lengths[name] = length
        return KernelCall(FrozenDict(lengths), FrozenDict(chosen))

    return drawn()


def _values(name: str, values: Any) -> list[int]:
    """Return the values of a compile-time argument."""
    if isinstance(values, str | bytes | Mapping):
        raise InputError(f"meta {name}: {shown(values)} given; allowed: the largest value, or a list of values")
    if isinstance(values, Iterable):
        listed = [as_integer(f"meta {name}", value) for _, value in zip(range(1000), values, strict=False)]
    else:
        largest = as_integer(f"meta {name}", values)
        listed = [2**power for power in range(largest.bit_length())]
    if not listed:
        raise InputError(f"meta {name}: no value given; allowed: at least one")
    return listed
