"""Counts of the traffic of unmodified Triton kernels, run by Triton's interpreter on the CPU."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from traceback import extract_tb
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.errors import InputError, IOModelError, shown
from iomodel.triton.kernel_count import KernelCount

LONGEST = 300
"""Longest reason of the interpreter that is passed on [characters]."""
Grid = int | Sequence[int] | Callable[[Mapping[str, Any]], int | Sequence[int]]


@strict
def count(
    kernel: Any, grid: Grid, args: Sequence[Any] | Mapping[str, Any], meta: Mapping[str, Any] | None = None
) -> KernelCount:
    """Run a Triton kernel on the CPU and count what it loads, stores and computes.

    The kernel is not changed and needs no GPU: its programs run one after the other in Triton's own interpreter, with
    or without `TRITON_INTERPRET`. Its outputs are written to the arguments; if it fails, their content is put back.

    Parameters
    ----------
    kernel : function under `triton.jit`
        Also under `triton.autotune` or `triton.heuristics`. Of an autotuned kernel the first config gives the
        compile-time arguments that `args` and `meta` leave open.
    grid : int, sequence of int, or function
        Programs along up to three axes [-]; a function takes the arguments by name.
    args : sequence, or mapping by name
        Arguments of the kernel. Tensors are NumPy arrays or PyTorch tensors on the CPU; host-side tensor descriptors
        of such tensors are accepted.
    meta : mapping of str to value, optional
        Compile-time arguments: ``{"BLOCK_M": 64}``; launch options such as `num_warps` change no count.

    Returns
    -------
    KernelCount

    Raises
    ------
    InputError
        Triton is not installed, or of a version whose interpreter is not known; a wrong argument; the kernel accesses
        an address outside its tensors; the interpreter refuses the kernel.

    Notes
    -----
    An element counts if its mask is true and its index lies inside the shape of its block pointer or descriptor. An
    element of a block loaded twice counts twice, as in :func:`iomodel.cost`. Arguments that share memory are
    distinguished by the pointer from which an address was computed. One count runs at a time in a process.

    Examples
    --------
    >>> import numpy as np
    >>> from iomodel.devices.calibration.kernels import kernel, read  # sums of blocks, one result a program
    >>> x, sums = np.ones(20, np.float32), np.empty(2, np.float32)
    >>> counted = count(kernel(read), 2, [x, sums, 5], {"BLOCK": 4})
    >>> dict(counted.reads), dict(counted.writes), float(sums.sum())
    ({'X': 20}, {'SUMS': 2}, 20.0)
    """
    launched = _launch(kernel, grid, args, meta)
    from iomodel.triton.counting_builder import counting_builder
    from iomodel.triton.interpreter_patches import interpreted
    from iomodel.triton.kernel_arguments import converted
    from iomodel.triton.kernel_memory import KernelMemory

    memory, counts = KernelMemory(), Counter[str]()
    builder = counting_builder(memory, counts)
    with interpreted(builder, counts) as runnable, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about infinities that the masks of kernels make
        arguments = converted(launched, memory)
        with memory.restored_on_error():
            _run(launched.name, runnable(launched.function), builder, launched.grid, arguments)
    return KernelCount(
        launched.name,
        launched.grid,
        FrozenDict(launched.meta),
        memory.counts(),
        counts["dots"],
        counts["flops"],
        counts["exps"],
    )


def _launch(kernel: Any, grid: Any, args: Any, meta: Any) -> Any:
    try:
        from triton.runtime import interpreter
    except ImportError:
        raise InputError("triton: not installed; pip install 'iomodel[triton]'") from None
    needed = ("_LangPatchScope", "_patch_lang_core", "FunctionRewriter", "_InterpreterComparison", "TensorHandle")
    if not all(hasattr(interpreter, name) for name in needed):
        from triton import __version__

        raise InputError(f"triton: version {__version__} installed; allowed: 3.9 or later")
    from iomodel.triton.kernel_launch import launch

    return launch(kernel, grid, args, meta)


def _run(name: str, function: Any, builder: Any, grid: tuple[int, int, int], arguments: Mapping[str, Any]) -> None:
    """Run all programs; raise InputError of one line for whatever the interpreter raises."""
    builder.set_grid_dim(*grid)
    for program in product(*map(range, grid)):
        builder.set_grid_idx(*program)
        try:
            function(**arguments)
        except IOModelError:
            raise
        except Exception as error:
            reason = _asserted(error) if isinstance(error, AssertionError) else shown(error, limit=LONGEST)
            raise InputError(f"kernel: {name} is refused by Triton's interpreter in program {program}: {reason}") from (
                error
            )


def _asserted(error: AssertionError) -> str:
    """Name the line of a failed `static_assert`, with its message."""
    frames = [frame for frame in extract_tb(error.__traceback__) if "static_assert" in (frame.line or "")]
    place = f"line {frames[-1].lineno}, {frames[-1].line}" if frames else "static_assert"
    return " ".join(f"{place} fails{f': {error}' if str(error) else ''}".split())


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
