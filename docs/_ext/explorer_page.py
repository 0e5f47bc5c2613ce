"""The explorer of the front page, built once for each state of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from iomodel.explorer.built import whole_page

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = '<meta name="iomodel-docs" content="">'
"""The address of the docs in a page that is alone; on the site it is beside them."""
FOLDER = ROOT / "docs" / "_build" / "explorer"


def build(_: Any, config: Any) -> None:
    """Write the page into a folder whose files are copied to the site."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    html = whole_page().replace(WITHOUT, WITHOUT.replace('content=""', 'content="./"'), 1)
    (FOLDER / "explorer-page.html").write_text(html, encoding="utf-8")
    config.html_extra_path = [*config.html_extra_path, str(FOLDER)]


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("config-inited", build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
