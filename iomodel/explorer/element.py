"""Custom element that shows panels of the explorer in another page, and the widget of a notebook that holds one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from iomodel.common.output_files import writable, written
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.explorer.link import link
from iomodel.explorer.page import static
from iomodel.solving.solution import Solution
from iomodel.timing.estimate_result import Estimate
from iomodel.workloads.attention import Attention

PANELS = (
    "scene", "answer", "call", "time", "traffic", "footprint", "map", "animation", "roofline", "counts", "formulas",
)  # fmt: skip
"""Names of the panels of the page, as the element's attribute ``show`` lists them."""
LAUNCH = frozenset({"warps", "stages"})
"""Choices that the page makes itself."""


def element(path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write the script of the custom element ``<iomodel-call>``, which shows panels of a page of :func:`explore`.

    Its attributes are ``src``, the address of the page; ``call``, the part of a link after ``#``; and ``show``, names
    of :data:`PANELS` with commas between them. Its event ``call`` tells of each call that a reader chooses.

    Parameters
    ----------
    path : str or path-like
        The file to write, which ends in .js.
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    InputError
        The file exists already or cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     print(element(f"{folder}/iomodel-call.js").name)
    iomodel-call.js
    """
    target = writable(path, (".js",), overwrite=overwrite)
    return written(target, static("element.js").encode(), overwrite=overwrite)


def call_of(answer: Estimate | Solution) -> str:
    """Return the link to the call of an answer, with its tiles, kernels and options.

    >>> import iomodel
    >>> w = iomodel.Attention(heads=32, q_len=8192, head_dim=128, mask="causal")
    >>> call_of(iomodel.estimate("flash2", w, "a100-sxm4-80gb", {"block_q": 128, "block_kv": 64}))  # doctest: +ELLIPSIS
    'algorithm=flash2&hardware=a100-sxm4-80gb&kv_heads=32&q_len=8192&mask=causal&implementation=...&block_kv=64'
    """
    if not isinstance(answer, Estimate | Solution):
        raise InputError(f"answer: {shown(answer)} given; allowed: an Estimate or a Solution")
    device, cost = answer.hardware, answer.cost
    if device is None or device.id is None or not isinstance(cost.workload, Attention):
        raise InputError("answer: given without a shipped device or an Attention; allowed: one with both")
    tiles = {name: size for name, size in answer.tiles.items() if name not in LAUNCH | cost.options.keys()}
    kernels = None if "+" in answer.implementation else answer.implementation
    return link(answer.algorithm, cost.workload, device.id, tiles, kernels, **cost.options)


def widget(answer: Estimate | Solution, show: Sequence[str] = ("time", "animation")) -> Any:
    """Make a widget that shows panels of the explorer in a notebook, and follows an answer of the library.

    It needs the extra `notebook` (anywidget). Its method ``follow`` takes another answer; its trait ``call`` is the
    link to the call that is shown, also after a reader has chosen another one.

    Parameters
    ----------
    answer : Estimate or Solution
        An answer of :func:`iomodel.estimate` or :func:`iomodel.solve`, for an Attention on a shipped device.
    show : sequence of str
        Names of :data:`PANELS`.

    Raises
    ------
    InputError, UnknownNameError
        The page does not have the call or the panel; anywidget is missing.
    """
    try:
        made = _widget_class()
    except ImportError:
        raise InputError(
            "widget: anywidget is not installed; allowed: after `pip install 'iomodel[notebook]'`"
        ) from None
    if isinstance(show, str) or not isinstance(show, Sequence) or not show:
        raise InputError(f"show: {shown(show)} given; allowed: a list of names, such as {list(PANELS[:1])}")
    for name in show:
        if name not in PANELS:
            raise UnknownNameError("show", name, list(PANELS))
    from iomodel.explorer.built import whole_page  # all formulas

    return made(page=whole_page(), call=call_of(answer), show=",".join(show))


@cache
def _widget_class() -> Any:
    """Define the class of widgets, at the first use: anywidget takes a second to import."""
    import anywidget
    import traitlets

    class CallWidget(anywidget.AnyWidget):
        """Panels of the explorer in a notebook."""

        _esm = f"{static('element.js')}\n{static('widget.js')}"
        page = traitlets.Unicode().tag(sync=True)
        call = traitlets.Unicode().tag(sync=True)
        show = traitlets.Unicode().tag(sync=True)

        def follow(self, answer: Estimate | Solution) -> None:
            """Show the call of another answer."""
            self.call = call_of(answer)

    return CallWidget
