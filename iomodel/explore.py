"""A page that explores the formulas in a browser: one HTML file, which needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import overload

from iomodel.algorithms import algorithm, list_algorithms
from iomodel.errors import InputError, shown
from iomodel.hardware import hardware as find_hardware
from iomodel.hardware import list_hardware
from iomodel.output_file import writable, written

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
    """Make a page in which every call of some algorithms can be looked at: counts, tiles, bounds, roofline, loops.

    The page evaluates the formulas of :func:`iomodel.expressions` with exact integers and solves for tiles as
    :func:`iomodel.solve` does. It is one file that fetches nothing; a link to it holds all that was chosen.

    Parameters
    ----------
    path : str or path-like, optional
        The file to write, which ends in .html; the page is returned as text if not given.
    algorithms : sequence of str, optional
        Those that the page knows: all of :func:`iomodel.list_algorithms` if not given.
    hardware : sequence of str, optional
        Devices, by name or as YAML files: all of :func:`iomodel.list_hardware` if not given.
    overwrite : bool
        Whether a file that is there is replaced.
    progress : bool
        Draw a progress bar on stderr, if that is a terminal.

    Returns
    -------
    Path or str
        The file that was written, or the page itself.

    Raises
    ------
    InputError, UnknownNameError, SpecError
        No algorithm or device; an unknown one; a file that cannot be written or is there already.

    Examples
    --------
    >>> import iomodel
    >>> page = iomodel.explore(algorithms=["tiled_query"], hardware=["h100-sxm5"])
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
    from iomodel.explorer.page import page  # all formulas, which no other question needs
    from iomodel.explorer.payload import payload

    html = page(payload(names, devices, progress))
    if target is None:
        return html
    return written(target, html.encode(), overwrite=overwrite)


def _several(field: str, given: Sequence[str] | None, every: list[str]) -> list[str]:
    if given is None:
        return every
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise InputError(f"{field}: {shown(given)} given; allowed: a list of names, such as {every[:1]}")
    for one in given:
        if not isinstance(one, str):
            raise InputError(f"{field}: {shown(one)} given; allowed: names, such as {every[:1]}")
    return list(dict.fromkeys(given))
