"""Rates of one SM: all SMs together reach the peak of the chip, which a datasheet states at another clock at most."""

import pytest

from iomodel.devices.device import hardware, list_hardware
from iomodel.devices.rates import has_rates, rates

DOUBTFUL = {("h20", "fp32")}
"""Peaks that the notes of a device's file doubt."""
DTYPES = ("fp16", "bf16", "tf32", "fp8", "int8", "fp4", "fp32")


@pytest.mark.parametrize("name", list_hardware())
def test_all_sms_together_reach_the_peak(name):
    device = hardware(name)
    for dtype in DTYPES:
        if has_rates(device, dtype) and rates(device, dtype).units is not None:
            known = rates(device, dtype)
            clocks = [device.quantities.get(f"compute.clock.{name}") for name in ("sustained", "tensor", "boost")]
            # A datasheet counts fp32 at the boost clock, and products at a clock that a capped board may not sustain.
            counted = clocks[2] if dtype == "fp32" else clocks[1] or clocks[2]
            slower = known.clock / counted.value if counted and (dtype == "fp32" or clocks[0]) else 1
            slower = min(1, slower)  # a card that sustains more than the datasheet's clock has its peaks at that clock
            off = 0.15 if (name, dtype) in DOUBTFUL else 0.1
            assert known.units * known.sm_matrix == pytest.approx(known.peak * slower, rel=off)
            assert known.sm_warp_matrix <= known.sm_matrix
