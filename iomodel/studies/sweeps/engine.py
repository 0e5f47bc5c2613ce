"""Digest of the modules that compute a sweep, by which stores and workers recognise another version."""

from __future__ import annotations

from iomodel.common import derived

ROOMS = (*derived.ROOMS, "studies/sweeps")
"""Packages of the modules that a sweep imports."""


def engine_digest() -> str:
    """Return the digest of the source of every module of :data:`ROOMS`."""
    return derived.digest(*ROOMS)
