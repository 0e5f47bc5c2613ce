"""Figures of devices on the page: those that times are made of."""

from __future__ import annotations

import pytest

from iomodel import hardware, list_hardware
from iomodel.explorer.payload import device
from tests.support.inside import has_rates, rates


@pytest.mark.parametrize("name", list_hardware())
def test_the_page_has_the_figures_of_the_time_model(name: str) -> None:
    gpu, data = hardware(name), device(hardware(name))
    assert data["sram"]["value"] == gpu.sram_per_block
    for dtype, peak in data["peak"].items():
        if not has_rates(gpu, dtype):
            continue
        known = rates(gpu, dtype)
        assert (peak["value"], data["hbm"]["value"]) == (known.peak, known.hbm_peak)
        assert data.get("l2", {}).get("value") == known.l2
