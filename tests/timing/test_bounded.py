"""The lower bound of the time of a kernel, which takes no account of the order of the blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import iomodel
from tests.support.inside import FrontEnd, Question, families, implementation_for, tile_tables

CASES = [
    ("flash2", "a100-sxm4-80gb", "forward"),
    ("flash2", "a100-sxm4-80gb", "backward"),
    ("flash3", "h100-sxm5", "forward"),
    ("flash3", "h100-sxm5", "backward"),
    ("flash1", "t4", "forward"),
    ("flash2", "b200", "forward"),
    ("flash2", "mi300x", "forward"),
    ("split_kv", "h100-sxm5", "forward"),
]
LENGTHS = [(1, 1), (1, 20_000), (5, 333), (100, 100), (4096, 4096), (20_000, 77), (3000, 5000)]
MASKS = ["full", "causal", iomodel.Window(left=100, right=0), iomodel.Window(left=100, right=50)]


@pytest.mark.parametrize(("name", "device", "direction"), CASES)
def test_no_tile_undercuts_the_bound(name: str, device: str, direction: str) -> None:
    """For any call: the bound is that of the layouts of a kernel, whatever its front end takes."""
    hardware, near = iomodel.hardware(device), []
    plain = iomodel.Attention(heads=8, q_len=1, head_dim=64, dtype="fp16", direction=direction)
    kernels = replace(implementation_for(name, plain, hardware), front_end=FrontEnd())
    for number, (q_len, kv_len) in enumerate(LENGTHS):
        for mask in MASKS:
            w = iomodel.Attention(
                batch=1 + number, heads=8, kv_heads=8 if direction == "backward" else 2, q_len=q_len, kv_len=kv_len,
                head_dim=64 + 64 * (number % 2), dtype="fp16", mask=mask, direction=direction,
            )  # fmt: skip
            question = Question.ask(name, w, hardware, kernels)
            for family in families(question):
                clock = family.setting.clock
                for tiles, _ in tile_tables(family.setting.variants.ways, family.numbers, family.most):
                    plain = {tile: tiles.sizes[tile] for tile in family.setting.variants.ask.compiled.tiles}
                    for demand in clock.over(tiles.placement.widths, plain, tiles.numbers):
                        launched = tiles.launched(clock)
                        exact = clock.elapsed(demand, w, launched).seconds
                        least = clock.elapsed(demand, w, launched, bounded=True).seconds
                        assert np.all(least <= exact * (1 + 1e-9)), (w, np.max(least / exact))
                        if q_len == 4096 and isinstance(mask, str):
                            near.append(np.median(least / exact))
    assert min(near) > 0.5
    assert max(near) > 0.75
