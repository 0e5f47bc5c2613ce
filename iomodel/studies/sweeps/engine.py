"""Digest of the modules that compute a sweep, by which stores and workers recognise another version."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable

ROOMS = (
    "algorithms", "common", "counting", "devices", "errors.py", "nests", "placement", "solving", "studies/sweeps",
    "timing", "workloads",
)  # fmt: skip
"""Packages of the modules that a sweep imports."""
APART = "shipped"
"""The folder of formulas: a plan has a digest of those of its algorithms alone."""


@cache
def engine_digest() -> str:
    """Return the digest of the source of every module of :data:`ROOMS`."""
    digest = sha256()
    for room in ROOMS:
        for name, source in _modules(room, resources.files("iomodel").joinpath(*room.split("/"))):
            digest.update(f"{name}\n{len(source)}\n".encode() + source)
    return digest.hexdigest()


def _modules(name: str, place: Traversable) -> Iterator[tuple[str, bytes]]:
    """Yield the modules under a place, by path, in order."""
    if place.is_dir():
        for child in sorted(place.iterdir(), key=lambda child: child.name):
            if child.name != APART:
                yield from _modules(f"{name}/{child.name}", child)
    elif name.endswith(".py"):
        yield name, place.read_bytes()
