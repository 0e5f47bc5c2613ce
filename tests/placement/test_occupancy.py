"""Laws of the blocks that share an SM: what they take together is there, in whole granules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.placement.implementations import implementation_for
from iomodel.placement.limits import COLUMN, _allocated, device_of
from iomodel.placement.placement import Placement, placements
from tests.support.inside import as_device, kind_of, memory_levels

W = iomodel.Attention(heads=4, q_len=1024, head_dim=128)
OPTIONS = {"lse": True, "packed": False}
PLACES = [("flash2", "a100-sxm4-80gb"), ("flash3", "h100-sxm5"), ("flash2", "b200")]


def placed(name: str, device: str, implementation: str | None = None) -> Placement:
    gpu = as_device(device)
    kernels = implementation_for(name, W, gpu, implementation)
    return placements(algorithm(name), W, gpu, kernels, OPTIONS, kind_of(W))[0]


@pytest.mark.parametrize(("name", "device"), PLACES)
def test_blocks_take_no_more_than_an_sm_has(name: str, device: str) -> None:
    placement = placed(name, device)
    limits, residency = placement.device, placement.residency
    granule = limits.register_granularity // limits.warp
    for warps in residency.warps:
        most = placement.registers_limit(warps)
        for registers in range(1, most + 1):
            for shared in (1, limits.shared_granularity + 1, limits.shared_per_block // 2):
                blocks = min(placement.blocks(shared, registers, warps).values())
                whole = min(-(-registers // granule) * granule, most)
                assert blocks == min(placement.blocks(shared, whole, warps).values())
                assert blocks * (warps + residency.producers) <= limits.warps_per_sm
                assert blocks * (shared + limits.shared_reserved) <= limits.shared_per_sm
                held = warps * whole + residency.producers * residency.producer_registers
                assert blocks * held * limits.warp <= limits.registers_per_sm


def test_tensor_memory_is_taken_in_whole_columns() -> None:
    placement = placed("flash2", "b200", "flash-attention-4")
    for size in (0, 1, COLUMN - 1, COLUMN, COLUMN + 1, 10 * COLUMN + 7):
        formulas: Any = SimpleNamespace(scalars=lambda *sizes, size=size: (0, size))
        columns = placement._replace(shared=formulas).memory(128, 64, 1, 4)[1]
        assert (columns - 1) * COLUMN < size <= columns * COLUMN


def test_tensor_memory_is_allocated_in_powers_of_two_from_32_on() -> None:
    """PTX ISA, tcgen05.alloc: the number of columns is a power of two, at least 32."""
    for columns in range(1, 513):
        assert _allocated(columns) == max(32, 1 << (columns - 1).bit_length())


@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "h100-sxm5", "b200"])
def test_what_a_block_may_hold_is_part_of_what_an_sm_has(device: str) -> None:
    """Registers and accumulators are those of the level; shared memory is less by what stays reserved, or L1."""
    limits, sm = device_of(as_device(device)), memory_levels(as_device(device))[0][0]
    beside = limits.on_chip - limits.shared_per_block
    figures: Any = as_device(device).memory
    unified = int(figures.sram.unified_per_sm.value)
    assert beside == sm.capacity_bytes - unified


@pytest.mark.parametrize("tile", [(16, 16), (64, 32), (128, 64), (128, 128)])
def test_textbook_blocks_fit_an_sm_and_one_more_does_not(tile: tuple[int, int]) -> None:
    sizes = {"block_q": tile[0], "block_kv": tile[1]}
    outcome = iomodel.check("flash2", W, "h100-sxm5", sizes, implementation="textbook")
    (used,) = (resource.used for resource in outcome.resources.values())
    room = int(as_device("h100-sxm5").memory.sram.per_sm.value)
    assert outcome.blocks_per_sm * used <= room < (outcome.blocks_per_sm + 1) * used
