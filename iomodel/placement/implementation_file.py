"""Implementations read from YAML files, with tensors and symbols by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from iomodel.common.results import expression_data, plain
from iomodel.common.yaml_files import read_user
from iomodel.errors import InputError, IOModelError, SpecError, UnknownNameError, shown
from iomodel.nests.axis import Tensor
from iomodel.nests.implementation import DIRECTIONS, Implementation

ENDINGS = (".yaml", ".yml")


def is_file(name: str) -> bool:
    """Check that a name is that of a file."""
    return name.endswith(ENDINGS)


def read_implementation(path: str | os.PathLike[str]) -> Implementation:
    """Read an implementation from a YAML file.

    The keys are the fields of :class:`iomodel.kernels.Implementation`, and of :class:`iomodel.kernels.Residency` below
    ``residency``, with tensors by name (``Q``, or ``{tensor: K, copies: stages}``), and ``{reused: [[V], [O]]}`` for
    tiles that take turns in one place.

    Raises
    ------
    SpecError
        The file cannot be read, or a key or a value is not allowed; the error names both.
    """
    data, where = read_user(path)
    try:
        layouts = data.get("residency", {})
        if not isinstance(layouts, Mapping):
            raise InputError(f"residency: {shown(layouts)} given; allowed: {' and '.join(DIRECTIONS)}, each a list")
        return Implementation.from_dict(
            {**data, "residency": {direction: _layouts(listed, direction) for direction, listed in layouts.items()}}
        )
    except SpecError:
        raise
    except IOModelError as error:
        raise SpecError(f"{where}: {error}") from None


def _layouts(listed: Any, direction: str) -> list[dict[str, Any]]:
    if not isinstance(listed, list) or not all(isinstance(layout, Mapping) for layout in listed):
        raise InputError(f"residency.{direction}: {shown(listed)} given; allowed: a list of layouts")
    return [
        {
            **layout,
            **{name: _parts(layout[name], name) for name in ("shared", "tensor") if name in layout},
            **({"phases": [_parts(phase, "phases") for phase in layout["phases"]]} if "phases" in layout else {}),
        }
        for layout in listed
    ]


def _parts(listed: Any, path: str) -> list[Any]:
    if not isinstance(listed, list):
        raise InputError(f"{path}: {shown(listed)} given; allowed: a list of tensors")
    return [_part(part, path) for part in listed]


def _part(part: Any, path: str) -> Any:
    if isinstance(part, str):
        return {"tensor": _tensor(part, path)}
    if not isinstance(part, Mapping):
        raise InputError(f"{path}: {shown(part)} given; allowed: a tensor, or a mapping with one")
    if set(part) == {"reused"} and isinstance(part["reused"], list):
        return {"groups": [_parts(group, path) for group in part["reused"]]}
    named = {"tensor": _tensor(part["tensor"], path)} if "tensor" in part else {}
    numbers = {name: _number(part[name], path) for name in ("copies", "share") if name in part}
    return {**part, **named, **numbers}


def _tensor(name: Any, path: str) -> Any:
    from iomodel.nests import tensors

    known = {tensor.name: tensor for tensor in vars(tensors).values() if isinstance(tensor, Tensor)}
    if not isinstance(name, str) or name not in known:
        raise UnknownNameError(f"{path}: tensor", name, sorted(known))
    return plain(known[name])


def _number(value: Any, path: str) -> Any:
    from iomodel.nests.symbols import stages

    if value == "stages":
        return expression_data(stages)
    if isinstance(value, str):
        raise InputError(f"{path}: {shown(value)} given; allowed: an integer, or stages")
    return value
