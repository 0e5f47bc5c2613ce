"""Levels of a device's memory: capacities from its own figures, and a line for what is missing."""

from __future__ import annotations

from typing import Any

import pytest

import iomodel
from iomodel.devices.levels import MemoryLevel, memory_levels

KIB, MIB = 2**10, 2**20


def test_an_sm_has_its_registers_shared_memory_and_accumulators() -> None:
    # 65,536 registers of 4 bytes; L1 and shared memory of 192 KiB on the A100, of 256 on the B200, with tensor memory.
    a100, b200 = (memory_levels(iomodel.hardware(name))[0][0] for name in ("a100-sxm4-80gb", "b200"))
    assert a100 == MemoryLevel("SM", 108, (256 + 192) * KIB)
    assert b200 == MemoryLevel("SM", 148, (256 + 256 + 256) * KIB)


def test_a_compute_unit_has_its_lds_and_its_l1_apart() -> None:
    levels, missing = memory_levels(iomodel.hardware("mi300x"))
    assert levels[0] == MemoryLevel("SM", 304, (512 + 64 + 32) * KIB)
    assert levels[1] == MemoryLevel("L2 and SMs", 8, 4 * MIB + 38 * levels[0].capacity_bytes)
    assert levels[2] == MemoryLevel("last-level cache, L2 and SMs", 1, 256 * MIB + 8 * levels[1].capacity_bytes)
    assert missing == ()


@pytest.mark.parametrize("name", [name for name in iomodel.list_hardware() if memory_levels(iomodel.hardware(name))[0]])
def test_a_block_may_hold_all_of_an_sm_but_the_shared_memory_that_no_block_gets(name: str) -> None:
    """Registers and accumulators are memory of a block as they are of its SM; the L1 cache is not."""
    device = iomodel.hardware(name)
    sram, l1 = device.memory.sram, device.memory.l1.per_sm
    parts = [sram.unified_per_sm] if sram.unified_per_sm is not None else [sram.per_sm, l1]
    beside = sum(int(part.value) for part in parts if part is not None) - device.sram_per_block
    assert memory_levels(device)[0][0].capacity_bytes - device.on_chip_per_block == beside >= 0


def without(*path: str) -> iomodel.Hardware:
    """An A100 whose file lacks a figure."""
    data: dict[str, Any] = iomodel.hardware("a100-sxm4-80gb").to_dict()
    group = data
    for name in path[:-1]:
        group = group[name]
    del group[path[-1]]
    return iomodel.Hardware(**data)


@pytest.mark.parametrize(
    ("path", "known", "text"),
    [
        (("memory", "l2"), ["SM"], "the bound at the L2 (no L2 capacity on file)"),
        (("compute", "units"), [], "the bounds at the SM and at the L2 (on file: no number of SMs)"),
        (("limits", "registers_per_sm"), [], "the bounds at the SM and at the L2 (on file: no registers)"),
        (
            ("memory", "sram", "unified_per_sm"),
            [],
            "the bounds at the SM and at the L2 (on file: no L1 cache and shared memory)",
        ),
    ],
)
def test_a_level_with_a_missing_figure_is_left_out_and_named(
    path: tuple[str, ...], known: list[str], text: str
) -> None:
    device = without(*path)
    levels, missing = memory_levels(device)
    assert ([level.name for level in levels], missing) == (known, (text,))
    w = iomodel.Attention(heads=8, q_len=512, head_dim=64)
    e = iomodel.estimate("flash2", w, device, {"block_q": 128, "block_kv": 64}, implementation="textbook")
    assert [level.name for level in e.levels] == known
    assert text in e.left_out
