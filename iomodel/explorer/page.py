"""Assembly of the page: one file with style, scripts and data."""

from __future__ import annotations

import json
import lzma
import re
from base64 import b85encode
from html import escape
from importlib.resources import files
from typing import Any

from iomodel.common import labels
from iomodel.explorer.scene import scene

COMPUTES = ("arithmetic", "solve", "call", "walk", "python", "clock", "report")
"""Scripts independent of the page."""
UNPACKS = ("unpack", "first")
"""Scripts that read the others."""
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
    "resources": dict(labels.RESOURCES),
}
"""Labels of sizes, intensities and resources on the page."""
LZMA = {"id": lzma.FILTER_LZMA1, "preset": 9, "nice_len": 273, "dict_size": 2**23, "lc": 3, "lp": 0, "pb": 0}
"""Parameters of the compression, as :file:`static/unpack.js` reads it."""


def static(name: str) -> str:
    """Read a static file of the page."""
    return (files("iomodel.explorer") / "static" / name).read_text(encoding="utf-8")


def joined(names: tuple[str, ...]) -> str:
    """Join scripts, with the labels, without indentation and lines of comments."""
    text = "\n".join(
        ['"use strict";', f"const LABELS = {json.dumps(WORDS)};", *(static(f"{name}.js") for name in names)]
    )
    return re.sub(r"^[ \t]+|^[ \t]*//.*\n", "", text, flags=re.MULTILINE)


def script(names: tuple[str, ...]) -> str:
    """Join scripts in one scope."""
    return f"(() => {{\n{joined(names)}\n}})();"


def packed(data: Any) -> str:
    """Compress data for a script element, in base 85 without the sign that could end the element.

    >>> text = packed([0] * 10_000)
    >>> len(text) < 100, "<" in text
    (True, False)
    """
    text = json.dumps(data, separators=(",", ":")).encode()
    compressed = lzma.compress(text, lzma.FORMAT_RAW, filters=[LZMA])
    return b85encode(len(text).to_bytes(4, "big") + compressed, pad=True).decode("ascii").replace("<", ",")


def page(data: dict[str, Any], docs: str = "") -> str:
    """Build the HTML of the page with these data; `docs` is the address of the docs beside it, "" without them."""
    parts = {
        "style": static("page.css"),
        "version": escape(str(data["version"])),
        "docs": escape(docs),
        "picture": packed({"code": f"{joined(STARTS)}\nreturn begin(data);", "data": scene()}),
        "data": packed(data),
        "code": packed(f"{joined((*COMPUTES, *DRAWS))}\nreturn run(scene);"),
        "script": script(UNPACKS),
    }
    return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], static("page.html"))
