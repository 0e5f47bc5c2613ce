"""The explorer of the front page, built once for each state of the package."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import iomodel

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "docs" / "_build" / "explorer"
ALGORITHMS = ("standard", "flash2", "flash3", "split_kv")
"""Algorithms of the embedded page; `iomodel explore` writes one with all."""
SOURCES = ("iomodel/**/*.py", "iomodel/explorer/static/*", "specs/**/*.yaml", "docs/_ext/explorer_page.py")


def digest() -> str:
    """Compute a digest of everything that the page depends on."""
    found = sha256()
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                found.update(path.relative_to(ROOT).as_posix().encode())
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


def build(_: Any, config: Any) -> None:
    """Write the page, unless it exists, into a folder whose files are copied to the site."""
    folder = BUILT / digest()
    page = folder / "explorer-page.html"
    if not page.exists():
        folder.mkdir(parents=True, exist_ok=True)
        text = iomodel.explore(algorithms=list(ALGORITHMS))
        page.write_text(text, encoding="utf-8")
    config.html_extra_path = [*config.html_extra_path, str(folder)]


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("config-inited", build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
