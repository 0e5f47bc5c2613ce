"""Interface of a device under calibration: facts, calls and a clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from iomodel.devices.calibration.experiments import Experiment

Run = Callable[[int], float]
"""Runs a number of calls back to back and returns the device time of all of them [s]."""


@dataclass(frozen=True)
class Facts:
    """Facts that the driver reports about one device.

    Parameters
    ----------
    name, vendor, architecture, capability : identification: "NVIDIA H200", "NVIDIA", "sm_90", "9.0".
    units : SMs [-].
    memory, memory_free, l2_bytes : total memory, free memory, and the L2 cache, if reported [B].
    sram_per_block, sram_per_block_static, sram_per_sm : shared memory [B]; None if not reported.
    hbm_bandwidth, clock : memory clock times bus width [B/s], and the highest clock of an SM [Hz].
    registers_per_sm, threads_per_sm, threads_per_block, warp_size : limits [-].
    driver, software : versions.
    triton : True if Triton is installed to compile kernels.
    """

    name: str
    units: int
    memory: int
    memory_free: int
    l2_bytes: int | None = None
    vendor: str | None = None
    architecture: str | None = None
    capability: str | None = None
    sram_per_block: int | None = None
    sram_per_block_static: int | None = None
    sram_per_sm: int | None = None
    hbm_bandwidth: int | None = None
    clock: int | None = None
    registers_per_sm: int | None = None
    threads_per_sm: int | None = None
    threads_per_block: int | None = None
    warp_size: int | None = None
    driver: str | None = None
    software: str | None = None
    triton: bool = False


class CalibrationDevice(Protocol):
    """A device that runs experiments; the tests provide a device whose calls take a known time."""

    @property
    def facts(self) -> Facts:
        """Facts reported by the driver."""

    def load(self, experiment: Experiment) -> AbstractContextManager[Run]:
        """Allocate an experiment's buffers; any exception here or in a run marks the experiment as failed."""

    def now(self) -> float:
        """Read a monotonic clock of the host [s]."""
