"""Calibration of the CPU through PyTorch."""

from __future__ import annotations

import pytest
import torch

from iomodel.devices.calibration.calibrate import calibrated
from iomodel.devices.calibration.torch import TorchDevice
from tests.devices.test_calibrate import TINY


@pytest.mark.filterwarnings("ignore")
def test_the_calls_of_torch_run():
    precision = torch.get_float32_matmul_precision()
    result = calibrated(TorchDevice(torch, torch.device("cpu")), budget=5, sizes=TINY)
    assert set(result.failed) <= {"l2_bandwidth", "exp", "graph_node", "gemm_fp8"}
    assert {"hbm_copy", "gemm_tf32", "gemm_qk_bf16", "kernel_launch"} <= set(result.figures)
    assert len(result.hardware.measured.attention) == 8
    assert torch.get_float32_matmul_precision() == precision
