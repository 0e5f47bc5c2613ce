"""Interactive page of the formulas for a browser: one self-contained HTML file."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import overload

from iomodel.algorithms import algorithm, list_algorithms
from iomodel.common.output_files import writable, written
from iomodel.devices.device import hardware as find_hardware
from iomodel.devices.device import list_hardware
from iomodel.errors import InputError, shown
from iomodel.explorer.built import shipped_algorithms, whole_page

SUFFIXES = (".html", ".htm")


@overload
def explore(
    path: None = None,
    *,
    algorithms: Sequence[str] | None = None,
    hardware: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> str: ...
@overload
def explore(
    path: str | PathLike[str],
    *,
    algorithms: Sequence[str] | None = None,
    hardware: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Path: ...
def explore(
    path: str | PathLike[str] | None = None,
    *,
    algorithms: Sequence[str] | None = None,
    hardware: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Path | str:
    """Make a page to explore the calls of some algorithms: counts, tiles, bounds, roofline, loops.

    The page evaluates the formulas of :func:`iomodel.expressions` with exact integers and solves for tiles as
    :func:`iomodel.solve` does. It is one file that loads nothing from the network; its link encodes all choices.
    A release carries the page of all algorithms and devices; elsewhere the command `iomodel explore` keeps it.

    Parameters
    ----------
    path : str or path-like, optional
        The file to write, which ends in .html; by default the page is returned as a string.
    algorithms : sequence of str, optional
        Algorithms on the page; by default all of :func:`iomodel.list_algorithms`.
    hardware : sequence of str, optional
        Devices, by name or as YAML files; by default all of :func:`iomodel.list_hardware`.
    overwrite : bool
        Replace an existing file.
    progress : bool
        Draw a progress bar on stderr, if it is a terminal.

    Returns
    -------
    Path or str
        The written file, or the page itself.

    Raises
    ------
    InputError, UnknownNameError, SpecError
        The list of algorithms or devices is empty; a name is unknown; the file exists already or cannot be written.

    Examples
    --------
    >>> import iomodel
    >>> page = iomodel.explorer.explore(algorithms=["tiled_query"], hardware=["h100-sxm5"])
    >>> page.startswith("<!doctype html>"), len(page) < 3_000_000
    (True, True)
    """
    names = _several("algorithms", algorithms, list_algorithms())
    devices = _several("hardware", hardware, list_hardware())
    for name in names:
        algorithm(name)
    for device in devices:
        find_hardware(device)
    target = None if path is None else writable(path, SUFFIXES, overwrite=overwrite)
    if names == shipped_algorithms() and devices == list_hardware():
        html = whole_page(progress)
    else:
        html = built(names, devices, progress, serving=algorithms is None and hardware is None)
    if target is None:
        return html
    return written(target, html.encode(), overwrite=overwrite)


def built(algorithms: Sequence[str], hardware: Sequence[str], progress: bool = False, *, serving: bool = False) -> str:
    """Build a page, with or without plans."""
    from iomodel.explorer.page import page  # all formulas, which no other question needs
    from iomodel.explorer.payload import payload
    from iomodel.explorer.serving import ServingGrid

    grid = ServingGrid() if serving else None
    with _without_collection():
        return page(payload(algorithms, hardware, progress, grid=grid))


@contextmanager
def _without_collection() -> Iterator[None]:
    """Suspend the cyclic garbage collector, which would scan the formulas of the page again and again: all stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _several(field: str, names: Sequence[str] | None, every: list[str]) -> list[str]:
    if names is None:
        return every
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InputError(f"{field}: {shown(names)} given; allowed: a list of names, such as {every[:1]}")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{field}: {shown(name)} given; allowed: names, such as {every[:1]}")
    return list(dict.fromkeys(names))
