"""What a calibration needs of a device: facts about it, calls to run on it, a clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from iomodel.calibration.experiments import Experiment

Run = Callable[[int], float]
"""Runs so many calls back to back and says how long the device took for all of them [s]."""


@dataclass(frozen=True)
class Facts:
    """What the driver says of a device.

    Parameters
    ----------
    name, vendor, architecture, capability : what it is called: "NVIDIA H200", "NVIDIA", "sm_90", "9.0".
    units : SMs [-].
    memory, memory_free, l2_bytes : all of it, what is free now, and the L2 cache, if the driver tells it [B].
    sram_per_block, sram_per_block_static, sram_per_sm : shared memory [B]; None where the driver does not say.
    hbm_bandwidth, clock : what memory clock and bus width make [B/s], and the highest clock of an SM [Hz].
    registers_per_sm, threads_per_sm, threads_per_block, warp_size : likewise [-].
    driver, software : versions.
    triton : whether Triton is there to compile kernels.
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


class Device(Protocol):
    """A device that runs experiments; the tests have one whose calls take a known time."""

    @property
    def facts(self) -> Facts:
        """What the driver says of it."""

    def load(self, experiment: Experiment) -> AbstractContextManager[Run]:
        """Allocate an experiment's buffers; any exception here or in a run means that it failed."""

    def now(self) -> float:
        """A clock of the host that only goes forward [s]."""
