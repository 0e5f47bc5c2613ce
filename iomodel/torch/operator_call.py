"""Calls of PyTorch's operators as data: names, shapes, types. Nothing here needs PyTorch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, shown, shown_name

LONGEST_PATH = 300
"""Longest path that an error quotes in full [characters]."""
TYPES: Mapping[str, str] = FrozenDict(
    float32="fp32", float16="fp16", bfloat16="bf16", float8_e4m3fn="fp8", float8_e5m2="fp8", int8="int8"
)
"""PyTorch's types by name, as the library's types of attention and linear layers."""


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
    elements, bytes : int
        Product of the lengths; elements of an expanded axis count each time, as they are asked for [elements], [B].
    """

    derived = ("elements", "bytes")

    shape: tuple[int, ...]
    dtype: str
    element_bytes: int

    def __post_init__(self) -> None:
        if not isinstance(self.shape, tuple):
            raise InputError(f"shape: {shown(self.shape)} given; allowed: a tuple of lengths, such as (64, 32)")
        object.__setattr__(self, "shape", tuple(as_integer("shape", length, least=0) for length in self.shape))
        object.__setattr__(self, "element_bytes", as_integer("element_bytes", self.element_bytes))

    @property
    def elements(self) -> int:
        """Product of the lengths [elements]."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size of the elements [B]."""
        return self.elements * self.element_bytes


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
            object.__setattr__(self, name, FrozenDict(mapping))
        unknown = next((name for name in self.written if name not in self.inputs), None)
        if unknown is not None:
            inputs = ", ".join(map(shown_name, self.inputs)) or "none, because there are no inputs"
            raise InputError(f"written: {shown(unknown)} given; allowed: the inputs, {inputs}")

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


def read_calls(path: str | os.PathLike[str]) -> tuple[OperatorCall, ...]:
    """Read the calls that :func:`write_calls` wrote.

    Raises
    ------
    InputError
        The file cannot be read, or is no such file.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"path: {shown(path)} cannot be read: {shown(error)}") from None
    calls = []
    for number, line in enumerate(lines, start=1):
        try:
            calls.append(OperatorCall.from_json(line))
        except InputError as error:
            raise InputError(f"{shown_name(path, LONGEST_PATH)}: line {number}: {error}") from None
    return tuple(calls)


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
    return {name: value for name, value in tensor.items() if name not in TensorArgument.derived}
