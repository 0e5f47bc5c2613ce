"""Memoization of functions of a device, keyed by object identity because hashing all figures is slow."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from iomodel.common.cache import BoundedCache
from iomodel.devices.device import Hardware

F = TypeVar("F", bound=Callable[..., Any])
MOST = 1024
"""Number of cached results per function; the oldest is dropped first."""


def per_device(function: F) -> F:
    """Memoize `function(device, *more)` by the identity of the device and the other arguments.

    >>> from iomodel.devices.device import hardware
    >>> @per_device
    ... def name(device: Hardware) -> str:
    ...     print("looked up")
    ...     return device.name
    >>> gpu = hardware("t4")
    >>> name(gpu), name(gpu)
    looked up
    ('NVIDIA T4', 'NVIDIA T4')
    """
    results = BoundedCache[tuple[Hardware, Any]](MOST)

    @wraps(function)
    def cached(device: Hardware, *more: Any) -> Any:
        # The entry keeps the device alive, so that no other object takes its id.
        return results.get((id(device), *more), lambda: (device, function(device, *more)))[1]

    return cast(F, cached)
