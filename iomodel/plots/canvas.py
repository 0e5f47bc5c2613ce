"""Common parts of all pictures: figures without global state, colours, and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from io import BytesIO
from math import ceil, floor, log10
from os import PathLike
from pathlib import Path
from textwrap import wrap
from threading import Lock
from typing import TYPE_CHECKING, Any

from iomodel.common import labels
from iomodel.common import output_files as output_file
from iomodel.common.output_files import written
from iomodel.errors import InputError, shown
from iomodel.plots import words
from iomodel.plots.dark import dark
from iomodel.plots.styles import STYLES, Style, current

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The colour-blind-safe palette of Okabe and Ito, without its yellow, which is too faint on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""One marker per colour, so that no distinction depends on colour alone."""
GREY, FAINT = "#595959", "#DDDDDD"
SUFFIXES = (".png", ".svg", ".pdf", ".pgf")
EDITABLE = {"svg.fonttype": "none", "pdf.fonttype": 42}
"""Text stays text in SVG, and fonts are embedded as TrueType in PDF, as publishers ask."""
_ENCODING = Lock()
DPI = 200
"""Resolution of PNG files, in print quality [dots per inch]."""


def figure(title: str, width: float = 7.2, height: float = 4.4) -> Figure:
    """Create an empty figure with a title, of a size in inches; raise InputError if matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise InputError("matplotlib: not installed; pictures need it: pip install 'iomodel[plot]'") from None
    chosen = current()
    picture: Figure = _figure_class()(figsize=chosen.size(width, height), layout="constrained", facecolor="white")
    picture.style = chosen  # type: ignore[attr-defined]
    lines = "\n".join(wrap(title, chosen.letters(80)))
    picture.suptitle(lines, x=0.01, ha="left", fontsize=12, fontweight="bold", color="black", parse_math=False)
    return picture


@cache
def _figure_class() -> Any:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure in the style that it was made in, which notebooks display although pyplot does not know it."""

        style: Style = STYLES["notebook"]
        styled = False
        panels: Mapping[Any, str] = {}
        """Names of the axes, which are above them where the first lines are in the caption."""

        @property
        def caption(self) -> str:
            """The title and the first lines above the axes, as one text."""
            above = [axes.get_title(loc="left") for axes in self.axes]
            return " ".join(". ".join(filter(None, [self.get_suptitle(), *dict.fromkeys(above)])).split())

        def draw(self, renderer: Any) -> None:
            """Draw the figure, in its style."""
            if not self.styled:
                self.styled = True
                _restyle(self, self.style)
            with dark(self) if self.style.dark else nullcontext():
                super().draw(renderer)

        def _repr_png_(self) -> tuple[bytes, dict[str, float]]:
            data = BytesIO()
            self.savefig(data, format="png", dpi=2 * 96)
            return data.getvalue(), {"width": 96 * self.get_figwidth()}  # its size, at twice the resolution

    return Picture


def _restyle(picture: Any, style: Style) -> None:
    """Set the font and the size of all texts of a picture, and leave out what its caption says."""
    from matplotlib.text import Text

    for text in picture.findobj(Text):
        text.set_fontsize(text.get_fontsize() * style.text)
        if style.font is not None:
            text.set_fontfamily(style.font)
    family = {} if style.font is None else {"labelfontfamily": style.font}
    for axes in picture.axes:
        axes.tick_params(labelsize=9 * style.text, **family)
    if not style.title:
        for text in (picture._suptitle, *(axes._left_title for axes in picture.axes)):
            text.set_visible(False)
            text.set_in_layout(False)
        for axes, name in picture.panels.items():
            lines, family = "\n".join(wrap(name, style.letters(80))), {"fontfamily": style.font} if style.font else {}
            axes.annotate(lines, (0, 1), (0, 3), "axes fraction", "offset points", fontsize=9 * style.text, va="bottom",
                          parse_math=False, **family)  # fmt: skip


def drawing(title: str, text: str, height: float = 4.4, width: float = 7.2, *, grid: bool = True) -> tuple[Figure, Any]:
    """Create a figure with one pair of axes, a title, and a few words above the axes."""
    picture = figure(title, width, height)
    axes = picture.add_subplot()
    plain(axes, grid=grid)
    subtitle(axes, text)
    return picture, axes


def subtitle(axes: Any, text: str) -> None:
    """Write a few words above the axes, wrapped to fit."""
    lines = [line for part in text.split("\n") for line in wrap(part, current().letters(108))]
    axes.set_title("\n".join(lines), loc="left", fontsize=9, color=GREY, parse_math=False)


def plain(axes: Any, *, grid: bool = True) -> None:
    """Remove the right and top frame, independent of the user's style."""
    axes.set_facecolor("white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=False, which="both")
    if grid:
        axes.grid(which="major", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9)


def legend(picture: Any, columns: int) -> None:
    """Draw a legend below all axes, wrapped to fit, without interpreting names as formulas."""
    handles, labels = picture.axes[0].get_legend_handles_labels()
    columns = current().columns(columns)
    texts = ["\n".join(wrap(label, current().letters(104) // columns)) for label in labels]
    drawn = picture.legend(
        handles, texts, loc="outside lower center", ncols=columns, markerscale=0.7, fontsize=8, edgecolor=FAINT
    )
    for text in drawn.get_texts():
        text.set_parse_math(False)


def place_ticks(axis: Any, places: Sequence[float], text: Callable[[float], str]) -> None:
    """Place the ticks of an axis, each with its text, and no minor ones."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_locator(NullLocator())


def round_ticks(axis: Any) -> None:
    """Place 1, 2 and 5 times each power of ten on a logarithmic axis, written in full."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
    axis.set_minor_formatter(NullFormatter())


def traffic_ticks(axes: Any) -> None:
    """Place round numbers of bytes in one unit on a logarithmic vertical axis."""
    least, most = axes.get_ylim()
    factor, unit = words.scale(most / 2, "B")
    places = [factor * tick for tick in log_ticks(least / factor, most / factor)]
    place_ticks(axes.yaxis, places, lambda size: f"{size / factor:,.4g}")
    axes.set_ylabel(f"{labels.REQUESTS} [{unit}]", fontsize=10)


def powers_of_two(low: int, high: int) -> list[int]:
    """List at most about ten powers of two, evenly spaced, that span a range."""
    powers = [2**k for k in range(low.bit_length() - 1, high.bit_length() + 1)]
    return powers[:: 1 + len(powers) // 10]


def beside(axes: Any, row: float, text: str, distance: int = 6, **style: Any) -> None:
    """Write a text to the right of a row of the axes."""
    axes.annotate(text, (1, row), xycoords=("axes fraction", "data"), xytext=(distance, 0),
                  textcoords="offset points", va="center", **style)  # fmt: skip


def log_ticks(low: float, high: float) -> list[float]:
    """List round numbers in a range, evenly spaced on a logarithmic axis; at least three if there are as many.

    >>> log_ticks(4.4, 9.1), log_ticks(1, 1000)
    ([5, 6, 7, 8, 9], [1, 10, 100, 1000])
    """
    ticks: list[float] = []
    for parts in ((1,), (1, 2, 5), (1, 2, 3, 4, 5, 6, 7, 8, 9), tuple(part / 10 for part in range(10, 100))):
        powers = range(floor(log10(low)), ceil(log10(high)) + 1)
        ticks = [part * 10**k if k >= 0 else part / 10**-k for k in powers for part in parts]
        ticks = [value for value in ticks if low <= value <= high]
        if len(ticks) >= 3:
            break
    return ticks[:: 1 + len(ticks) // 9]


def save(figure: Figure, path: str | PathLike[str], *, overwrite: bool = True) -> Path:
    """Write a picture to a PNG, SVG, PDF or PGF file.

    Text stays text in SVG and PDF, whose fonts are embedded. PGF is for LaTeX, which must be installed.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A picture of this module, or any other figure.
    path : str or os.PathLike
        Output file; its suffix, .png, .svg, .pdf or .pgf, selects the format.
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    pathlib.Path
        The written file.

    Raises
    ------
    InputError
        The suffix is not supported; the file exists and `overwrite` is False; the path cannot be written; PGF without
        LaTeX.

    Examples
    --------
    >>> save(None, "roofline.gif")
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: out: 'roofline.gif' given; allowed: a file that ends in .png, .svg, .pdf or .pgf
    """
    target = writable(path, overwrite=overwrite)
    if not hasattr(figure, "savefig"):
        raise InputError(f"figure: {shown(figure)} given; allowed: a matplotlib figure, such as those of iomodel.plots")
    form = target.suffix.lower().removeprefix(".")
    # No date, so that files are reproducible; a title for screen readers.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    metadata = None if form == "pgf" else {"Title": " ".join(figure.get_suptitle().split()), **undated}
    return written(target, _encoded(figure, form, metadata), overwrite=overwrite)


def _encoded(figure: Any, form: str, metadata: Any) -> bytes:
    """Return the bytes of a file; raise InputError where LaTeX is needed and missing."""
    import matplotlib

    data = BytesIO()
    with _ENCODING, matplotlib.rc_context(EDITABLE):  # the parameters of matplotlib are global
        try:
            figure.savefig(data, format=form, dpi=DPI, metadata=metadata)
        except RuntimeError as error:
            if form != "pgf":
                raise
            reason = str(error).partition("\n")[0]
            raise InputError(f"out: .pgf needs LaTeX ({reason}); allowed: .pdf, which LaTeX includes too") from None
    return data.getvalue()


def writable(path: str | PathLike[str], *, overwrite: bool) -> Path:
    """Check that a picture may be written to a path, before anything is computed."""
    return output_file.writable(path, SUFFIXES, overwrite=overwrite)
