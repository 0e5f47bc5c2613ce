"""Fields of many attention calls, as values or arrays, checked and broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.common.spellings import dtype_name
from iomodel.counting.arrays.integers import LONG, as_integers, at_place, check_range, common_shape
from iomodel.counting.evaluation.blocks import Part
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import ELEMENT_SIZE, KV_MULTIPLE, KV_QUARTERS
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.window import Window
from iomodel.workloads.workload import stored

NUMERIC = ("batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim", "value_dim", "page_size")
"""Numeric fields."""
WORDS = ("dtype", "kv_dtype")
"""Fields whose names stand for a number, the size of an element."""
FOLLOWS = {"kv_len": "q_len", "kv_heads": "heads", "value_dim": "head_dim", "kv_dtype": "dtype"}
"""The field that each of these fields takes its default from."""
SIDES = {"window_left": "left", "window_right": "right"}
"""Widths of a window as separate arguments, which may be arrays, with the field of the window."""


def least_of(name: str) -> int:
    """Return the least allowed value of a number; the width of a window may be 0."""
    return 0 if name in SIDES else 1


@dataclass(frozen=True, eq=False)
class Calls:
    """A set of attention calls of one kind, with fields that broadcast.

    Attributes
    ----------
    fields : mapping
        The fields of :class:`~iomodel.workload.Attention`; the numbers and dtypes may be arrays.
    widths : mapping
        The separate widths of the window, `window_left` and `window_right` [keys].
    shape : tuple of int
        The broadcast shape of all arguments.
    first : Attention
        One of the calls, with every feature that any call has.
    late : tuple of str
        Fields with long arrays that are still unchecked; the check runs at their first use.
    """

    fields: Mapping[str, Any]
    widths: Mapping[str, Any]
    shape: tuple[int, ...]
    first: Attention
    late: tuple[str, ...] = ()

    def call(self, place: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Attention:
        """Return the call at one index of this shape, or of a shape that it broadcasts to."""
        at = {
            name: at_place(value, place, shape or self.shape) if name in NUMERIC + WORDS else value
            for name, value in self.fields.items()
        }
        if self.widths:
            sides = {SIDES[name]: at_place(value, place, shape or self.shape) for name, value in self.widths.items()}
            at["mask"] = Window(**{**dict(at["mask"]), **sides})
        return Attention(**at)

    def number(self, name: str) -> Any:
        """Return the value of a workload symbol, by Python name."""
        if name in NUMERIC and name in self.fields:
            return self.fields[name]
        if name in self.widths:
            return self.widths[name]
        if name in ("element_size", "kv_size"):
            return self._sizes[name]
        if name == "group":
            return self._group
        return self.first.numbers[name]

    @cached_property
    def _group(self) -> Any:
        return self.fields["heads"] // self.fields["kv_heads"]

    @cached_property
    def _sizes(self) -> dict[str, Any]:
        return {
            "element_size": _sizes(self.fields["dtype"], ELEMENT_SIZE),
            "kv_size": _sizes(self.fields.get("kv_dtype", self.fields["dtype"]), KV_QUARTERS),
        }

    @property
    def point(self) -> dict[str, Any]:
        """Values of all workload symbols by Python name, in the order of the alphabet."""
        return {name: self.number(name) for name in self.first.numbers}

    @property
    def numeric(self) -> dict[str, Any]:
        """Numeric fields and the widths of the window."""
        return {**{name: value for name, value in self.fields.items() if name in NUMERIC}, **self.widths}

    def refuse(self, wrong: Any, part: Part | None = None) -> None:
        """Raise InputError for the first call marked as wrong, of all calls or of a part."""
        if not np.any(wrong):
            return
        part = part or tuple(slice(0, length) for length in self.shape)
        here = np.argwhere(np.broadcast_to(wrong, tuple(bounds.stop - bounds.start for bounds in part)))[0]
        place = tuple(int(i) + bounds.start for i, bounds in zip(here, part, strict=True))
        try:
            self.call(place)
        except InputError as error:
            raise InputError(f"{error}; at index {place}") from None


def calls(arguments: Mapping[str, Any], beside: Mapping[str, Any] | None = None, late: bool = False) -> Calls:
    """Build the calls with these fields; raise InputError for any value that Attention rejects.

    `beside` holds arrays that broadcast with the fields. With `late`, long arrays are checked at their first use.
    """
    fields = {
        name: value for name, value in arguments.items() if value is not None or name not in (*FOLLOWS, "page_size")
    }
    widths = {name: fields.pop(name) for name in SIDES if name in fields}
    widths = {name: as_integers(name, value, 0, late) for name, value in widths.items()}
    fields |= {name: as_integers(name, fields[name], late=late) for name in NUMERIC if name in fields}
    fields.setdefault("heads", 1)
    fields.setdefault("dtype", "bf16")
    fields |= {name: _words(name, fields[name]) for name in WORDS if name in fields}
    for name, followed in FOLLOWS.items():
        if followed in fields and (followed != "dtype" or isinstance(fields["dtype"], np.ndarray)):
            fields.setdefault(name, fields[followed])
    _check_widths(fields, widths)
    arrays = {name: value for name, value in {**fields, **widths}.items() if isinstance(value, np.ndarray)}
    followers = {name for name, followed in FOLLOWS.items() if fields.get(name) is fields.get(followed)}
    apart = {name: value for name, value in arrays.items() if name not in followers}
    shape = common_shape({**apart, **(beside or {})})
    unchecked = tuple(name for name, value in arrays.items() if late and name not in WORDS and value.size >= LONG)
    if 0 in shape:
        placeholders = {name: _some(name, fields[name]) for name in arrays.keys() & fields.keys()}
        return Calls(fields, widths, shape, Attention(**{**fields, **placeholders}))
    checked = Calls(fields, widths, shape, _first(fields, widths, shape, unchecked), unchecked)
    _check_together(checked)
    return checked


def _some(name: str, value: Any) -> Any:
    """Return a valid placeholder for the elements of an empty array."""
    if name in NUMERIC:
        return 1
    return str(value.flat[0]) if value.size else "bf16"


def _first(
    fields: Mapping[str, Any], widths: Mapping[str, Any], shape: tuple[int, ...], long: tuple[str, ...]
) -> Attention:
    """Return the first call, or the first with a separate dtype for K and V."""
    place = (0,) * len(shape)
    if isinstance(fields.get("kv_dtype"), np.ndarray) or isinstance(fields["dtype"], np.ndarray):
        types = (np.asarray(fields[name]) for name in WORDS)
        one, other = (np.where(each == "tf32", stored("tf32"), each) for each in types)
        own = np.broadcast_to(one != other, shape)
        place = tuple(map(int, np.unravel_index(int(own.argmax()), shape)))
    for name in long:  # long arrays are still unchecked
        value = int(np.broadcast_to({**fields, **widths}[name], shape)[place])
        check_range(name, np.full((1,) * len(shape), value), value, value, least_of(name), place)
    return Calls(fields, widths, shape, None).call(place)  # type: ignore[arg-type]


def _check_together(checked: Calls) -> None:
    """Raise InputError where fields conflict, among the fields already checked."""
    fields = checked.fields
    if not {"heads", "kv_heads"} & set(checked.late) and fields["heads"] is not fields["kv_heads"]:
        checked.refuse(fields["heads"] % fields["kv_heads"] != 0)
    if checked.first.latent:
        checked.refuse((fields["kv_heads"] != 1) | (fields["value_dim"] > fields["head_dim"]))
    if np.isin(fields.get("kv_dtype", fields["dtype"]), [*KV_MULTIPLE]).any():
        multiples = _sizes(fields["kv_dtype"], {**dict.fromkeys(KV_QUARTERS, 1), **KV_MULTIPLE})
        for name in {"head_dim", "value_dim"} & fields.keys() - set(checked.late):
            checked.refuse(fields[name] % multiples != 0)
    if isinstance(checked.first.mask, BlockMask | Documents):
        checked.refuse((fields["q_len"] != checked.first.q_len) | (fields["kv_len"] != checked.first.kv_len))


def _words(name: str, value: Any) -> Any:
    """Check the name of a dtype, or an array of names."""
    if isinstance(value := dtype_name(value), str):
        return value
    try:
        array = np.asarray(value if isinstance(value, list | tuple | np.ndarray) else 0)
    except ValueError:  # ragged; nested too deep
        array = np.empty(())
    names, known = spelled_here(array.astype(object)), ELEMENT_SIZE if name == "dtype" else KV_QUARTERS
    if not array.ndim or not all(isinstance(dtype, str) for dtype in names.flat):
        raise InputError(f"{name}: {shown(value)} given; allowed: {', '.join(known)}, or an array of these")
    for dtype in sorted(set(names.flat) - known.keys()):
        raise UnknownNameError(name, dtype, known)
    return names.astype(str)


def spelled_here(names: Any) -> Any:
    """Return an array of dtypes under the names of this library."""
    try:
        own = {name: dtype_name(name) for name in set(names.flat)}
    except TypeError:  # no names, which the caller refuses
        return names
    if all(name is same for name, same in own.items()):
        return names
    return np.array([own[name] for name in names.flat], dtype=object).reshape(names.shape)


def _sizes(names: Any, known: Mapping[str, int]) -> Any:
    """Return the sizes of elements for the names of dtypes."""
    if isinstance(names, str):
        return known[names]
    distinct, where = np.unique(names, return_inverse=True)
    return np.array([known[str(name)] for name in distinct], dtype=np.int64)[where].reshape(names.shape)


def _check_widths(fields: Mapping[str, Any], widths: Mapping[str, Any]) -> None:
    mask = fields.get("mask", "full")
    for name in widths:
        if not isinstance(mask, Window) or getattr(mask, SIDES[name]) is None:
            raise InputError(
                f"{name}: given with mask {shown(mask)}; allowed: with a Window that is bounded on this side, "
                "whose width it stands in for"
            )
