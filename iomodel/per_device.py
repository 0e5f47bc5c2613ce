"""Remember what follows from a device, by the object: to hash its many figures takes as long as to read them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from iomodel.hardware import Hardware

F = TypeVar("F", bound=Callable[..., Any])
MOST = 256
"""Answers kept for each function, the oldest dropped first."""


def per_device(function: F) -> F:
    """Call `function(device, *more)` once for each device object and the other arguments.

    >>> from iomodel.hardware import hardware
    >>> @per_device
    ... def name(device: Hardware) -> str:
    ...     print("looked up")
    ...     return device.name
    >>> gpu = hardware("t4")
    >>> name(gpu), name(gpu)
    looked up
    ('NVIDIA T4', 'NVIDIA T4')
    """
    known: dict[tuple[Any, ...], tuple[Hardware, Any]] = {}

    @wraps(function)
    def remembered(device: Hardware, *more: Any) -> Any:
        point = (id(device), *more)
        found = known.get(point)
        if found is None:  # the device is kept with its answer, so that no other has its id
            found = device, function(device, *more)
            if len(known) >= MOST:
                known.pop(next(iter(known)), None)
            known[point] = found
        return found[1]

    return cast(F, remembered)
