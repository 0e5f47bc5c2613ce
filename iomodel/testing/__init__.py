"""Property tests of the traffic of your own kernel against iomodel's predictions.

:class:`Machine` is a counting memory for kernels written in NumPy; :func:`workloads`, :func:`tiles`, :func:`masks`,
:func:`algorithms`, :func:`hardware` and :func:`kernel_calls` are Hypothesis strategies for test inputs;
:func:`assert_traffic` compares the counts with :func:`iomodel.cost`. Every name is imported on first use: the memory
loads no formula, and only the strategies load Hypothesis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iomodel.testing.drawn_kernels import KernelCall, kernel_calls
    from iomodel.testing.hbm import HBM
    from iomodel.testing.machine import Machine
    from iomodel.testing.run import Run
    from iomodel.testing.sram import SRAM, SRAMOverflowError
    from iomodel.testing.strategies import algorithms, hardware, masks, tiles, workloads
    from iomodel.testing.traffic import assert_traffic

__all__ = [
    "HBM",
    "SRAM",
    "KernelCall",
    "Machine",
    "Run",
    "SRAMOverflowError",
    "algorithms",
    "assert_traffic",
    "hardware",
    "kernel_calls",
    "masks",
    "tiles",
    "workloads",
]

_HOMES = {
    "assert_traffic": "traffic",
    **dict.fromkeys(("KernelCall", "kernel_calls"), "drawn_kernels"),
    **dict.fromkeys(("algorithms", "hardware", "masks", "tiles", "workloads"), "strategies"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'machine')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
