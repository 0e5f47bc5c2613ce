"""Atomic writing of hardware files."""

from __future__ import annotations

import os
from pathlib import Path

from iomodel.errors import InputError, shown


def writable(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Check that a hardware file may be written to a path and return the path, or raise InputError."""
    try:
        name = os.fsdecode(path)
        if "\0" in name:
            raise ValueError
        file = Path(name)
        there, folder = os.path.lexists(file), file.parent.is_dir()
    except (TypeError, ValueError):
        raise InputError(f"output: {shown(path)} given; allowed: the path of a file, such as my-gpu.yaml") from None
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"output: {shown(name)} given; allowed: a file that ends in .yaml, such as my-gpu.yaml")
    if not folder:
        raise InputError(f"output: {shown(name)} given; its folder does not exist")
    if there and not (force and file.is_file()):
        hint = "allowed with --force (force=True)" if file.is_file() else "allowed: a file"
        raise InputError(f"output: {shown(name)} already exists; {hint}")
    return file


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
