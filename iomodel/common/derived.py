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
ROOMS = ("algorithms", "common", "counting", "devices", "errors", "nests", "placement", "solving",
         "timing", "workloads")  # fmt: skip
"""The rooms whose sources the data follow from."""
pending: dict[str, Callable[[], Any]] | None = None
"""Makers of the data to write by name; None in a process that writes nothing."""
made_of: dict[str, str] = {}
"""States of the data that follow from other sources than those of :data:`ROOMS`, by name."""


@cache
def digest(*rooms: str) -> str:
    """Return the digest of the source of every module of some rooms; of :data:`ROOMS` by default."""
    from hashlib import sha256

    total, package = sha256(), PACKAGE.as_posix()
    for room in rooms or ROOMS:
        for path in _modules(f"{package}/{room}"):
            with open(path, "rb") as file:  # noqa: PTH123 - a Path for each file takes half of the time
                source = file.read()
            total.update(f"{path.removeprefix(package)}\n{len(source)}\n".encode() + source)
    return total.hexdigest()


def _modules(place: str) -> list[str]:
    """List the modules of a folder, or the one module that the place is, in order."""
    walked = ((folder.replace(os.sep, "/"), names) for folder, _, names in os.walk(place))
    return sorted(f"{folder}/{name}" for folder, names in walked for name in names if name.endswith(".py")) or [place]


def read(name: str, state: str | None = None) -> Any:
    """Read data that were derived from these sources, or in a `state` of others; None if there are none."""
    import json
    import zlib

    file = _file(name, state)
    try:
        if not (_guarded(file) and _guarded(file.parent)):
            return None
        source, data = json.loads(zlib.decompress(file.read_bytes()))
    except (OSError, ValueError, zlib.error):
        return None
    return data if source == (state or digest()) else None


def write(name: str, data: Any, state: str | None = None) -> None:
    """Write data derived from these sources or in a `state` of others, where the folder of the package is writable."""
    import json
    import zlib
    from tempfile import NamedTemporaryFile

    target = _file(name, state)
    folder = target.parent
    text = json.dumps([state or digest(), data], separators=(",", ":"))
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
