"""Import of Hypothesis, with a one-line error if it is not installed."""

from __future__ import annotations

from iomodel.errors import InputError

try:
    from hypothesis import strategies as st
except ImportError:
    raise InputError("hypothesis: not installed; strategies need it: pip install 'iomodel[testing]'") from None

__all__ = ["st"]
