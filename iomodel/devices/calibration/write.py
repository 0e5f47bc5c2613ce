"""Atomic writing of hardware files."""

from __future__ import annotations

import os
from pathlib import Path

from iomodel.common import output_files
from iomodel.errors import InputError, shown

SUFFIXES = (".yaml", ".yml")


def writable(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Check that a hardware file may be written to a path and return the path, or raise InputError."""
    return output_files.writable(path, SUFFIXES, overwrite=force, switch="force=True")


def write_new(path: str | os.PathLike[str], text: str, *, force: bool = False) -> None:
    """Write a text to a temporary file and rename it, so that an interruption leaves nothing behind."""
    import tempfile

    file = writable(path, force=force)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile("wb", dir=file.parent, prefix=f".{file.name}.", delete=False) as stream:
            temporary = stream.name
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(_mode(file))
        Path(temporary).replace(file)
        temporary = None
    except OSError as error:
        raise InputError(f"output: {shown(str(file))} cannot be written ({error.strerror or error})") from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _mode(file: Path) -> int:
    """Return the permissions of the replaced file, or those of a new file."""
    if file.exists():
        return file.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
