"""Output files: validated before any computation, replaced only on request, with one-line errors."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fsdecode
from os.path import lexists
from pathlib import Path

from iomodel.errors import InputError, shown


def writable(
    path: str | PathLike[str], suffixes: Sequence[str], *, overwrite: bool, switch: str = "overwrite=True"
) -> Path:
    """Check that a file may be written and return its path, or raise InputError.

    `switch` is the argument of the caller that replaces a file, for the message.

    >>> writable("roofline.pdf", (".png", ".svg"), overwrite=False)
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: output: 'roofline.pdf' given; allowed: a file that ends in .png or .svg
    """
    endings = " or ".join(suffixes)
    try:
        target = Path(fsdecode(path))
    except (TypeError, UnicodeError):
        raise InputError(f"output: {shown(path)} given; allowed: the path of a {endings} file") from None
    if "\0" in str(target) or target.suffix.lower() not in suffixes:
        raise InputError(f"output: {shown(str(target))} given; allowed: a file that ends in {endings}")
    if not target.parent.is_dir():
        raise InputError(
            f"output: {shown(str(target))} cannot be written ({target.parent} is not a directory); allowed: a file in "
            "an existing directory"
        )
    try:
        folder, there = target.is_dir(), lexists(target)
    except OSError as error:
        raise InputError(
            f"output: {shown(str(target))} cannot be written ({error.strerror}); allowed: another name"
        ) from None
    if folder or (there and not overwrite):
        kind = "is a directory" if folder else "already exists"
        hint = "" if folder else f", or --force ({switch}) to replace it"
        raise InputError(f"output: {shown(str(target))} {kind}; allowed: another name{hint}")
    return target


def written(target: Path, data: bytes, *, overwrite: bool) -> Path:
    """Write a file checked by `writable`; raise InputError if writing fails."""
    try:
        with target.open("wb" if overwrite else "xb") as file:
            file.write(data)
    except OSError as error:
        raise InputError(
            f"output: {shown(str(target))} cannot be written ({error.strerror}); allowed: a file in a "
            "writable directory"
        ) from None
    return target
