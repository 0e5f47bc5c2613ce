"""Damage to the content of files, drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st


def damaged(data: Any, content: bytes, span: int, pieces: Sequence[bytes], longest: int = 12) -> bytes:
    """Replace one to four spans of a content by bytes at random, or by one of some pieces."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(changed)))
        end = data.draw(st.integers(start, min(len(changed), start + span)))
        changed[start:end] = data.draw(st.binary(max_size=longest) | st.sampled_from(pieces))
    return bytes(changed)
