"""Counts of every Triton kernel that a piece of Python launches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from iomodel.errors import InputError
from iomodel.triton.kernel_count import KernelCount
from iomodel.triton.kernel_counter import count


@contextmanager
def launches() -> Iterator[list[KernelCount]]:
    """Count the kernels that a wrapper launches as ``kernel[grid](...)``, on the CPU, instead of compiling them.

    Inside the ``with`` block each launch runs as by :func:`iomodel.triton.count`, and its result is appended to the
    list, also from a backward pass of autograd. The wrapper is not changed; what it asks about a GPU it still asks.

    Raises
    ------
    InputError
        Triton is not installed; a launch raises what :func:`iomodel.triton.count` raises.
    """
    try:
        from triton.runtime.jit import KernelInterface
    except ImportError:
        raise InputError("triton: not installed; pip install 'iomodel[triton]'") from None
    counts: list[KernelCount] = []
    launched = KernelInterface.__getitem__

    def launch(kernel: Any, grid: Any) -> Any:
        return lambda *args, **options: counts.append(count(kernel, grid, args, options))

    KernelInterface.__getitem__ = launch
    try:
        yield counts
    finally:
        KernelInterface.__getitem__ = launched
