"""Calls of PyTorch's operators as data: names, shapes, types. Nothing here needs PyTorch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod
from operator import is_
from pathlib import Path
from typing import Any, Self, TypeVar

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.input_files import readable
from iomodel.common.results import Record, decoded
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, shown, shown_name
from iomodel.workloads.workload import Workload

T = TypeVar("T")
LARGEST_FILE = 48 << 20
"""Largest file of calls that is read [B]; a stream of 36,000 operators has 30 MB."""
MOST: Mapping[str, tuple[str, int]] = FrozenDict(
    {"[{": ("lists and objects", 600_000), ":": ("names", 1_500_000), ",": ("values", 3_000_000)}
)
"""Marks of JSON in a file of calls, and the most of each [-]; a stream of 36,000 operators has 440,000, 740,000 and
690,000."""
PER_CALL = 3
"""Lists and objects that a call counts for beside its own [-]: it takes as long to read as they."""
DEEPEST = 16
"""Most levels of lists and objects in an argument [-]; the masks of FlexAttention have 5."""
MOST_AXES, LONGEST = 64, 1 << 48
"""Most axes of a tensor [-], and longest of them [elements]: those of PyTorch, and more than any memory holds."""
MOST_ELEMENTS, WIDEST = 1 << 63, 16
"""Most elements of a tensor [-], and widest of them [B]: those of PyTorch."""
LONGEST_NAME = 2000
"""Longest name of an operator or a module [characters]."""
LONGEST_PATH = 300
"""Longest path that an error quotes in full [characters]."""
TYPES: Mapping[str, str] = FrozenDict(
    float32="fp32", float16="fp16", bfloat16="bf16", float8_e4m3fn="fp8", float8_e5m2="fp8", int8="int8"
)
"""PyTorch's types by name, as the library's types of attention and linear layers."""

PLACES: Mapping[str, type] = FrozenDict(offset=int, storage=int, outside=bool, kept=bool, kept_bytes=int)
"""Fields of a tensor in which those of one form differ."""
FORM: Mapping[str, type] = FrozenDict(dtype=str, element_bytes=int)
"""Fields of the form of a tensor, beside its lengths and strides."""
PARTS: Mapping[str, type] = FrozenDict(
    operator=str, inputs=dict, outputs=list, written=list, arguments=dict, module=str, backward=bool, pointwise=bool
)
"""Fields of a call as JSON has them."""


def unchecked(kind: type[T], fields: dict[str, Any]) -> T:
    """Make a record of PyTorch's own figures, which need no checks: these took a tenth of a recording."""
    record = object.__new__(kind)
    record.__dict__.update(fields)
    return record


def checked_name(field: str, text: Any) -> str:
    """Return the name of an operator or a module; raise an InputError for anything else."""
    if not isinstance(text, str) or not text.isprintable() or len(text) > LONGEST_NAME:
        raise InputError(
            f"{field}: {shown(text)} given; allowed: up to {LONGEST_NAME:,} characters that can be printed"
        )
    return text


@dataclass(frozen=True)
class TensorArgument(Record):
    """A tensor that an operator reads or writes.

    Attributes
    ----------
    shape : tuple of int
        Lengths of its axes [elements].
    dtype : str
        PyTorch's name of the type: "bfloat16".
    element_bytes : int
        Size of an element [B].
    strides : tuple of int or None
        Distance of neighbours along each axis [elements]; None for a contiguous tensor.
    offset : int
        Place of the first element in the storage [elements].
    storage : int or None
        Number of the storage in its recording, the same for views of one tensor; None where it was not recorded. Calls
        that differ in their storages alone are equal.
    outside : bool
        True if the storage was made before the recording began: an input or a parameter.
    kept : bool
        True if the storage is alive when the recording ends: a result of the program.
    kept_bytes : int or None
        Bytes of it that the tensors alive then cover; None for the whole storage [B].
    elements, bytes : int
        Product of the lengths; elements of an expanded axis count each time, as they are asked for [elements], [B].
    """

    derived = ("elements", "bytes")
    unless_none = ("strides", "storage", "kept_bytes")

    shape: tuple[int, ...]
    dtype: str
    element_bytes: int
    strides: tuple[int, ...] | None = None
    offset: int = field(default=0, compare=False)
    storage: int | None = field(default=None, compare=False)
    outside: bool = field(default=False, compare=False)
    kept: bool = field(default=False, compare=False)
    kept_bytes: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.shape, tuple):
            raise InputError(f"shape: {shown(self.shape)} given; allowed: a tuple of lengths, such as (64, 32)")
        if type(self.element_bytes) is not int or self.element_bytes < 1:
            object.__setattr__(self, "element_bytes", as_integer("element_bytes", self.element_bytes))
        if any(type(length) is not int or length < 0 for length in self.shape):
            object.__setattr__(self, "shape", tuple(as_integer("shape", length, least=0) for length in self.shape))
        if len(self.shape) > MOST_AXES or any(length > LONGEST for length in self.shape):
            raise InputError(f"shape: {shown(self.shape)} given; allowed: up to {MOST_AXES} axes of up to {LONGEST:,}")
        if self.elements > MOST_ELEMENTS or self.element_bytes > WIDEST:
            raise InputError(
                f"shape: {shown(self.shape)} of {shown(self.element_bytes)} B given; allowed: up to 2^63 elements of "
                f"up to {WIDEST} B"
            )
        if self.strides is not None and (
            len(self.strides) != len(self.shape) or any(type(step) is not int or step < 0 for step in self.strides)
        ):
            raise InputError(
                f"strides: {shown(self.strides)} given; allowed: a number from 0 for each of {len(self.shape)} axes"
            )
        if type(self.offset) is not int or self.offset < 0:
            raise InputError(f"offset: {shown(self.offset)} given; allowed: a whole number from 0")
        if self.kept_bytes is not None and (type(self.kept_bytes) is not int or self.kept_bytes < 0):
            raise InputError(f"kept_bytes: {shown(self.kept_bytes)} given; allowed: a whole number from 0")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the tensor from its plain data.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """
        form: dict[str, Any] = {}
        places: dict[str, Any] = {}
        for name, value in data.items() if isinstance(data, dict) else ():
            kind = type(value)
            if kind is PLACES.get(name) and value >= 0:
                places[name] = value
            elif kind is FORM.get(name):
                form[name] = value
            elif kind is list and name in ("shape", "strides") and {*map(type, value)} <= {int}:
                form[name] = tuple(value)
            else:
                return super().from_dict(data)
        if not form.keys() >= {"shape", *FORM}:
            return super().from_dict(data)
        return unchecked(cls, {**vars(_formed(**form)), **places})

    @cached_property
    def elements(self) -> int:
        """Product of the lengths [elements]."""
        return prod(self.shape)

    @cached_property
    def distinct_bytes(self) -> int:
        """Size of the elements, those of an expanded axis once [B]."""
        if self.strides is None:
            return self.bytes
        if not self.elements:
            return 0
        lengths = (length for length, step in zip(self.shape, self.strides, strict=True) if step)
        return prod(lengths) * self.element_bytes

    @property
    def bytes(self) -> int:
        """Size of the elements [B]."""
        return self.elements * self.element_bytes


@lru_cache(maxsize=1 << 12)
def _formed(
    shape: tuple[int, ...], dtype: str, element_bytes: int, strides: tuple[int, ...] | None = None
) -> TensorArgument:
    """Make the tensor of a form, which is checked once: a long stream has a hundred thousand tensors of few forms."""
    return TensorArgument(shape, dtype, element_bytes, strides)


@dataclass(frozen=True)
class OperatorCall(Record):
    """One call of an operator of PyTorch, without its data.

    Views are not calls: an operator counts only if it makes or changes a tensor.

    Attributes
    ----------
    operator : str
        Name with its namespace: "aten.mm".
    inputs : mapping of str to TensorArgument
        Tensor arguments by the names of the operator's schema; those of a list as "tensors.0".
    outputs : tuple of TensorArgument
        New tensors that it returns.
    written : tuple of str
        Inputs that it changes in place.
    arguments : mapping of str to value
        The other arguments: numbers, switches, names.
    module : str
        Innermost module that was running, as "Llama.layers.0.mlp"; empty outside all modules.
    backward : bool
        True if autograd called it in a backward pass.
    pointwise : bool
        True if each element of the result needs one element of each input, which may be broadcast.
    """

    operator: str
    inputs: Mapping[str, TensorArgument]
    outputs: tuple[TensorArgument, ...]
    written: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = FrozenDict()
    module: str = ""
    backward: bool = False
    pointwise: bool = False

    def __post_init__(self) -> None:
        for name in ("inputs", "arguments"):
            mapping = getattr(self, name)
            if not isinstance(mapping, Mapping):
                raise InputError(f"{name}: {shown(mapping)} given; allowed: a mapping of names")
            if type(mapping) is not FrozenDict:
                object.__setattr__(self, name, FrozenDict(mapping))
        for name in ("operator", "module"):
            checked_name(name, getattr(self, name))
        unknown = next((name for name in self.written if name not in self.inputs), None)
        if unknown is not None:
            inputs = ", ".join(map(shown_name, self.inputs)) or "none, because there are no inputs"
            raise InputError(f"written: {shown(unknown)} given; allowed: the inputs, {inputs}")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the call from its plain data; InputError for a key that is missing, unknown or of another type."""
        try:
            parts = _parts_of(data)
        except InputError:
            parts = None
        return super().from_dict(data) if parts is None else cls(**parts)  # which names the place of an error

    @cached_property
    def alike(self) -> tuple[Any, ...]:
        """Everything but the module; calls that share it are counted once."""
        named = tuple(self.inputs.items()), tuple(self.arguments.items())
        return self.operator, *named, self.outputs, self.written, self.backward, self.pointwise

    def tensor(self, name: str, axes: int | None = None) -> TensorArgument:
        """Return an input by its name in the operator's schema.

        Raises
        ------
        InputError
            There is none, or it has another number of axes.
        """
        tensor = self.inputs.get(name)
        if tensor is None:
            raise InputError(f"inputs of {shown_name(self.operator)}: no {name!r} given, which the operator reads")
        if axes is not None and len(tensor.shape) != axes:
            raise InputError(
                f"inputs.{name} of {shown_name(self.operator)}: shape {tensor.shape} given; allowed: {axes} axes"
            )
        return tensor

    def whole_numbers(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return an argument that is a whole number or a list of them.

        Raises
        ------
        InputError
            It is something else.
        """
        value = self.arguments.get(name, default)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(type(number) is not int for number in numbers):
            raise InputError(
                f"arguments.{name} of {shown_name(self.operator)}: {shown(value)} given; allowed: whole numbers"
            )
        return numbers


@dataclass(frozen=True)
class OperatorWork:
    """The products of one call of an operator."""

    @property
    def flops(self) -> int:
        """FLOPs as the operator computes them [FLOP]."""
        raise NotImplementedError

    @property
    def least_flops(self) -> int:
        """FLOPs of the fastest algorithm that is known [FLOP]."""
        return self.flops

    def workload(self, _: OperatorCall) -> Workload | None:
        """Return the workload that the theorems hold for, if the call is one."""
        return None


def _parts_of(data: Any) -> dict[str, Any] | None:
    """Read the fields of a call whose values have the types of JSON at once, as nearly all do; None for any other."""
    if type(data) is not dict or not data.keys() >= {"operator", "inputs", "outputs"}:
        return None
    parts = dict(data)
    if any(type(value) is not PARTS.get(name) for name, value in data.items()):
        return None
    names = {*map(type, data["inputs"]), *map(type, data.get("written", ()))}
    if not names <= {str}:
        return None
    parts["inputs"] = FrozenDict({name: TensorArgument.from_dict(each) for name, each in data["inputs"].items()})
    parts["outputs"] = tuple(map(TensorArgument.from_dict, data["outputs"]))
    parts["written"] = tuple(data.get("written", ()))
    if "arguments" in parts:
        parts["arguments"] = decoded(Mapping[str, Any], data["arguments"], "arguments")
    return parts


def kept_at_end(call: OperatorCall, alive: Mapping[int, int | None]) -> OperatorCall:
    """Mark the tensors that a call makes or changes and that are alive at the end, with the bytes that views cover."""

    def marked(tensor: TensorArgument) -> TensorArgument:
        kept = tensor.storage in alive
        covered = alive[tensor.storage] if kept and tensor.storage is not None else None
        same = (tensor.kept, tensor.kept_bytes) == (kept, covered)
        return tensor if same else replace(tensor, kept=kept, kept_bytes=covered)

    if not call.written and not any(tensor.storage in alive for tensor in call.outputs):
        return call  # nearly every call of a long program
    inputs = {name: marked(call.inputs[name]) for name in call.written}
    outputs = tuple(map(marked, call.outputs))
    if all(map(is_, (*outputs, *inputs.values()), (*call.outputs, *map(call.inputs.get, inputs)))):
        return call
    return replace(call, inputs=FrozenDict({**call.inputs, **inputs}), outputs=outputs)


def read_calls(path: str | os.PathLike[str]) -> tuple[OperatorCall, ...]:
    """Read the calls that :func:`write_calls` wrote.

    Raises
    ------
    InputError
        The file cannot be read, is larger than 48 MiB, or is no such file.
    """
    name = shown_name(path, LONGEST_PATH)
    try:
        size = readable(path).stat().st_size
        if size > LARGEST_FILE:
            raise InputError(f"path: {name} has {size:,} B; allowed: up to {LARGEST_FILE:,}")
        text = Path(path).read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"path: {shown(path)} cannot be read: {shown(error)}") from None
    lines = text.split("\n") if text else []
    for marks, (kind, most) in MOST.items():
        if sum(map(text.count, marks)) + (PER_CALL * len(lines) if marks == "[{" else 0) > most:
            raise InputError(f"path: {name} has more {kind} than allowed: {most:,}")
    last = [_read_line(line, len(lines), name) for line in lines[-1:]]  # a stream that was cut is refused at once
    return (*(_read_line(line, number, name) for number, line in enumerate(lines[:-1], 1)), *last)


def _read_line(line: str, number: int, name: str) -> OperatorCall:
    """Read a line; an error names it."""
    try:
        return _call_of(line.rstrip())
    except InputError as error:
        raise InputError(f"{name}: line {number}: {error}") from None


def _call_of(line: str) -> OperatorCall:
    """Read a line; arguments that are deep are refused before anything walks them."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"json: {shown(line)} given; allowed: the text of to_json()") from None
    level = [data.get("arguments")] if isinstance(data, dict) else []
    for _ in range(DEEPEST):
        level = [
            inner
            for part in level
            if isinstance(part, dict | list)
            for inner in (part.values() if isinstance(part, dict) else part)
        ]
        if not level:
            break
    else:
        raise InputError(f"arguments: more than {DEEPEST} levels given; allowed: numbers, switches and names, in lists")
    return OperatorCall.from_dict(data)


def write_calls(calls: Iterable[OperatorCall], path: str | os.PathLike[str]) -> None:
    """Write calls to a file, one JSON object per line."""
    lines = [json.dumps(_compact(call.to_dict()), separators=(",", ":")) for call in calls]
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _compact(call: dict[str, Any]) -> dict[str, Any]:
    """Leave out derived and empty fields."""
    call["inputs"] = {name: _stored(tensor) for name, tensor in call["inputs"].items()}
    call["outputs"] = [_stored(tensor) for tensor in call["outputs"]]
    return {name: value for name, value in call.items() if value or name in ("inputs", "outputs")}


def _stored(tensor: dict[str, Any]) -> dict[str, Any]:
    """Leave out derived fields, and places in storages that say nothing."""
    places = ("offset", "outside", "kept")
    return {
        name: value
        for name, value in tensor.items()
        if name not in TensorArgument.derived and (value or name not in places)
    }


def checked_calls(calls: Any) -> list[OperatorCall]:
    """Return recorded calls as a list; raise an InputError for anything else."""
    listed = list(calls) if isinstance(calls, Iterable) and not isinstance(calls, str | bytes | Mapping) else [calls]
    wrong = next((call for call in listed if not isinstance(call, OperatorCall)), None)
    if wrong is not None or (len(listed) == 1 and listed[0] is None):
        raise InputError(f"calls: {shown(wrong)} given; allowed: a list of OperatorCall")
    return listed
