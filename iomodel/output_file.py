"""Files that a call writes: looked at before anything is computed, never replaced unasked, errors in one line."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from iomodel.errors import InputError, shown


def writable(path: str | PathLike[str], suffixes: Sequence[str], *, overwrite: bool) -> Path:
    """The file that something may be written to; InputError says what is wrong with it.

    >>> writable("roofline.pdf", (".png", ".svg"), overwrite=False)
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: output: 'roofline.pdf' given; allowed: a file that ends in .png or .svg
    """
    endings = " or ".join(suffixes)
    try:
        target = Path(fspath(path))
    except Exception:  # whatever an object of the caller's raises when it is asked for its path
        raise InputError(f"output: {shown(path)} given; allowed: the path of a {endings} file") from None
    if "\0" in str(target) or target.suffix.lower() not in suffixes:
        raise InputError(f"output: {shown(str(target))} given; allowed: a file that ends in {endings}")
    if not target.parent.is_dir():
        raise InputError(
            f"output: {shown(str(target))} cannot be written ({target.parent} is no directory); allowed: a file in a "
            "directory that is there"
        )
    try:
        folder, there = target.is_dir(), target.exists()
    except OSError as error:
        raise InputError(
            f"output: {shown(str(target))} cannot be written ({error.strerror}); allowed: another name"
        ) from None
    if folder or (there and not overwrite):
        kind = "is a directory" if folder else "is there already"
        hint = "" if folder else ", or --force (overwrite=True) to replace it"
        raise InputError(f"output: {shown(str(target))} {kind}; allowed: another name{hint}")
    return target


def written(target: Path, data: bytes, *, overwrite: bool) -> Path:
    """Write a file that was found writable; InputError where it is not after all."""
    try:
        with target.open("wb" if overwrite else "xb") as file:
            file.write(data)
    except OSError as error:
        raise InputError(
            f"output: {shown(str(target))} cannot be written ({error.strerror}); allowed: a file in a directory that "
            "is there and may be written to"
        ) from None
    return target
