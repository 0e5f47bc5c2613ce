"""Triton's forward kernel on AMD, which has a layout as an implementation and no rules of its compiler."""

from __future__ import annotations

from typing import Any

from iomodel.devices.device import Hardware
from iomodel.placement.implementations import list_implementations
from iomodel.placement.triton_check import TritonCheck
from iomodel.studies.check import check
from iomodel.studies.estimate import estimate
from iomodel.triton.seconds import described_by
from iomodel.workloads.attention import Attention

AMD = "triton-amd"
"""The implementation that is Triton's forward kernel on AMD."""
MEMORY = "shared memory"


def on_amd(device: Hardware, workload: Attention, kernel: object) -> bool:
    """Check that a device runs the forward kernel whose layout on AMD is declared as an implementation."""
    if kernel != "forward" or device.compute_capability:
        return False
    return AMD in list_implementations(described_by("forward"), device, workload)


def amd_check(device: Hardware, workload: Attention, tile: tuple[int, ...], warps: int, stages: int) -> TritonCheck:
    """Check the memory of a config; a config that takes too many registers can be launched and spills."""
    answer = check(described_by("forward"), workload, device, _tiles(tile, warps, stages), AMD)
    used = answer.resources
    shared, registers = used[MEMORY], used["registers"]
    spills = registers.used > registers.limit
    return TritonCheck(
        shared.used <= shared.limit, shared.used, shared.limit, 0, 0, "mfma", registers.used, spills,
        spilled=float(max(0, registers.used - registers.limit)),
    )  # fmt: skip


def amd_seconds(device: Hardware, workload: Attention, tile: tuple[int, ...], warps: int, stages: int) -> float:
    """Estimate the time of a config; InfeasibleError for one that spills, whose time is not told [s]."""
    return float(
        estimate(described_by("forward"), workload, device, _tiles(tile, warps, stages), implementation=AMD).seconds
    )


def _tiles(tile: tuple[int, ...], warps: int, stages: int) -> dict[str, Any]:
    return {"block_q": tile[0], "block_kv": tile[1], "warps": warps, "stages": stages}
