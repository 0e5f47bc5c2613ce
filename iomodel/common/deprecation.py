"""Warnings of names and arguments that have a new spelling."""

from __future__ import annotations

from warnings import warn

SINCE, REMOVED = "0.1", "0.3"
"""The release that renames, and the one that removes the old spelling (docs/embedding.md, Stability)."""


def warn_renamed(old: str, new: str, depth: int = 1) -> None:
    """Warn of an old spelling at the line that called the function `depth` calls above this one."""
    text = f"iomodel.{old}: deprecated since {SINCE}, removed in {REMOVED}; use {new}"
    warn(text, DeprecationWarning, stacklevel=depth + 2)
