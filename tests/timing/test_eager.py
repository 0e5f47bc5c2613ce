"""Times of eager attention: single elements by address, and launches by the host."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.devices.rates import rates

GPU = iomodel.hardware("h100-sxm5")
CALL = iomodel.Attention(batch=2, heads=16, q_len=4096, head_dim=128, mask="causal", dtype="bf16")
EXECUTION = algorithm("eager").execution["forward"]


def test_strided_kernels_take_an_address_for_each_element() -> None:
    """The copies read and write Q, K and V; the addition reads S and the mask and writes S_masked."""
    found = iomodel.estimate("eager", CALL, GPU)
    rows, square = 32 * 4096 * 128, 32 * 4096**2
    known = rates(GPU, "bf16")
    assert known.units is not None and known.clock is not None  # noqa: PT018
    clocks = (2 * 3 * rows + 3 * square) * EXECUTION.address_clocks
    assert found.breakdown["addresses"] == pytest.approx(clocks / (known.units * known.clock))
    slow = [kernel.title for kernel in found.kernels if "addresses" in kernel.breakdown]
    assert slow == ["copy of Q", "copy of K", "copy of V", "S_masked = S + mask"]
    assert "addresses" not in iomodel.estimate("standard", CALL, GPU).breakdown


def test_without_a_mask_nothing_is_added() -> None:
    full = iomodel.estimate("eager", CALL.model_copy(update={"mask": "full"}), GPU)
    assert not any("mask" in kernel.title for kernel in full.kernels)
    assert full.seconds < iomodel.estimate("eager", CALL, GPU).seconds


def test_the_host_launches_every_kernel() -> None:
    short = CALL.model_copy(update={"q_len": 16, "kv_len": 16, "mask": "full"})
    found = iomodel.estimate("eager", short, GPU)
    assert found.seconds == pytest.approx(len(found.kernels) * EXECUTION.host_launch)
    assert found.parameters.host_launch == EXECUTION.host_launch
    slower = iomodel.Parameters(host_launch=1e-4)
    assert iomodel.estimate("eager", short, GPU, parameters=slower).seconds == pytest.approx(len(found.kernels) * 1e-4)


@pytest.mark.parametrize("name", ["address_clocks", "host_launch"])
@pytest.mark.parametrize("value", [-1.0, math.inf, True, "1"])
def test_a_figure_of_an_execution_is_a_number_from_0_up(name: str, value: object) -> None:
    with pytest.raises(iomodel.InputError, match=f"^{name}: .* given; allowed: a number from 0 up$"):
        replace(EXECUTION, **{name: value})  # type: ignore[arg-type]
