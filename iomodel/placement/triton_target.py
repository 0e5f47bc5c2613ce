"""Targets of the Triton oracle: the architectures and versions of the compiles that test it, with their limits."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from iomodel.common.frozen_dict import FrozenDict
from iomodel.devices.device import hardware, names_meant
from iomodel.errors import InputError, IOModelError, shown

SHARED_LIMITS: Mapping[int, int] = FrozenDict(
    {
        75: 65_536,
        80: 166_912,
        86: 101_376,
        89: 101_376,
        90: 232_448,
        100: 232_448,
        103: 232_448,
        120: 101_376,
        121: 101_376,
    }
)
"""Shared memory that a block may have, by architecture [B]."""
TMEM_LIMIT = 512
"""Columns of tensor memory of an SM [-]."""
VERSIONS = ("3.9.0",)
"""Versions of Triton whose compiles are stored in tests/measured/triton."""


def as_architecture(value: object) -> int:
    """Resolve an architecture (90, "sm_90", "9.0") or a device of it; InputError for one without compiles on file.

    >>> as_architecture("sm_90"), as_architecture("8.6"), as_architecture(120), as_architecture("RTX 4090")
    (90, 86, 120, 89)
    """
    digits = str(_capability(value) or value).lower().removeprefix("sm_").removesuffix("a").replace(".", "")
    if isinstance(value, str | int) and digits.isdecimal() and int(digits) in SHARED_LIMITS:
        return int(digits)
    allowed = ", ".join(f"sm_{known}" for known in SHARED_LIMITS)
    raise InputError(f"arch: {shown(value)} given; allowed: {allowed}")


def _capability(value: object) -> str | None:
    """Return the compute capability of a device that is given by its name; None for any other value."""
    try:
        return hardware(value).compute_capability if isinstance(value, str) and names_meant(value) else None
    except IOModelError:
        return None


def as_version(value: str | None) -> str:
    """Resolve a version of Triton, by default the installed one; raise InputError for one without compiles on file.

    >>> as_version("3.9.0")
    '3.9.0'
    """
    if value is None:
        try:
            value = version("triton")
        except PackageNotFoundError:
            value = VERSIONS[-1]
    if value not in VERSIONS:
        raise InputError(
            f"version: Triton {shown(value)} given; allowed: {', '.join(VERSIONS)}; "
            f"version={VERSIONS[-1]!r} takes the rules of that one"
        )
    return value
