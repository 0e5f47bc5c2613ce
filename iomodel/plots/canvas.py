"""What all pictures share: a figure without global state, colours, and files."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from math import ceil, floor, log10
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from iomodel import output_file
from iomodel.errors import InputError, shown
from iomodel.output_file import written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which people with any colour vision tell apart; its yellow is too faint on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""One for each colour, so that nothing is told by colour alone."""
GREY, FAINT = "#595959", "#DDDDDD"
SUFFIXES = (".png", ".svg")
DPI = 200
"""Of PNG files [dots per inch]: print quality."""


def figure(title: str, width: float = 7.2, height: float = 4.4) -> Figure:
    """An empty figure [inches] with a title; InputError where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise InputError(
            "matplotlib: not installed, and pictures need it; allowed: after pip install 'iomodel[plot]'"
        ) from None
    made: Figure = _figure_class()(figsize=(width, height), layout="constrained", facecolor="white")
    made.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color="black", parse_math=False)
    return made


@cache
def _figure_class() -> Any:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that notebooks show although pyplot does not know it."""

        def _repr_png_(self) -> tuple[bytes, dict[str, float]]:
            data = BytesIO()
            self.savefig(data, format="png", dpi=2 * 96)
            return data.getvalue(), {"width": 96 * self.get_figwidth()}  # drawn for fine screens, shown at its size

    return Picture


def subtitle(axes: Any, text: str) -> None:
    """A few words above the axes, in lines that fit."""
    lines = [line for part in text.split("\n") for line in wrap(part, 108)]
    axes.set_title("\n".join(lines), loc="left", fontsize=9, color=GREY, parse_math=False)


def plain(axes: Any, *, grid: bool = True) -> None:
    """Take away the frame on the right and at the top, whatever the user's style."""
    axes.set_facecolor("white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=False, which="both")
    if grid:
        axes.grid(which="major", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9)


def legend(made: Any, columns: int) -> None:
    """A legend below all axes, in lines that fit, whose names are never read as formulas."""
    handles, labels = made.axes[0].get_legend_handles_labels()
    texts = ["\n".join(wrap(label, 104 // columns)) for label in labels]
    drawn = made.legend(
        handles, texts, loc="outside lower center", ncols=columns, markerscale=0.7, fontsize=8, edgecolor=FAINT
    )
    for text in drawn.get_texts():
        text.set_parse_math(False)


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers in a range, evenly spread on a logarithmic axis: three at least, where there are so many.

    >>> log_ticks(4.4, 9.1), log_ticks(1, 1000)
    ([5, 6, 7, 8, 9], [1, 10, 100, 1000])
    """
    found: list[float] = []
    for parts in ((1,), (1, 2, 5), (1, 2, 3, 4, 5, 6, 7, 8, 9), tuple(part / 10 for part in range(10, 100))):
        powers = range(floor(log10(low)), ceil(log10(high)) + 1)
        found = [part * 10**k if k >= 0 else part / 10**-k for k in powers for part in parts]
        found = [value for value in found if low <= value <= high]
        if len(found) >= 3:
            break
    return found[:: 1 + len(found) // 9]


def save(figure: Figure, path: str | PathLike[str], *, overwrite: bool = True) -> Path:
    """Write a picture to a PNG or SVG file.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A picture of this module, or any other figure.
    path : str or os.PathLike
        The file; its suffix, .png or .svg, says in which form.
    overwrite : bool
        Whether a file that is there may be replaced.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        Another suffix; a file that is there and may not be replaced; a place that cannot be written.

    Examples
    --------
    >>> save(None, "roofline.pdf")
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: output: 'roofline.pdf' given; allowed: a file that ends in .png or .svg
    """
    target = writable(path, overwrite=overwrite)
    if not hasattr(figure, "savefig"):
        raise InputError(f"figure: {shown(figure)} given; allowed: a matplotlib figure, such as iomodel.plots make")
    form = target.suffix.lower().removeprefix(".")
    # Without a date, and with a title that screen readers find.
    metadata = {"Title": figure.get_suptitle()} | ({"Date": None} if form == "svg" else {})
    data = BytesIO()
    figure.savefig(data, format=form, dpi=DPI, metadata=metadata)
    return written(target, data.getvalue(), overwrite=overwrite)


def writable(path: str | PathLike[str], *, overwrite: bool) -> Path:
    """The file that a picture may go to, looked at before anything is computed."""
    return output_file.writable(path, SUFFIXES, overwrite=overwrite)
