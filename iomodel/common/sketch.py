"""Small drawings beside the table of a result in notebooks: bars and maps as SVG, in the colours of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

FILLS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
"""Colours of the parts of a bar, of Okabe and Ito; legible on light and dark pages."""
HEIGHT, BAR, LABEL, LETTER = 20, 360, 180, 6.6
"""Height of a row, width of a bar and of a label, and of a letter [px]."""


@dataclass(frozen=True)
class BarRow:
    """A bar: the size of each part by name, and the limit that its frame shows, if any."""

    label: str
    parts: Mapping[str, float]
    text: str
    limit: float | None = None


def bars(rows: Sequence[BarRow], *, each: bool = False) -> str:
    """Draw bars below each other on one scale, or each on its own up to its limit.

    >>> bars([BarRow("weights", {"weights": 3.0}, "3 GB", 4.0)]).startswith("<svg")
    True
    """
    widest = max((max(sum(row.parts.values()), row.limit or 0.0) for row in rows), default=0.0)
    lines = []
    for place, row in enumerate(rows):
        top, left = place * HEIGHT, float(LABEL)
        scale = BAR / ((max(sum(row.parts.values()), row.limit or 0.0) if each else widest) or 1.0)
        lines.append(_text(LABEL - 6, top, row.label, "end"))
        if row.limit is not None:
            lines.append(
                f'<rect x="{LABEL}" y="{top + 3}" width="{row.limit * scale:.1f}" height="{HEIGHT - 6}" fill="none" '
                'stroke="currentColor" stroke-opacity="0.5"/>'
            )
        for number, (name, size) in enumerate(row.parts.items()):
            lines.append(
                f'<rect x="{left:.1f}" y="{top + 3}" width="{size * scale:.1f}" height="{HEIGHT - 6}" '
                f'fill="{FILLS[number % len(FILLS)]}"><title>{escape(name)}</title></rect>'
            )
            left += size * scale
        lines.append(_text(LABEL + BAR + 8, top, row.text, "start"))
    longest = max((len(row.text) for row in rows), default=0)
    return _svg(LABEL + BAR + 16 + LETTER * longest, HEIGHT * len(rows), lines)


def cells(
    colours: Sequence[Sequence[str | None]],
    marks: Mapping[tuple[int, int], str],
    rows: Sequence[str],
    columns: Sequence[str],
    titles: tuple[str, str],
    legend: str,
) -> str:
    """Draw a map of coloured cells, the last row at the top, with letters on the marked ones; None is left blank.

    `titles` name the rows and the columns, of which the first and the last are labelled; the legend stands below.
    """
    side, margin = 11, 60
    lines = [_text(margin - 6, -4, titles[0], "end")]
    for row, values in enumerate(colours):
        top = (len(colours) - row) * side + 6
        lines.append(_text(margin - 6, top - 5, rows[row], "end", 9))
        for column, colour in enumerate(values):
            left = margin + column * side
            if colour is not None:
                lines.append(f'<rect x="{left}" y="{top}" width="{side - 1}" height="{side - 1}" fill="{colour}"/>')
            if (row, column) in marks:
                lines.append(
                    f'<text x="{left + side / 2 - 0.5}" y="{top + 9}" text-anchor="middle" font-size="10" '
                    'font-weight="bold" fill="black" stroke="white" stroke-width="2" paint-order="stroke">'
                    f"{escape(marks[row, column])}</text>"
                )
    below, right = side * (len(colours) + 1) + 4, margin + side * len(columns)
    lines.append(_text(margin, below, columns[0], "start", 9))
    if len(columns) > 3:
        lines.append(_text(right, below, columns[-1], "end", 9))
    lines += [_text(right + 12, below, titles[1], "start"), _text(margin, below + HEIGHT, legend, "start")]
    width = max(right + 12 + LETTER * len(titles[1]), margin + LETTER * len(legend))
    return _svg(width + 8, below + 2 * HEIGHT, lines)


def _text(x: float, top: float, text: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text x="{x}" y="{top + 14}" text-anchor="{anchor}" font-size="{size}" fill="currentColor">'
        f"{escape(text)}</text>"
    )


def _svg(width: float, height: float, lines: Sequence[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    style = 'role="img" style="display: block; max-width: 100%; height: auto; font-family: sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{"".join(lines)}</svg>'
