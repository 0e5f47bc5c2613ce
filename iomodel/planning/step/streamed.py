"""Kernels without a declared loop nest, timed from the bytes and FLOPs that are counted for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from iomodel.devices.rates import rates
from iomodel.nests.execution import PIPELINED
from iomodel.timing.kernel_time import Launched, Setting, kernel_time
from iomodel.timing.kernel_work import KernelWork, MatrixWork, TensorTraffic
from iomodel.timing.layer_clock import LayerClock
from iomodel.timing.span import Span, span_of

TILE = 64
"""Extent of a matrix product of such a kernel along each axis [rows]."""


class StreamSetting(Protocol):
    """The timer and the type of activations of the caller, such as a step."""

    @property
    def clock(self) -> LayerClock:
        """Timer of the device."""

    @property
    def dtype(self) -> str:
        """Type of the activations."""


def streamed(
    at: StreamSetting,
    title: str,
    tensors: Mapping[str, int],
    flops: int,
    blocks: int,
    matrix: bool = True,
    dram: int | None = None,
) -> Span:
    """Time a kernel that moves each tensor once, in one launch.

    Parameters
    ----------
    at : StreamSetting
        Settings of the step.
    title : str
        Name of the kernel.
    tensors : mapping of str to int
        Bytes of each tensor read or written, by name [B].
    flops : int
        Useful FLOPs [FLOP].
    blocks : int
        Thread blocks [-].
    matrix : bool
        The FLOPs are those of matrix instructions; otherwise they are reported, and hidden behind the bytes.
    dram : int, optional
        DRAM traffic, if some of the bytes are in the L2 [B].
    """
    runs = -(-flops // (2 * TILE**3)) if matrix else 0
    work = KernelWork(
        title=title,
        products=(MatrixWork(runs, ("query", "key", "dim"), (TILE, TILE, TILE)),) if runs else (),
        exps=0,
        scores=0,
        gradients=0,
        randoms=0,
        staged=0,
        atomic_bytes=0,
        moved=tuple(TensorTraffic(name, size, size, 1, False) for name, size in tensors.items() if size),
        blocks=max(1, blocks),
        trips=runs,
        outer=None,
        inner=None,
        parts=1,
        streamed=sum(tensors.values()) if dram is None else dram,
    )
    known = rates(at.clock.device, at.dtype)
    timed = kernel_time(work, Setting(known, PIPELINED, at.clock.parameters), Launched())
    return span_of([timed], flops)
