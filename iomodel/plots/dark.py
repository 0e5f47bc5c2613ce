"""Inks of a dark page: a picture is drawn with them, and keeps its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PAPER, INK = (0.075, 0.078, 0.086), (0.93, 0.93, 0.93)
"""Colours that white and black turn to: the paper of furo's dark pages, and nearly white; greys lie between."""
HUED = 0.1
"""Difference of the components from which a colour is none of the greys [-]."""
LEGIBLE = 4.5
"""Contrast of a text with its ground, by WCAG 2.1, 1.4.3 [-]."""
Colour = tuple[float, ...]


def dark_ink(colour: Colour) -> Colour:
    """Turn white to the dark paper and black to light ink; colours stay.

    >>> dark_ink((1.0, 1.0, 1.0, 0.5)), dark_ink((0.0, 0.45, 0.7, 1.0))
    ((0.075, 0.078, 0.086, 0.5), (0.0, 0.45, 0.7, 1.0))
    """
    red, green, blue, opacity = colour
    if max(red, green, blue) - min(red, green, blue) >= HUED:
        return colour
    return (*(ink + red * (paper - ink) for ink, paper in zip(INK, PAPER, strict=True)), opacity)


def dark_text(colour: Colour, ground: Colour = PAPER) -> Colour:
    """Turn the ink of a text to one that is legible on a dark ground: a colour gets as much white as it needs."""
    *parts, opacity = dark_ink(colour)
    while contrast(tuple(parts), ground) < LEGIBLE:
        parts = [part + 0.1 * (1 - part) for part in parts]
    return (*parts, opacity)


def contrast(one: Colour, other: Colour) -> float:
    """Compute the contrast of two colours, by WCAG 2.1.

    >>> round(contrast((0, 0, 0), (1, 1, 1)))
    21
    """
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Colour) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@contextmanager
def dark(picture: Any) -> Iterator[None]:
    """Give the artists of a figure the inks of a dark page in a `with` block; what is on a coloured area stays."""
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text

    layout = picture.get_layout_engine()
    if layout is not None:
        layout.execute(picture)
    picture.set_layout_engine("none")  # every artist is there, and keeps its place
    artists = [artist for artist in picture.findobj() if artist.get_visible()]
    boxes = [box for text in artists if isinstance(text, Text) and (box := text.get_bbox_patch()) is not None]
    kinds: dict[type, Callable[[Any], None]] = {Patch: _patch, Collection: _collection}
    areas = [artist for artist in artists if _coloured(artist)]
    extents = [artist.get_window_extent() for artist in areas]
    kept = []
    for artist in (*artists, *boxes):
        kept.append((artist, dict(vars(artist))))
        if isinstance(artist, Text | Line2D):
            if any(artist.axes is area.axes and _within(artist, box) for area, box in zip(areas, extents, strict=True)):
                continue
            (_text if isinstance(artist, Text) else _line)(artist)
        for kind, change in kinds.items():
            if isinstance(artist, kind):
                change(artist)
    try:
        yield
    finally:
        for artist, own in kept:
            vars(artist).update(own)
        picture.set_layout_engine(layout or "none")


def _coloured(artist: Any) -> bool:
    """Check for an area with a colour or a map of colours; paper and greys are none."""
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    face = to_rgba(artist.get_facecolor()) if isinstance(artist, Patch) else (0.0,) * 4
    return isinstance(artist, QuadMesh) or (face[3] > 0 and dark_ink(face) == face)


def _within(artist: Any, area: Any) -> bool:
    """Check that the middle of a text, or all points of a line, lie in an area."""
    from matplotlib.text import Text

    if isinstance(artist, Text):
        box = artist.get_window_extent()
        return bool(area.contains((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2))
    points = artist.get_transform().transform(artist.get_xydata())
    return len(points) > 0 and all(area.contains(*point) for point in points)


def _text(text: Any) -> None:
    from matplotlib.colors import to_rgba

    box = text.get_bbox_patch()
    ground = PAPER if box is None else dark_ink(box.get_facecolor())
    text.set_color(dark_text(to_rgba(text.get_color()), ground))


def _line(line: Any) -> None:
    from matplotlib.colors import to_rgba

    inks = [(line.set_color, line.get_color()), (line.set_markeredgecolor, line.get_markeredgecolor()),
            (line.set_markerfacecolor, line.get_markerfacecolor())]  # fmt: skip
    for change, colour in inks:  # read before the first change: those of markers may follow that of the line
        change(dark_ink(to_rgba(colour)))


def _patch(patch: Any) -> None:
    face, edge = patch.get_facecolor(), patch.get_edgecolor()
    patch.set_facecolor(dark_ink(face))
    if edge[3] > 0 and not (patch.get_hatch() and dark_ink(face) == face):  # a hatch has the ink of the edge
        patch.set_edgecolor(dark_ink(edge))


def _collection(collection: Any) -> None:
    collection.set_edgecolor(list(map(dark_ink, map(tuple, collection.get_edgecolor()))))
    if collection.get_array() is None:
        collection.set_facecolor(list(map(dark_ink, map(tuple, collection.get_facecolor()))))
