"""Hypothesis, or one line that says how to install it."""

from __future__ import annotations

from iomodel.errors import InputError

try:
    from hypothesis import strategies as st
except ImportError:
    raise InputError(
        "hypothesis: not installed, and strategies need it; allowed: after pip install 'iomodel[testing]'"
    ) from None

__all__ = ["st"]
