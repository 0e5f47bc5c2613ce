"""Data derived from the sources of the package: the catalogue of algorithms, the compiled formulas, the parsed specs.

They are kept in a folder of the package, as Python keeps its bytecode: written by ``python -m iomodel.prebuild`` for a
release, else by the commands that lack them. Files of other sources, and files that are easier to write than the code,
are not read. A call of the library writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
"""The folder of the package; importlib.resources takes longer to import than a command to read its data."""
FOLDER, PARTS = "_derived", "_parts"
"""The folders, inside the package, of what a release carries and of the parts that it is made of."""
SHARED = ("common", "counting", "devices", "errors", "nests", "placement", "solving", "timing", "workloads")
"""The rooms whose sources all data follow from."""
ROOMS = ("algorithms", *SHARED)
"""The rooms whose sources the data follow from, but for those of one algorithm."""
pending: dict[str, Callable[[], Any]] | None = None
"""Makers of the data to write by name; None in a process that writes nothing."""
made_of: dict[str, str] = {}
"""States of the data that follow from other sources than those of :data:`ROOMS`, by name."""
modules: dict[str, list[str]] = {}
"""Modules of the room of algorithms that data follow from, by name, where it is not all of them."""


@cache
def digest(*rooms: str) -> str:
    """Return the digest of the source of every module of some rooms; of :data:`ROOMS` by default."""
    from hashlib import sha256

    if len(rooms) != 1:  # those of single rooms are kept, so that each source is read once
        return sha256("".join(map(digest, rooms or ROOMS)).encode()).hexdigest()
    total, package = sha256(), PACKAGE.as_posix()
    for path in _modules(f"{package}/{rooms[0]}"):
        with open(path, "rb") as file:  # noqa: PTH123 - a Path for each file takes half of the time
            source = file.read()
        total.update(f"{path.removeprefix(package)}\n{len(source)}\n".encode() + source)
    return total.hexdigest()


def _modules(place: str) -> list[str]:
    """List the modules of a folder, or the one module that the place is, in order."""
    walked = ((folder.replace(os.sep, "/"), names) for folder, _, names in os.walk(place))
    return sorted(f"{folder}/{name}" for folder, names in walked for name in names if name.endswith(".py")) or [place]


def read(name: str, state: str | None = None) -> Any:
    """Read data that were derived from these sources, or in a `state` of others; None if there are none.

    Data of one algorithm name the modules of its room that they follow from, beside the rooms of :data:`SHARED`.
    """
    import json
    import zlib

    file = _file(name, state)
    try:
        if not (_guarded(file) and _guarded(file.parent)):
            return None
        source, own, data = json.loads(zlib.decompress(file.read_bytes()))
        return data if source == (state or _followed(own)) else None
    except (OSError, ValueError, zlib.error):
        return None


def _followed(own: list[str] | None) -> str:
    """Return the digest of the sources of data of some modules of the algorithms, None for all of them."""
    return digest() if own is None else digest(*SHARED, *own)


def write(name: str, data: Any, state: str | None = None) -> None:
    """Write data derived from these sources or in a `state` of others, where the folder of the package is writable."""
    import json
    import zlib
    from tempfile import NamedTemporaryFile

    target = _file(name, state)
    folder = target.parent
    own = None if state else modules.get(name)
    text = json.dumps([state or _followed(own), own, data], separators=(",", ":"))
    try:
        folder.mkdir(mode=0o755, exist_ok=True)
        with NamedTemporaryFile(dir=folder, delete=False) as partial:
            partial.write(zlib.compress(text.encode(), 9))
        Path(partial.name).chmod(0o644)
        Path(partial.name).replace(target)
    except OSError:  # the package belongs to somebody else, or the disk is full: the next process derives them again
        return


def keep() -> None:
    """Write what this process has derived."""
    for name, make in (pending or {}).items():
        write(name, make(), made_of.get(name))


def _folder() -> Path:
    return PACKAGE / FOLDER


def _file(name: str, state: str | None) -> Path:
    """Return the file of some data; those of a state are beside the folder that a release carries."""
    folder = _folder() if state is None else _folder().with_name(PARTS)
    return folder / f"{name}.json.z"


def _guarded(path: Path) -> bool:
    """Check that nobody may write to a path who may not write to the code of the package."""
    code, own = Path(__file__).stat(), path.stat()
    return own.st_uid in (code.st_uid, 0) and not own.st_mode & 0o022 & ~code.st_mode
