"""Blocks of any kernel that share an SM, against figures of NVIDIA's occupancy calculator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.kernels import occupancy
from tests.support.inside import device_of, main

KNOWN = [
    ("a100-sxm4-80gb", 128, 168, "48 KiB", 3, ("shared memory", "registers")),  # 65,536 / 21,504; 164 KiB / 49 KiB
    ("h100-sxm5", 256, 64, 0, 4, ("registers",)),  # 65,536 / 16,384
    ("t4", 256, 32, 0, 4, ("warps",)),  # 1,024 threads of an SM; its registers have room for 8
    ("rtx4090", 32, 16, 0, 24, ("blocks",)),
    ("a100-sxm4-80gb", 1024, 64, "164864", 1, ("shared memory", "registers")),
]


@pytest.mark.parametrize(("device", "threads", "registers", "shared", "blocks", "limits"), KNOWN)
def test_blocks_per_sm_are_those_of_the_tables(device, threads, registers, shared, blocks, limits):
    shared = int(shared) if str(shared).isdigit() else shared
    found = occupancy(device, threads=threads, registers=registers, shared_bytes=shared)
    assert (found.blocks_per_sm, found.limited_by) == (blocks, limits)
    assert found.occupancy == blocks * -(-threads // 32) / found.warps_per_sm <= 1


@given(threads=st.integers(1, 1024), registers=st.integers(1, 255), shared=st.integers(0, 99 * 1024))
def test_a_block_that_takes_more_shares_an_sm_with_no_more(threads, registers, shared):
    limits = device_of(iomodel.hardware("a100-sxm4-80gb"))
    asked = {"threads": threads, "registers": registers, "shared_bytes": shared}
    if registers > limits.registers_limit(-(-threads // 32)):
        with pytest.raises(iomodel.InputError, match="registers"):
            occupancy("a100-sxm4-80gb", **asked)
        return
    found = occupancy("a100-sxm4-80gb", **asked)
    assert found.blocks_per_sm * shared <= limits.shared_per_sm
    assert found.blocks_per_sm * threads * registers <= limits.registers_per_sm
    smaller = occupancy("a100-sxm4-80gb", threads=max(1, threads // 2), registers=registers, shared_bytes=shared // 2)
    assert smaller.blocks_per_sm >= found.blocks_per_sm


def test_a_command_answers_it(capsys):
    line = ["occupancy", "--hardware", "a100-sxm4-80gb", "--threads", "128", "--regs", "168", "--smem", "48 KiB"]
    assert main(line) == 0
    assert "blocks per SM" in (told := capsys.readouterr().out)
    assert str(occupancy("a100-sxm4-80gb", threads=128, registers=168, shared_bytes="48 KiB")) in told


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"threads": 2048}, "threads: 2,048 given; allowed: up to 1,024, what a block of NVIDIA RTX 4090 may have"),
        ({"threads": 64, "shared_bytes": "100 KiB"}, "shared_bytes: 102,400 given; allowed: up to 101,376"),
        ({"threads": 1024, "registers": 128}, "registers: 128 given with 1024 threads; allowed: up to 64"),
        ({"threads": 0}, "threads: 0 given"),
    ],
)
def test_what_no_block_may_take_is_refused(asked, message):
    with pytest.raises(iomodel.InputError) as refused:
        occupancy("rtx4090", **asked)
    assert str(refused.value).startswith(message)
