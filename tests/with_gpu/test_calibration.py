"""Calibration of the GPU that is present."""

from __future__ import annotations

import pytest

import iomodel


@pytest.mark.filterwarnings("ignore")
def test_on_a_gpu():
    result = iomodel.devices.calibrate(only=["hbm", "launch", "gemm_bf16"], time_budget=20)
    assert {"hbm_copy", "hbm_read", "kernel_launch", "graph_node"} <= set(result.figures), result.failed
    peak = result.hardware.memory.hbm.bandwidth
    assert peak is None or result.figures["hbm_copy"].value <= 1.02 * peak.value
    assert result.figures["graph_node"].value < 2e-5
