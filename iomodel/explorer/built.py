"""Page of all calls and devices: stored in the package when a wheel is built, or in a folder for reuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from iomodel.algorithms import discovered, list_algorithms
from iomodel.common.yaml_files import specs_folder
from iomodel.devices.device import list_hardware

NAME = "explorer.html"
"""Name of the page among the data of this package."""


def stored(algorithms: Sequence[str], hardware: Sequence[str]) -> str | None:
    """Return the page that the wheel carries; None if there is none, or if it has other algorithms or devices.

    A checkout and an editable install carry none, since their code may change.
    """
    if list(algorithms) != shipped_algorithms() or list(hardware) != list_hardware():
        return None
    page = files("iomodel.explorer") / NAME
    return page.read_text(encoding="utf-8") if page.is_file() else None


def shipped_algorithms() -> list[str]:
    """List the shipped algorithms with calls on the page: those of attention, without announced ones."""
    return [name for name in list_algorithms() if name in discovered()]


def kept(folder: Path, release: str | None = None) -> Path:
    """Return the page of this state of the package in a folder, built in place of older ones if it is not there.

    Parameters
    ----------
    folder : Path
        Folder of pages; it has one folder for each state of the package.
    release : str, optional
        Version that the page states; by default that of the installed package.
    """
    from iomodel.explorer.explore_page import built  # all formulas
    from iomodel.explorer.payload import version_text

    stated = version_text() if release is None else release
    page = folder / _digest(stated) / NAME
    if not page.exists():
        html = built(shipped_algorithms(), list_hardware(), release=stated, serving=True)
        for older in folder.glob(f"*/{NAME}"):
            older.unlink()
        page.parent.mkdir(parents=True, exist_ok=True)
        partial = page.with_suffix(".partial")
        partial.write_text(html, encoding="utf-8")
        partial.replace(page)  # a build that is interrupted leaves no page
    return page


def _digest(release: str) -> str:
    """Compute a digest of everything that the page depends on."""
    digest = sha256(release.encode())
    for path, content in _sources(files("iomodel"), "iomodel"):
        digest.update(path.encode() + content)
    for path, content in _sources(specs_folder(), "specs"):
        digest.update(path.encode() + content)
    return digest.hexdigest()[:16]


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    """Iterate over the code, the static files and the specs of a folder, in a fixed order."""
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir() and item.name != "__pycache__":
            yield from _sources(item, f"{path}/{item.name}")
        elif item.name.endswith((".py", ".js", ".css", ".yaml")) or item.name == "page.html":
            yield f"{path}/{item.name}", item.read_bytes()
