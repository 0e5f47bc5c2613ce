"""The fields of many attention calls at once: each a value or an array, checked and broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.arrays.blocks import Part
from iomodel.arrays.integers import LONG, as_integers, at_place, check_range, common_shape
from iomodel.block_mask import BlockMask
from iomodel.documents import Documents
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.workload import ELEMENT_SIZE, Attention, Window

NUMERIC = ("batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim", "value_dim", "page_size")
"""The fields that are numbers."""
WORDS = ("dtype", "kv_dtype")
"""Names that stand for a number, the size of an element."""
FOLLOWS = {"kv_len": "q_len", "kv_heads": "heads", "value_dim": "head_dim", "kv_dtype": "dtype"}
"""The field that another takes its value from where it has none."""
SIDES = {"window_left": "left", "window_right": "right"}
"""Widths of a window that are given beside it, to be arrays."""


def least_of(name: str) -> int:
    """The least that a number may be: a window may have no width."""
    return 0 if name in SIDES else 1


@dataclass(frozen=True, eq=False)
class Calls:
    """Many calls of one kind.

    Attributes
    ----------
    fields : mapping
        The fields of :class:`~iomodel.workload.Attention`; the numbers and dtypes may be arrays.
    widths : mapping
        The widths of the window where they are given apart, `window_left` and `window_right` [keys].
    shape : tuple of int
        What all broadcast to.
    first : Attention
        One of the calls, which has every feature that any has.
    late : tuple of str
        Fields whose arrays nobody has looked through: they are long, and are checked when they are used.
    """

    fields: Mapping[str, Any]
    widths: Mapping[str, Any]
    shape: tuple[int, ...]
    first: Attention
    late: tuple[str, ...] = ()

    def call(self, place: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Attention:
        """The call at one index, of this shape or one that it broadcasts to."""
        at = {
            name: at_place(value, place, shape or self.shape) if name in NUMERIC + WORDS else value
            for name, value in self.fields.items()
        }
        if self.widths:
            sides = {SIDES[name]: at_place(value, place, shape or self.shape) for name, value in self.widths.items()}
            at["mask"] = Window(**{**dict(at["mask"]), **sides})
        return Attention(**at)

    def number(self, name: str) -> Any:
        """The value of a workload symbol, by its Python name."""
        if name in NUMERIC and name in self.fields:
            return self.fields[name]
        if name in self.widths:
            return self.widths[name]
        if name in ("element_size", "kv_element_size"):
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
            "element_size": _sizes(self.fields["dtype"]),
            "kv_element_size": _sizes(self.fields.get("kv_dtype", self.fields["dtype"])),
        }

    @property
    def point(self) -> dict[str, Any]:
        """The value of every workload symbol by its Python name, in the order of the alphabet."""
        return {name: self.number(name) for name in self.first.numbers}

    @property
    def numeric(self) -> dict[str, Any]:
        """The fields that are numbers, and the widths of the window."""
        return {**{name: value for name, value in self.fields.items() if name in NUMERIC}, **self.widths}

    def refuse(self, wrong: Any, part: Part | None = None) -> None:
        """InputError for the first of the calls that are known to be wrong, of all or of a part."""
        if not np.any(wrong):
            return
        part = part or tuple(slice(0, length) for length in self.shape)
        here = np.argwhere(np.broadcast_to(wrong, tuple(where.stop - where.start for where in part)))[0]
        place = tuple(int(i) + where.start for i, where in zip(here, part, strict=True))
        try:
            self.call(place)
        except InputError as error:
            raise InputError(f"{error}; at index {place}") from None


def calls(given: Mapping[str, Any], beside: Mapping[str, Any] | None = None, late: bool = False) -> Calls:
    """The calls with these fields; whatever Attention refuses is refused.

    `beside` are arrays that broadcast with them. With `late`, long arrays are left to be checked when they are used.
    """
    fields = {name: value for name, value in given.items() if value is not None or name not in (*FOLLOWS, "page_size")}
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
    given_apart = {name: value for name, value in arrays.items() if name not in followers}
    shape = common_shape({**given_apart, **(beside or {})})
    long = tuple(name for name, value in arrays.items() if late and name not in WORDS and value.size >= LONG)
    if 0 in shape:
        some = {name: _some(name, fields[name]) for name in arrays.keys() & fields.keys()}
        return Calls(fields, widths, shape, Attention(**{**fields, **some}))
    found = Calls(fields, widths, shape, _first(fields, widths, shape, long), long)
    _check_together(found)
    return found


def _some(name: str, value: Any) -> Any:
    """What an array without elements might have held."""
    if name in NUMERIC:
        return 1
    return str(value.flat[0]) if value.size else "bf16"


def _first(
    fields: Mapping[str, Any], widths: Mapping[str, Any], shape: tuple[int, ...], long: tuple[str, ...]
) -> Attention:
    """The first call, or that where K and V have a dtype of their own."""
    place = (0,) * len(shape)
    if isinstance(fields.get("kv_dtype"), np.ndarray) or isinstance(fields["dtype"], np.ndarray):
        own = np.broadcast_to(fields["dtype"] != np.asarray(fields["kv_dtype"]), shape)
        place = tuple(map(int, np.unravel_index(int(own.argmax()), shape)))
    for name in long:  # nobody has looked at it yet
        one = int(np.broadcast_to({**fields, **widths}[name], shape)[place])
        check_range(name, np.full((1,) * len(shape), one), one, one, least_of(name), place)
    return Calls(fields, widths, shape, None).call(place)  # type: ignore[arg-type]


def _check_together(found: Calls) -> None:
    """InputError where fields do not go together, of those that have been looked through."""
    fields = found.fields
    if not {"heads", "kv_heads"} & set(found.late) and fields["heads"] is not fields["kv_heads"]:
        found.refuse(fields["heads"] % fields["kv_heads"] != 0)
    if found.first.latent:
        found.refuse((fields["kv_heads"] != 1) | (fields["value_dim"] > fields["head_dim"]))
    if isinstance(found.first.mask, BlockMask | Documents):
        found.refuse((fields["q_len"] != found.first.q_len) | (fields["kv_len"] != found.first.kv_len))


def _words(name: str, value: Any) -> Any:
    """A name, or an array of names, of dtypes."""
    if isinstance(value, str):
        return value
    try:
        array = np.asarray(value if isinstance(value, list | tuple | np.ndarray) else 0)
    except Exception:  # ragged; nested too deep
        array = np.empty(())
    names = array.astype(object)
    if not array.ndim or not all(isinstance(one, str) for one in names.flat):
        raise InputError(f"{name}: {shown(value)} given; allowed: {', '.join(ELEMENT_SIZE)}, or an array of these")
    for one in sorted(set(names.flat) - ELEMENT_SIZE.keys()):
        raise UnknownNameError(name, one, ELEMENT_SIZE)
    return array.astype(str)


def _sizes(names: Any) -> Any:
    """Sizes of elements [B] for the names of dtypes."""
    if isinstance(names, str):
        return ELEMENT_SIZE[names]
    distinct, where = np.unique(names, return_inverse=True)
    return np.array([ELEMENT_SIZE[str(name)] for name in distinct], dtype=np.int64)[where].reshape(names.shape)


def _check_widths(fields: Mapping[str, Any], widths: Mapping[str, Any]) -> None:
    mask = fields.get("mask", "full")
    for name in widths:
        if not isinstance(mask, Window) or getattr(mask, SIDES[name]) is None:
            raise InputError(
                f"{name}: given with mask {shown(mask)}; allowed: with a Window that is bounded on this side, "
                "whose width it stands in for"
            )
