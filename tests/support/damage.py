"""Damage to the content of files, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st


def damaged(data: Any, content: bytes, span: int, pieces: Sequence[bytes], longest: int = 12) -> bytes:
    """Replace one to four spans of a content by bytes at random, or by one of some pieces, drawn by Hypothesis."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(changed)))
        end = data.draw(st.integers(start, min(len(changed), start + span)))
        changed[start:end] = data.draw(st.binary(max_size=longest) | st.sampled_from(pieces))
    return bytes(changed)


def damaged_by(rng: Random, content: bytes, span: int, pieces: Sequence[bytes], longest: int = 12) -> bytes:
    """Do the same with a generator of random numbers, or cut the content, repeat a span, change a bit or overwrite."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(changed))
        end = rng.randint(start, min(len(changed), start + span))
        kind = rng.random()
        if kind < 0.05:
            del changed[start:]
        elif kind < 0.15:
            changed[start:start] = changed[start:end] * rng.randint(1, 3)
        elif kind < 0.4 and start < len(changed):
            changed[start] ^= 1 << rng.randrange(8)
        elif kind < 0.6:
            changed[start : start + longest] = rng.randbytes(len(changed[start : start + longest]))
        else:
            changed[start:end] = rng.choice(pieces) if rng.random() < 0.5 else rng.randbytes(rng.randint(0, longest))
    return bytes(changed)
