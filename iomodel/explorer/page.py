"""Assembly of the page: one file with style, scripts and data."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from html import escape
from importlib.resources import files
from typing import Any

from iomodel.common import labels
from iomodel.explorer.scene import scene

COMPUTES = ("arithmetic", "solve", "call", "walk", "python", "clock", "report")
"""Scripts independent of the page."""
STARTS = ("drawing", "scene", "start")
"""Scripts of the first picture, which start the others."""
DRAWS = (
    "drawing",
    "results",
    "tilemap",
    "curves",
    "animation",
    "form",
    "compare",
    "serving",
    "share",
    "answer",
    "measured",
    "tour",
    "frame",
    "main",
)
"""Scripts that draw the page."""
WORDS = {
    "requests": labels.REQUESTS,
    "dram": labels.DRAM,
    "over_requests": labels.OVER_REQUESTS,
    "over_dram": labels.OVER_DRAM,
    "ridge": labels.RIDGE,
}
"""Labels of sizes and intensities on the page."""


def static(name: str) -> str:
    """Read a static file of the page."""
    return (files("iomodel.explorer") / "static" / name).read_text(encoding="utf-8")


def joined(names: tuple[str, ...]) -> str:
    """Join scripts, with the labels."""
    return "\n".join(
        ['"use strict";', f"const LABELS = {json.dumps(WORDS)};", *(static(f"{name}.js") for name in names)]
    )


def script(names: tuple[str, ...]) -> str:
    """Join scripts in one scope."""
    return f"(() => {{\n{joined(names)}\n}})();"


def packed(data: Any) -> str:
    """Compress data for a script element."""
    return b64encode(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)).decode("ascii")


def page(data: dict[str, Any], docs: str = "") -> str:
    """Build the HTML of the page with these data; `docs` is the address of the docs beside it, "" without them."""
    parts = {
        "style": static("page.css"),
        "version": escape(str(data["version"])),
        "docs": escape(docs),
        "scene": packed(scene()),
        "data": packed(data),
        "code": packed(f"{joined((*COMPUTES, *DRAWS))}\nreturn run(scene);"),
        "script": script(STARTS),
    }
    html = static("page.html")
    for name, text in parts.items():
        before, after = html.split(f"{{{{{name}}}}}")
        html = before + text + after
    return html
