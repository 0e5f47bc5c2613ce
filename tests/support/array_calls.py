"""Calls of `iomodel.cost_array`, and the same calls one element at a time: the witness of every test of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting.cost_array import cost_array
from iomodel.counting.quantities import QUANTITIES, TOTALS
from iomodel.nests.alphabet import (
    TILES,
)
from iomodel.workloads.call import ELEMENT_SIZE
from tests.support.strategies import VARIANTS, Variant

TILE_NAMES = {entry.name for entry in TILES}
NAMES = ("dtype", "kv_dtype", "kv_scales", "direction")
"""Fields that are words."""
COUNTS = (*QUANTITIES, *TOTALS)


def at(name: str, arguments: Mapping[str, Any], index: tuple[int, ...], shape: tuple[int, ...]) -> iomodel.Cost:
    """The cost at one element of a call of arrays, by the scalar way."""
    point: dict[str, Any] = {}
    for field, value in arguments.items():
        if isinstance(value, list | np.ndarray | np.generic):
            one = np.broadcast_to(np.asarray(value, dtype=object), shape)[index]
            point[field] = str(one) if field in NAMES else int(one)
        else:
            point[field] = value
    fields = {field: point.pop(field) for field in list(point) if field in iomodel.Attention.model_fields}
    tiles = {tile: point.pop(tile) for tile in list(point) if tile in TILE_NAMES}
    return iomodel.cost(name, iomodel.Attention(**fields), tiles or None, **point)


def picked(shape: tuple[int, ...], most: int | None = None, seed: int = 0) -> Iterator[tuple[int, ...]]:
    """The indices of an array, or the first, the last and some of them."""
    size = int(np.prod(shape))
    if most is None or size <= most:
        yield from np.ndindex(shape)
        return
    some = np.random.default_rng(seed).choice(size, most - 2, replace=False)
    for i in (0, size - 1, *some):
        yield tuple(map(int, np.unravel_index(int(i), shape)))


def same(name: str, arguments: Mapping[str, Any], most: int | None = None, every: bool = False) -> Any:
    """Hold an array call equal to the scalar cost, element by element; return the array's.

    Bytes and some other quantities, the same ones whenever a call of the same kind is made; or `every` one of them.
    """
    found = cost_array(name, **arguments)
    shape = np.broadcast_shapes(*(np.shape(value) for field, value in arguments.items() if field != "mask"))
    assert found.shape == shape
    indices = list(picked(shape, most))
    scalars = [at(name, arguments, index, shape) for index in indices]
    if not scalars:
        return found
    assert set(found.reads) == set(scalars[0].reads)
    assert set(found.writes) == set(scalars[0].writes)
    kind = repr([name, *((field, value) for field, value in arguments.items() if isinstance(value, str | bool))])
    for side, quantity in asked(scalars[0], None if every else crc32(f"{kind}{arguments.get('mask')}".encode())):
        array = getattr(found, side)[quantity] if side else getattr(found, quantity)
        for index, one in zip(indices, scalars, strict=True):
            expected = getattr(one, side)[quantity] if side else getattr(one, quantity)
            assert whole(array, shape)[index] == expected, (side, quantity, index)
    if every:
        assert [np.broadcast_to(found.intensity, shape)[index] for index in indices] == [c.intensity for c in scalars]
    return found


def asked(cost: iomodel.Cost, seed: int | None) -> list[tuple[str, str]]:
    """The quantities to compare, as a side and a name: all of them, or bytes and some that a seed picks."""
    sides = [("reads", name) for name in cost.reads] + [("writes", name) for name in cost.writes]
    quantities = [("", name) for name in COUNTS]
    if seed is None:
        return quantities + sides
    draw = Random(seed)
    return [("", "hbm_bytes"), *draw.sample(quantities[1:], 2), *draw.sample(sides, 1)]


def whole(values: Any, shape: tuple[int, ...]) -> Any:
    """Exact integers of a shape: int64, or Python integers where one of them is beyond."""
    assert isinstance(values, np.ndarray)
    assert values.shape == shape
    assert values.dtype in (np.int64, object)
    if values.dtype == object:
        assert all(type(value) is int for value in values.ravel())
    return values


sides = st.none() | st.integers(0, 8)
dtypes = st.sampled_from(sorted(ELEMENT_SIZE))


@st.composite
def windows(draw: st.DrawFn) -> Any:
    """A mask that a formula describes: full, causal, a band with any side unbounded and either alignment."""
    kind = draw(st.sampled_from(["full", "causal", "window", "window"]))
    if kind != "window":
        return kind
    return iomodel.Window(
        left=draw(sides), right=draw(sides), align=draw(st.sampled_from(["bottom-right", "top-left"]))
    )


@st.composite
def shaped(draw: st.DrawFn, shape: tuple[int, ...], least: int, most: int) -> Any:
    """An integer, or an array that broadcasts to a shape: fewer axes, axes of one, any memory order, a list."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.integers(least, most))
    keep = draw(st.integers(0, len(shape)))
    own = tuple(draw(st.sampled_from([n, 1])) for n in shape[len(shape) - keep :])
    flat = draw(st.lists(st.integers(least, most), min_size=int(np.prod(own)), max_size=int(np.prod(own))))
    return laid_out(np.array(flat, dtype=np.int64).reshape(own), draw(st.integers(0, 6)))


def laid_out(array: Any, way: int) -> Any:
    """The same numbers, in another order of memory or of another make."""
    if way == 0:
        return np.asfortranarray(array)
    if way == 1:
        return np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array  # strided
    if way == 2:
        return np.flip(np.flip(array).copy())  # negative strides
    if way == 3:
        return array.tolist() if array.ndim and array.size else array
    if way == 4:
        return array.astype(object)
    return array.astype([np.int32, np.uint64][way % 2]) if array.size and array.max() < 2**31 else array


shapes = st.sampled_from([(), (1,), (3,), (2, 3), (2, 1, 2)])


@st.composite
def calls(draw: st.DrawFn, variant: Variant | None = None, plain: bool = False) -> tuple[str, dict[str, Any]]:
    """An algorithm, and arguments for `cost_array`."""
    variant = draw(st.sampled_from(VARIANTS)) if variant is None else variant
    shape = draw(shapes)
    longest, largest = draw(st.sampled_from([(20, 9), (20, 9), (300, 40), (10**6, 2000), (10**18, 10**9)]))
    kv_heads = draw(st.sampled_from([1, 2, 3]))
    arguments: dict[str, Any] = {
        "q_len": draw(shaped(shape, 1, longest)),
        "head_dim": draw(shaped(shape, 1, 9)),
        "heads": draw(shaped(shape, 1, 4)),
        "direction": variant.direction,
        "mask": draw(windows()),
    }
    arguments["kv_heads"] = kv_heads
    arguments["heads"] = kv_heads * np.asarray(arguments["heads"], dtype=np.int64)
    if longest == 10**18 and isinstance(arguments["mask"], iomodel.Window):
        arguments["mask"] = iomodel.Window(left=10**5, right=10**16)
    for field, most in (("kv_len", longest), ("value_dim", 9), ("batch", 5)):
        if draw(st.booleans()):
            arguments[field] = draw(shaped(shape, 1, most))
    if draw(st.booleans()):
        arguments["dtype"] = draw(dtypes)
    for tile in variant.tiles:
        arguments[tile] = draw(shaped(shape, 1, largest))
    arguments |= dict(variant.options)
    arguments["packed"] = draw(st.booleans())
    if not plain:
        arguments |= draw(extras(variant, shape))
    for option in ("splits", "dq_buffers"):
        if option in algorithm(variant.algorithm).takes(variant.direction):
            arguments[option] = draw(shaped(shape, 1, 5))
    if "splits" in arguments:  # no more of them than tiles
        keys, size, splits = (
            np.asarray(value, dtype=np.int64)
            for value in (arguments.get("kv_len", arguments["q_len"]), arguments["block_kv"], arguments["splits"])
        )
        arguments["splits"] = np.minimum(splits, -(-keys // size))
    return variant.algorithm, arguments


SERVING: dict[str, st.SearchStrategy[Any]] = {
    "kv_dtype": dtypes,
    "kv_scales": st.sampled_from(["head", "token"]),
    "page_size": st.just(1),  # a mark: an array is drawn for it
}
ANY_TIME: dict[str, st.SearchStrategy[Any]] = {
    "bias": st.just(True),
    "softcap": st.just(30.0),
    "alibi": st.just(True),
    "sinks": st.just(True),
    "dropout": st.just(0.5),
}
FIELD_OF = {"paged": "page_size", "head_scales": "kv_scales", "token_scales": "kv_scales"}


@st.composite
def extras(draw: st.DrawFn, variant: Variant, shape: tuple[int, ...]) -> dict[str, Any]:
    """Some features of a call; pages may differ in size."""
    known = {**ANY_TIME, **(SERVING if variant.direction == "forward" else {})}
    lacked = {FIELD_OF.get(name, name) for name in variant.without}
    names = sorted(name for name in known if name not in lacked)
    chosen = draw(st.sets(st.sampled_from(names), max_size=2)) if names else set()
    found = {name: draw(known[name]) for name in sorted(chosen)}
    if "page_size" in found:
        found["page_size"] = draw(shaped(shape, 1, 9))
    return found
