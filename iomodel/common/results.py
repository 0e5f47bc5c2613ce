"""Plain data and JSON of results, derived from their fields, and back."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache, partial
from importlib import import_module
from operator import attrgetter
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from iomodel.common.deprecation import warn_renamed
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.headers import leaves_unread
from iomodel.errors import InputError, IOModelError, shown, shown_name

Getter = TypeVar("Getter", bound=Callable[..., Any])


class PlainData(ABC):
    """A value with a plain form, ready for JSON, that reads back as an equal value of the same type."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain data, ready for JSON."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the value from its plain data.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """

    def to_json(self, indent: int | None = 2) -> str:
        """Return the plain data as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Rebuild the value from the text of :meth:`to_json`.

        Raises
        ------
        InputError
            The text is no JSON, or its data are refused.
        """
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise InputError(f"json: {shown(text)} given; allowed: the text of to_json()") from None
        return cls.from_dict(data)


class NamedData(PlainData):
    """Data that the package ships under a name; a result holds the name, and the data where they are not shipped."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The name, or the title of data without one."""

    @classmethod
    @abstractmethod
    def shipped(cls, name: str) -> Self | None:
        """Find the shipped data of a name, if there are any."""


INTERNAL = {"derived", "unless_none", "keys", "enclosing", "later", "constructed", "deferring"}
INTERNAL |= {"sketch", "element", "records", "headline", "renamed"}
"""Attributes of results for the package itself."""


class Record(PlainData):
    """A dataclass whose plain form follows from its fields.

    `derived` names the properties that the plain form lists beside the fields, `unless_none` the fields that it leaves
    out where they are None, and `enclosing` the keys that an enclosing result adds. `later` holds the modules of types
    of fields that are imported for type checkers alone. `renamed` has old spellings of attributes, each with the new
    attribute and the words of the warning; those in `derived` stay in the plain form.
    """

    derived: ClassVar[tuple[str, ...]] = ()
    unless_none: ClassVar[tuple[str, ...]] = ()
    enclosing: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[Mapping[str, str]] = FrozenDict()
    later: ClassVar[Mapping[str, str]] = FrozenDict(Expr="sympy", Symbol="sympy")
    renamed: ClassVar[Mapping[str, tuple[str, str]]] = FrozenDict()

    if not TYPE_CHECKING:  # a checker knows the new spellings alone

        def __getattr__(self, name: str) -> Any:
            if name == "assumed":
                return ()
            if name not in type(self).renamed:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            new, words = type(self).renamed[name]
            warn_renamed(f"{type(self).__name__}.{name}", words)
            return getattr(self, new)

    def __dir__(self) -> list[str]:
        """List the attributes for readers of a result."""
        return [name for name in super().__dir__() if name not in INTERNAL]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the derived figures as plain data, ready for JSON."""
        kind: Any = type(self)
        data: dict[str, Any] = {}
        for name, hint in _hints(kind).items():
            value = getattr(self, name)
            if isinstance(value, NamedData):
                data |= named(name, value)
            elif value is not None or name not in self.unless_none:
                data[self.keys.get(name, name)] = dict(value) if _is_pairs(hint) else plain(value)
        return data | {name: plain(getattr(self, self.renamed.get(name, (name,))[0])) for name in self.derived}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the value from its plain data; derived figures are computed again.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """
        if cls.renamed and isinstance(data, Mapping):  # of a release with the old spellings
            fields = _hints(cls)
            before = {new: data[old] for old, (new, _) in cls.renamed.items() if old in data and new in fields}
            data = before | dict(data)
        names = {key: name for name, key in cls.keys.items()}
        own = (
            {names.get(key, key): value for key, value in data.items()} if names and isinstance(data, Mapping) else data
        )
        values = decoded_fields(cls, own)
        value = cls(**values)
        known = {*map(cls.keys.get, values, values), *cls.derived, *cls.enclosing}
        if not data.keys() <= known:
            check_keys(data, [*value.to_dict(), *cls.enclosing])
        return value


@dataclass(frozen=True)
class Column:
    """The column of a field in a printed table.

    A label that begins with ">" is aligned to the right. `text` is the format of a value, or the function that writes
    it; None is written as `none`. A narrow terminal leaves out the columns with a rank in `extra`, the highest
    first.
    """

    label: str
    text: str | Callable[[Any], str] = ""
    extra: int = 0
    none: str = ""

    def cell(self, value: Any) -> str:
        """Write a value."""
        if value is None:
            return self.none
        if callable(self.text):
            return self.text(value)
        return value if isinstance(value, str) else format(value, self.text)


def column(label: str, text: str | Callable[[Any], str] = "", extra: int = 0, none: str = "") -> Mapping[str, Any]:
    """Describe the column of a field, as metadata of the field."""
    return {"columns": (Column(label, text, extra, none),)}


def columns_in(kind: type) -> Mapping[str, tuple[type, ...]]:
    """Put the columns of an enclosed class in the place of a field, as metadata of the field."""
    return {"columns": (kind,)}


def printed(metadata: Mapping[str, Any]) -> Callable[[Getter], Getter]:
    """Attach the metadata of a column to the function of a property."""

    def attach(getter: Getter) -> Getter:
        getter.metadata = metadata  # type: ignore[attr-defined]
        return getter

    return attach


@lru_cache(maxsize=64)
def columns_of(kind: Any) -> Sequence[tuple[str, Column]]:
    """List the columns of a class, each with the path of its field or property: those of fields first.

    A class among the columns of a field stands for its own columns.
    """
    described = {field.name: field.metadata for field in fields(kind)}
    getters = {name: value.fget for name, value in vars(kind).items() if isinstance(value, property)}
    described |= {name: getattr(getter, "metadata", {}) for name, getter in getters.items()}
    listed: list[tuple[str, Column]] = []
    for name, metadata in described.items():
        for entry in metadata.get("columns", ()):
            inner = columns_of(entry) if isinstance(entry, type) else [("", entry)]
            listed += [(f"{name}.{path}".rstrip("."), part) for path, part in inner]
    return listed


def cells(value: Any, columns: Sequence[tuple[str, Column]]) -> list[str]:
    """Write the cells of a value under some columns."""
    return [part.cell(attrgetter(path)(value)) for path, part in columns]


def check_keys(data: Mapping[str, Any], allowed: Any) -> None:
    """Raise InputError for a key that is not allowed, and where there are no keys."""
    if not isinstance(data, Mapping):
        raise InputError(f"{shown(data)} given; allowed: an object with {', '.join(allowed)}")
    unknown = [key for key in data if key not in allowed]
    if unknown and not leaves_unread(unknown):
        raise InputError(f"{shown(unknown[0])}: an unknown key; allowed: {', '.join(allowed)}")


def named(name: str, value: NamedData) -> dict[str, Any]:
    """Return the label of named data under a key, and the data themselves where no shipped data have that label."""
    same = type(value).shipped(value.label) == value
    return {name: value.label, **({} if same else {f"{name}_data": value.to_dict()})}


def plain(value: Any) -> Any:
    """Return a value as plain data."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "dtype"):
        return array_data(value) if value.shape else value.item()
    return expression_data(value)


def array_data(array: Any) -> dict[str, Any]:
    """Return a NumPy array as plain data."""
    name = "str" if array.dtype.kind == "U" else array.dtype.name
    return {"dtype": name, "shape": list(array.shape), "values": array.ravel().tolist()}


def as_array(data: Mapping[str, Any], path: str) -> Any:
    """Rebuild a NumPy array that cannot be written to: of integers, numbers, texts, or true and false."""
    import numpy as np

    values = _flat(data["values"])
    kinds = {type(value) for value in values}
    whole = kinds <= {int} and all(-(2**63) <= value < 2**63 for value in values)
    known = data.get("dtype") in (None, "int64", "object", "bool", "float64", "str")
    if not known or len(kinds) > 1 or not kinds <= {int, float, bool, str}:
        return _refuse(data["values"], path, "values of one type")
    dtype = data.get("dtype") or ("bool" if kinds == {bool} else "int64" if whole else "object")
    try:
        array = np.array(values, dtype=dtype)
        array = array.reshape(np.shape(data["values"]) if data["shape"] is None else data["shape"])
    except (TypeError, ValueError, OverflowError):
        return _refuse(data, path, "a dtype, a shape and as many values")
    array.flags.writeable = False
    return array


def _flat(values: Any) -> list[Any]:
    return [item for part in values for item in _flat(part)] if isinstance(values, list | tuple) else [values]


def decoded_fields(kind: type, data: Any, path: str = "") -> dict[str, Any]:
    """Read the values of a dataclass's fields; InputError for one that is missing or of another type."""
    return decoded_values(_hints(kind), _optional(kind), data, kind.__name__, path)


def decoded_values(
    hints: Mapping[str, Any], optional: Collection[str], data: Any, title: str, path: str = ""
) -> dict[str, Any]:
    """Read the values of the named keys, each as its type; InputError for one that is missing or of another type."""
    root = f"{path}." if path else ""
    if not isinstance(data, Mapping):
        raise InputError(f"{path or title}: {shown(data)} given; allowed: an object")
    values = {}
    for name, hint in hints.items():
        if name in data and type(data[name]) is hint:  # a scalar, as most values are
            values[name] = data[name]
        elif f"{name}_data" in data:
            values[name] = decoded(hint, data[f"{name}_data"], f"{root}{name}_data")
        elif name in data:
            values[name] = decoded(hint, data[name], f"{root}{name}")
        elif name not in optional:
            raise InputError(f"{root}{name}: not given, but required")
    return values


Reader = Callable[[Any, str], Any]
"""A function that reads plain data at a path as a value of one type, or raises InputError."""


def decoded(hint: Any, data: Any, path: str) -> Any:
    """Read plain data as a value of a type; InputError where they are no such value."""
    return _reader(hint)(data, path)


@lru_cache(maxsize=1 << 12)
def _reader(hint: Any) -> Reader:
    """Return the reader of a type."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return _frozen
    if hasattr(hint, "__value__") or hasattr(hint, "__supertype__"):
        return partial(decoded, getattr(hint, "__value__", None) or hint.__supertype__)
    if hasattr(hint, "__metadata__"):
        return _reader(next((kind for kind in hint.__metadata__ if isinstance(kind, type)), hint.__origin__))
    if origin in (Union, UnionType):
        return partial(_one_of, {part: _field_names(part) for part in parts})
    if origin is Literal:
        return partial(_literal, parts)
    if hint in _SCALARS:
        return partial(_scalar, hint)
    if origin in (tuple, list):
        return partial(_pairs, parts) if _is_pairs(hint) else partial(_sequence, origin, parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return partial(_mapping, _reader(parts[1]))
    return partial(_object, hint)


_SCALARS: Mapping[Any, str] = {
    int: "an integer",
    float: "a number",
    str: "a text",
    bool: "true or false",
    NoneType: "null",
}


def _scalar(hint: Any, data: Any, path: str) -> Any:
    if type(data) is hint:
        return data
    if hint is bool or isinstance(data, bool) or not isinstance(data, int | float if hint is float else hint):
        return _refuse(data, path, _SCALARS[hint])
    return data


def _literal(allowed: tuple[Any, ...], data: Any, path: str) -> Any:
    return data if data in allowed else _refuse(data, path, f"one of {', '.join(map(repr, allowed))}")


def _pairs(parts: tuple[Any, ...], data: Any, path: str) -> Any:
    """Read named values, which plain data may hold as an object."""
    if not isinstance(data, Mapping):
        return _sequence(tuple, parts, data, path)
    read = _reader(get_args(parts[0])[1])
    return tuple((name, read(item, f"{path}.{shown_name(name)}")) for name, item in data.items())


def _mapping(read: Reader, data: Any, path: str) -> Any:
    if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
        return _refuse(data, path, "an object")
    return FrozenDict({name: read(item, f"{path}.{shown_name(name)}") for name, item in data.items()})


def _sequence(origin: Any, parts: tuple[Any, ...], data: Any, path: str) -> Any:
    if not isinstance(data, list | tuple):
        return _refuse(data, path, "a list")
    if parts[0] is int and parts[-1] is Ellipsis and {*map(type, data)} <= {int}:
        return origin(data)
    if origin is list or parts[-1] is Ellipsis:
        read = _reader(parts[0])
        return origin(read(item, f"{path}.{place}") for place, item in enumerate(data))
    if len(parts) != len(data):
        return _refuse(data, path, f"a list of {len(parts)}")
    pairs = enumerate(zip(parts, data, strict=True))
    return origin(decoded(hint, item, f"{path}.{place}") for place, (hint, item) in pairs)


def _field_names(kind: Any) -> frozenset[str]:
    names: Mapping[str, Any] = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", {})
    return frozenset(names)


def _one_of(names: Mapping[Any, frozenset[str]], data: Any, path: str) -> Any:
    """Read data as the first type that takes them; of objects, try those first that share most keys."""
    hints, errors = list(names), []
    if isinstance(data, Mapping):
        hints.sort(key=lambda hint: -len(names[hint] & data.keys()))
    for hint in hints:
        try:
            return decoded(hint, data, path)
        except IOModelError as error:
            errors.append(error)
    raise errors[0]


def _object(hint: Any, data: Any, path: str) -> Any:
    if is_expression(hint):
        return as_expression(data, path)
    if isinstance(hint, type) and issubclass(hint, NamedData) and isinstance(data, str):
        return hint.shipped(data) or _refuse(data, path, f"the name of a shipped {hint.__name__}")
    if isinstance(hint, type) and issubclass(hint, PlainData):
        try:
            return hint.from_dict(data)
        except IOModelError as error:
            raise InputError(f"{path}.{error}") from None
    if isinstance(hint, type) and is_dataclass(hint):
        check_keys(data if isinstance(data, Mapping) else {}, _hints(hint))
        return hint(**decoded_fields(hint, data, path))
    raise TypeError(f"no plain form of {hint}")


def _refuse(data: Any, path: str, allowed: str) -> Any:
    raise InputError(f"{path}: {shown(data)} given; allowed: {allowed}")


def _frozen(data: Any, path: str) -> Any:
    """Return plain data as immutable values."""
    if isinstance(data, Mapping):
        if data.keys() == {"dtype", "shape", "values"}:
            return as_array(data, path)
        return FrozenDict({str(name): _frozen(item, f"{path}.{shown_name(name)}") for name, item in data.items()})
    if not isinstance(data, list | tuple):
        return data
    return tuple(data) if {*map(type, data)} <= _SCALARS.keys() else tuple(_frozen(item, path) for item in data)


def _is_pairs(hint: Any) -> bool:
    """Check whether a type is a tuple of (name, value), which plain data hold as an object."""
    parts = get_args(hint)
    if get_origin(hint) is not tuple or parts[1:] != (...,) or get_origin(parts[0]) is not tuple:
        return False
    return len(get_args(parts[0])) == 2 and get_args(parts[0])[0] is str


@lru_cache(maxsize=256)
def _optional(kind: Any) -> frozenset[str]:
    """Return the fields with a default."""
    missing = (MISSING, MISSING)
    return frozenset(field.name for field in fields(kind) if (field.default, field.default_factory) != missing)


@lru_cache(maxsize=256)
def _hints(kind: Any) -> Mapping[str, Any]:
    """Return the type of each field, positional fields first."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError:  # the module imports some types for type checkers alone
        later = {
            name: getattr(import_module(module), name) for name, module in getattr(kind, "later", Record.later).items()
        }
        hints = get_type_hints(kind, localns=later, include_extras=True)
    bound = {
        variable: value
        for base in getattr(kind, "__orig_bases__", ())
        for variable, value in zip(getattr(get_origin(base), "__parameters__", ()), get_args(base), strict=False)
    }
    ordered = sorted((field for field in fields(kind) if field.init), key=lambda field: bool(field.kw_only))
    return {field.name: bound.get(hints[field.name], hints[field.name]) for field in ordered}


HEADS = ("Add", "Mul", "Pow", "Min", "Max", "ceiling", "floor", "log")
"""The functions that plain data may name."""
DEPTH = 100
"""The deepest expression that is read."""


def is_expression(hint: Any) -> bool:
    """Check whether a type is one of symbolic expressions."""
    return isinstance(hint, type) and hint.__module__.startswith("sympy.")


def expression_data(expression: Any) -> Any:
    """Return an expression as plain data: an integer, ["Rational", p, q], ["Symbol", name, assumptions], or a call."""
    from sympy import Expr, Rational, Symbol

    if isinstance(expression, Symbol):
        assumptions = sorted(name for name, value in expression._assumptions_orig.items() if value)
        return ["Symbol", expression.name, assumptions]
    if isinstance(expression, Rational):
        return int(expression) if expression.q == 1 else ["Rational", int(expression.p), int(expression.q)]
    if isinstance(expression, Expr) and type(expression).__name__ in HEADS:
        return [type(expression).__name__, *map(expression_data, expression.args)]
    raise InputError(f"expression: {shown(expression)} given; allowed: one of {', '.join(HEADS)} over symbols")


def as_expression(data: Any, path: str, depth: int = DEPTH) -> Any:
    """Rebuild an expression from its plain data, as it was: nothing is simplified, expanded or evaluated."""
    import sympy

    if isinstance(data, int) and not isinstance(data, bool):
        return sympy.Integer(data)
    head, *parts = data if isinstance(data, list | tuple) and data else (None,)
    match parts:
        case [str(name), list(assumptions)] if head == "Symbol" and _ASSUMPTIONS.issuperset(map(str, assumptions)):
            return sympy.Symbol(name, **dict.fromkeys(assumptions, True))
        case [int(top), int(bottom)] if head == "Rational" and bottom > 1:
            return sympy.Rational(top, bottom)
        case [_, *_] if head in HEADS and depth:
            return getattr(sympy, head)(*(as_expression(part, path, depth - 1) for part in parts), evaluate=False)
    raise InputError(f"{path}: {shown(data)} given; allowed: the plain data of an expression")


_ASSUMPTIONS = frozenset({"integer", "positive", "nonnegative", "real", "negative", "nonzero", "commutative"})


def nothing() -> None:
    """Return None, the default of a field that is computed when it is first read."""


class Deferred:
    """A dataclass, some fields of which may be computed when they are first read.

    Such a field has no default on the class; a default factory is allowed. Equality, `repr`, plain data and pickles
    read every field, a copy reads none. Two threads that read a field at once may both compute it.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Square(Deferred):
    ...     side: int
    ...     area: int
    >>> square = Square.deferring({"area": lambda square: square.side**2}, side=3)
    >>> "area" in vars(square), square.area, square == Square(3, 9)
    (False, 9, True)
    """

    @classmethod
    def deferring(cls, later: Mapping[str, Callable[[Any], Any]], **known: Any) -> Self:
        """Make an instance of the known fields, and of functions of the instance that compute the others."""
        made = object.__new__(cls)
        made.__dict__.update(known, _later=later)
        return made

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            compute = self.__dict__.get("_later", {}).get(name)
            if compute is None:
                inherited = getattr(super(), "__getattr__", None)
                if inherited is not None:
                    return inherited(name)
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = self.__dict__[name] = compute(self)
            return value

    def __getstate__(self) -> dict[str, Any]:
        kind: Any = type(self)
        names = dict.fromkeys([*(field.name for field in fields(kind)), *({"assumed"} & vars(self).keys())])
        return {name: getattr(self, name) for name in names}
