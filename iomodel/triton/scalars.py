"""Scalars that a compiled kernel has where Triton's interpreter would have numbers of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def number(value: float) -> Any:
    """Make the fp32 scalar that a compiled kernel takes for a number with a fraction."""
    from triton import language as tl
    from triton.runtime.interpreter import TensorHandle

    return tl.tensor(TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)


class LoopIndex(int):
    """The variable of a loop: an integer that can be converted, as a scalar of the language can."""

    def to(self, dtype: Any, **_: Any) -> Any:
        """Convert to a scalar of a type."""
        from triton.runtime import interpreter

        return interpreter.interpreter_semantic.to_tensor(int(self)).to(dtype)


def indices(*bounds: Any, **hints: Any) -> Iterator[LoopIndex]:
    """Walk a range of Python or of the language; hints to the compiler are left out."""
    named = [hints[name] for name in ("arg1", "arg2", "step") if hints.get(name) is not None]
    return map(LoopIndex, range(*(int(bound) for bound in (*bounds, *named) if bound is not None)))
