"""Warnings of names and arguments that have a new spelling."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from warnings import warn

SINCE, REMOVED = "0.1", "0.3"
"""The release that renames, and the one that removes the old spelling (docs/embedding.md, Stability)."""
PACKAGE = str(Path(__file__).parents[1])


def warn_renamed(old: str, new: str) -> None:
    """Warn of an old spelling at the nearest line outside this package that led to its use."""
    text = f"iomodel.{old}: deprecated since {SINCE}, removed in {REMOVED}; use {new}"
    warn(text, DeprecationWarning, stacklevel=_calls_within() + 1)


def _calls_within() -> int:
    """Count the calls of this package above the line outside it, without those of Python's own imports."""
    frame: FrameType | None = sys._getframe(1)
    calls = 0
    while frame is not None and (frame.f_code.co_filename.startswith(PACKAGE) or _of_imports(frame)):
        calls += not _of_imports(frame)
        frame = frame.f_back
    return calls


def _of_imports(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return "importlib" in name and "_bootstrap" in name
