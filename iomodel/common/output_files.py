"""Output files: validated before any computation, replaced only on request, with one-line errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fsdecode
from os.path import lexists
from pathlib import Path
from uuid import uuid4

from iomodel.errors import InputError, shown


def writable(
    path: str | PathLike[str], suffixes: Sequence[str], *, overwrite: bool, switch: str = "overwrite=True"
) -> Path:
    """Check that a file may be written and return its path, or raise InputError.

    `switch` is the argument of the caller that replaces a file, for the message.

    >>> writable("roofline.pdf", (".png", ".svg"), overwrite=False)
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: out: 'roofline.pdf' given; allowed: a file that ends in .png or .svg
    """
    endings = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
    try:
        target = Path(fsdecode(path))
    except (TypeError, UnicodeError):
        raise InputError(f"out: {shown(path)} given; allowed: the path of a {endings} file") from None
    if "\0" in str(target) or target.suffix.lower() not in suffixes:
        raise InputError(f"out: {shown(str(target))} given; allowed: a file that ends in {endings}")
    if not target.parent.is_dir():
        raise InputError(
            f"out: {shown(str(target))} cannot be written ({target.parent} is not a directory); allowed: a file in "
            "an existing directory"
        )
    try:
        folder, there = target.is_dir(), lexists(target)
    except OSError as error:
        raise InputError(
            f"out: {shown(str(target))} cannot be written ({error.strerror}); allowed: another name"
        ) from None
    if folder or (there and not overwrite):
        kind = "is a directory" if folder else "already exists"
        hint = "" if folder else f", or --force ({switch}) to replace it"
        raise InputError(f"out: {shown(str(target))} {kind}; allowed: another name{hint}")
    return target


@contextmanager
def in_one_step(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a hidden file to write, which replaces the target when it is complete.

    If writing fails, an existing file stays and no partial file remains. A device is written as it is.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    if not overwrite:
        target.touch(exist_ok=False)  # the name is taken from here on
    hidden = target.with_name(f".{uuid4().hex}.partial")
    try:
        yield hidden
        if target.is_file() and overwrite:
            hidden.chmod(target.stat().st_mode & 0o777)
        hidden.replace(target.resolve())
    except BaseException:
        hidden.unlink(missing_ok=True)
        if not overwrite:
            target.unlink(missing_ok=True)
        raise


def written(target: Path, data: bytes, *, overwrite: bool) -> Path:
    """Write a file checked by `writable` in one step; raise InputError if writing fails."""
    try:
        with in_one_step(target, overwrite=overwrite) as file:
            file.write_bytes(data)
    except OSError as error:
        raise InputError(
            f"out: {shown(str(target))} cannot be written ({error.strerror}); allowed: a file in a writable directory"
        ) from None
    return target
