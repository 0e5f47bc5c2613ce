"""Page of all calls and devices: built once for each state of the package, and kept among its derived data."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable

from iomodel.algorithms import discovered, list_algorithms
from iomodel.common import derived
from iomodel.common.yaml_files import specs_folder
from iomodel.devices.device import list_hardware

NAME = "explorer"
"""Name of the page among the derived data."""
UNUSED = frozenset({"cli", "integrations", "plots", "testing", "torch", "triton"})
"""Rooms that no figure of the page comes from; a change there keeps the page."""
ONCE = "iomodel: building the page of all calls and devices, once for this version; it takes a minute\n"


def shipped_algorithms() -> list[str]:
    """List the shipped algorithms with calls on the page: those of attention, without announced ones."""
    return [name for name in list_algorithms() if name in discovered()]


def whole_page(progress: bool = False) -> str:
    """Return the page of this state of the package, which commands keep; with `progress`, tell of a build on stderr."""
    state = _digest(version_text())
    kept = derived.read(NAME)
    if kept is not None and kept["state"] == state:
        return str(kept["page"])
    from iomodel.explorer.explore_page import built  # all formulas

    if progress:
        sys.stderr.write(ONCE)
    html = built(shipped_algorithms(), list_hardware(), progress, serving=True)
    if derived.pending is not None:
        derived.pending[NAME] = lambda: {"state": state, "page": html}
    return html


def version_text() -> str:
    """Return the version of the installed package; without one, say that the code is a checkout."""
    try:
        return version("iomodel")
    except PackageNotFoundError:
        return "a checkout"


def _digest(release: str) -> str:
    """Compute a digest of everything that the page depends on."""
    digest = sha256(release.encode())
    for path, content in _sources(files("iomodel"), "iomodel", UNUSED):
        digest.update(path.encode() + content)
    digest.update(sources_digest(specs_folder(), "specs").encode())
    return digest.hexdigest()[:16]


def sources_digest(folder: Traversable, path: str) -> str:
    """Compute a digest of the files of a folder."""
    digest = sha256()
    for name, content in _sources(folder, path):
        digest.update(name.encode() + content)
    return digest.hexdigest()


def _sources(folder: Traversable, path: str, left_out: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Iterate over the code, the static files and the specs of a folder, in a fixed order."""
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir() and item.name not in ("__pycache__", "_specs", *left_out):
            yield from _sources(item, f"{path}/{item.name}")
        elif item.name.endswith((".py", ".js", ".css", ".yaml", ".csv")) or item.name == "page.html":
            yield f"{path}/{item.name}", item.read_bytes()
