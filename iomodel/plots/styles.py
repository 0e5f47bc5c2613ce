"""Styles of pictures: their size, their font and the size of their text, for papers, slides and notebooks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_choice
from iomodel.errors import InputError, shown

StyleName = Literal["notebook", "paper", "slides"]
INCHES: Mapping[str, float] = FrozenDict({"": 1.0, "in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27})
"""Units of a length; a point is that of TeX, in which journals state the width of a column."""
LENGTH = re.compile(r"(\d+(?:\.\d*)?|\.\d+) ?(in|cm|mm|pt|)")
LEAST, MOST = 1.0, 60.0
"""Allowed lengths [in]."""
DESIGNED = 7.2
"""Width for which pictures are designed [in]."""
BESIDE = 2.0
"""Width of the texts beside bars, as designed [in]."""


@dataclass(frozen=True)
class Style:
    """The looks of all pictures that are drawn while it holds.

    Attributes
    ----------
    width, height : float or None
        Size of a picture [in]; by default as designed.
    font : str or None
        Family of all texts, as matplotlib names it; by default that of matplotlib.
    title : bool
        Title and first line above the axes; without them they are the `caption` of the figure.
    text : float
        Factor of all sizes of text, which are 8 to 12 pt as designed [-].
    dark : bool
        Light ink on dark paper.
    """

    width: float | None = None
    height: float | None = None
    font: str | None = None
    title: bool = True
    text: float = 1.0
    dark: bool = False

    def size(self, width: float, height: float) -> tuple[float, float]:
        """Return the size of a picture that is designed for some inches: rows become as high as their text."""
        own = height * self.text if self.height is None else self.height
        return (width if self.width is None else self.width), own

    def letters(self, designed: int) -> int:
        """Return the letters that a line holds in place of so many as designed."""
        return max(24, int(designed * (self.width or DESIGNED) / DESIGNED / self.text))

    @property
    def letter(self) -> float:
        """Width of a letter over that of a letter as designed, both as shares of the axes of bars [-]."""
        axes = max(0.5, (self.width or DESIGNED) - BESIDE * self.text)
        return self.text * (DESIGNED - BESIDE) / axes

    @property
    def narrow(self) -> bool:
        """Check whether the picture is a column of a paper, in which panels and entries of a legend are stacked."""
        return self.letters(100) <= 70

    def columns(self, designed: int) -> int:
        """Return the columns of a legend in place of so many as designed."""
        return 1 if self.narrow else designed


STYLES: Mapping[str, Style] = FrozenDict(
    {"notebook": Style(), "paper": Style(width=3.3, title=False, text=0.8), "slides": Style(width=10.0, text=1.5)}
)
"""The styles by name: a column of a paper of two columns with text of 6.4 to 8 pt, a slide, and the screen."""
_CURRENT: ContextVar[Style] = ContextVar("style", default=STYLES["notebook"])


def current() -> Style:
    """Return the style that holds in this thread or task."""
    return _CURRENT.get()


class Applied:
    """A style that holds from now on, or until the end of a `with` block."""

    def __init__(self, chosen: Style) -> None:
        self.style = chosen
        self.token: Token[Style] = _CURRENT.set(chosen)

    def __enter__(self) -> Style:
        """Return the style."""
        return self.style

    def __exit__(self, *_: object) -> None:
        """Return to the style before."""
        _CURRENT.reset(self.token)

    def __repr__(self) -> str:
        """Name the style."""
        return f"<{self.style}>"


def style(
    name: StyleName = "notebook",
    *,
    width: float | str | None = None,
    height: float | str | None = None,
    font: str | None = None,
    title: bool | None = None,
    dark: bool = False,
) -> Applied:
    """Choose the looks of the pictures that are drawn from now on in this thread, or in a `with` block.

    Parameters
    ----------
    name : {"notebook", "paper", "slides"}
        A column of a paper: 3.3 in wide, text of 6.4 to 8 pt, no title; a slide: 10 in wide, text of 12 to 18 pt.
    width, height : float or str, optional
        Size in place of that of the style: inches, or a text such as ``"84 mm"`` or ``"240 pt"`` [in].
    font : str, optional
        Family of all texts, such as ``"serif"`` or ``"Times New Roman"``.
    title : bool, optional
        Title and first line above the axes; without them ``figure.caption`` has their text.
    dark : bool
        Light ink on dark paper, for dark slides and pages.

    Returns
    -------
    Applied
        A context manager whose end restores the style before.

    Raises
    ------
    InputError, UnknownNameError
        The name is unknown; a length is not from 1 to 60 in.

    Examples
    --------
    >>> from iomodel import plots
    >>> with plots.style("paper", width="84 mm", font="serif") as chosen:
    ...     round(chosen.width, 2), chosen.title
    (3.31, False)
    """
    known = STYLES[as_choice("style", name, get_args(StyleName))]
    if font is not None and (not isinstance(font, str) or not font.strip()):
        raise InputError(f"font: {shown(font)} given; allowed: a family of fonts, such as 'serif'")
    for field, given in {"title": title, "dark": dark}.items():
        if given is not None and not isinstance(given, bool):
            raise InputError(f"{field}: {shown(given)} given; allowed: True or False")
    more: dict[str, Any] = {"width": _inches("width", width), "height": _inches("height", height), "font": font}
    more = {field: value for field, value in {**more, "title": title, "dark": dark}.items() if value is not None}
    return Applied(replace(known, **more))


def _inches(field: str, length: float | str | None) -> float | None:
    """Read a length, by default in inches."""
    if length is None:
        return None
    inches = length
    if isinstance(length, str):
        read = LENGTH.fullmatch(length.strip())
        inches = float(read[1]) * INCHES[read[2]] if read else length
    if isinstance(inches, bool) or not isinstance(inches, int | float) or not LEAST <= inches <= MOST:
        raise InputError(f"{field}: {shown(length)} given; allowed: 1 to 60 in, such as 3.3 or '84 mm'")
    return float(inches)
