"""A dark twin of every drawn picture.

Black and grey ink becomes white, the paper transparent; coloured areas and the greys of a colour map stay, with what
is written on them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from sphinx.application import Sphinx

IMAGE = re.compile(r'<img (?P<before>[^>]*)src="(?P<folder>[^"]*_images/)(?P<name>[\w-]+)\.png"(?P<after>[^>]*)>')
TWIN = (
    '<img {before}class="only-light" src="{folder}{name}.png"{after}>'
    '<img {before}class="only-dark" src="{folder}{name}-dark.png"{after}>'
)
GREY, COLOUR = 0.06, 0.22
"""Saturation up to which ink is turned to white, and from which it is kept [-]."""
COVERED, DENSE = 0.5, 0.64
"""Share of a pixel from which coloured ink makes it a coloured one, and of pixels from which they make an area [-]."""
MIDDLE = 0.15, 0.85
"""Lightness of flat grey that is an area of a colour map, such as the middle of cividis, and no ink or paper [-]."""
SMOOTH = 4 / 255
"""Largest difference between neighbouring pixels of a flat area or a gradient [-]."""
STROKE, AREA = 9, 23
"""Width up to which a stroke belongs to the coloured area around it, and from which colour is an area [pixels]."""


def around(mask: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """Count the pixels of a mask in the square around each pixel."""
    half = width // 2
    sums = np.pad(mask.astype(np.int64), ((half + 1, half), (half + 1, half))).cumsum(0).cumsum(1)
    rows = sums[width:] - sums[:-width]
    return np.asarray(rows[:, width:] - rows[:, :-width])


def within_areas(coloured: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Find the areas of a mask of coloured pixels, with the letters and marks on them; lines and stripes are none."""
    filled = around(around(coloured, STROKE) > 0, STROKE) == STROKE**2
    wide = around(around(filled, AREA) == AREA**2, AREA) > 0
    return np.asarray(wide & (around(coloured, AREA) > DENSE * AREA**2))


def flat_greys(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Find the pixels of flat areas and gradients of a middle lightness; lines and letters are never flat."""
    steps = np.zeros(pixels.shape[:2], dtype=bool)
    for axis in (0, 1):
        steep = np.abs(np.diff(pixels, axis=axis)).max(axis=-1) > SMOOTH
        steps |= np.pad(steep, [(0, 1), (0, 0)] if axis == 0 else [(0, 0), (0, 1)])
    light = pixels.mean(axis=-1)
    middle = (light > MIDDLE[0]) & (light < MIDDLE[1])
    inside = (around(steps, STROKE) == 0) & middle
    return np.asarray((around(inside, STROKE + 2) > 0) & middle)


def darkened(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Take the white paper out of a picture, and turn black and grey ink to white; RGB in, RGBA out, from 0 to 1."""
    least = pixels.min(axis=-1, keepdims=True)
    opaque = np.maximum(1 - least, 1e-6)
    kept = np.clip(((pixels.max(axis=-1, keepdims=True) - least) / opaque - GREY) / (COLOUR - GREY), 0, 1)
    alpha = np.maximum(np.minimum(1, (1 + kept) * (1 - least)), 1e-6)  # a light colour stays light
    ink = (pixels - (1 - alpha)) / alpha
    made = np.concatenate([kept * ink + (1 - kept), alpha], axis=-1)
    same = np.concatenate([pixels, np.ones_like(alpha)], axis=-1)
    greys = flat_greys(pixels)
    areas = within_areas(((kept * alpha)[..., 0] > COVERED) | greys)
    return np.where((areas | greys)[..., None], same, made)


def add_twins(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], doctree: object) -> None:
    """Put a dark picture beside each light one; the theme shows one of the two."""
    if doctree is not None:
        context["body"] = IMAGE.sub(lambda image: TWIN.format(**image.groupdict()), context["body"])


def write_twins(app: Sphinx, exception: Exception | None) -> None:
    """Write the dark pictures beside the light ones, those that are older or missing."""
    if exception is not None or app.builder.format != "html":
        return
    for light in Path(app.outdir, "_images").glob("*.png"):
        dark = light.with_name(f"{light.stem}-dark.png")
        if light.stem.endswith("-dark") or (dark.exists() and dark.stat().st_mtime >= light.stat().st_mtime):
            continue
        with Image.open(light) as image:
            pixels = np.asarray(image.convert("RGB"), dtype=np.float32) / 255
        Image.fromarray(np.uint8(255 * darkened(pixels) + 0.5), "RGBA").save(dark)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_twins)
    app.connect("build-finished", write_twins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
