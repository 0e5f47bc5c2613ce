"""Everything of Triton that a count changes for its time."""

from __future__ import annotations

from typing import Any

import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction, KernelInterface

from tests.triton import kernels


def state() -> list[dict[str, Any]]:
    """Everything that the interpreter patches."""
    homes: tuple[Any, ...] = (
        tl, tl.core, tl.math, tl.tensor, tl.dtype, tl.condition, tl.core.tensor_descriptor_base, JITFunction,
        interpreter.InterpretedFunction, KernelInterface, interpreter, kernels,
    )  # fmt: skip
    return [{name: value for name, value in vars(home).items() if name != "__annotations__"} for home in homes]
