"""Files of users that are read to their end."""

from __future__ import annotations

import os
from errno import EFBIG, EINVAL, EISDIR
from pathlib import Path


def readable(path: str | os.PathLike[str], largest: int | None = None) -> Path:
    """Return the path of a regular file, or raise OSError: pipes and devices may never end, nor be read twice.

    A file of more than `largest` bytes is refused too.
    """
    file = Path(path)
    if file.is_dir():
        raise OSError(EISDIR, "is a directory")
    if file.exists() and not file.is_file():
        raise OSError(EINVAL, "not a regular file")
    if largest is not None and file.stat().st_size > largest:
        raise OSError(EFBIG, f"{file.stat().st_size:,} B exceed the limit of {largest:,} B")
    return file
