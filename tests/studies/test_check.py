"""Tiles that a check names where the given one does not fit."""

from __future__ import annotations

from contextlib import suppress

import pytest

from iomodel import Attention, check, estimate, list_algorithms
from iomodel.errors import InfeasibleError, InputError

CALL = Attention(q_len=4096, head_dim=128, dtype="fp16")
CASES = [
    ("flash2", "rtx4090", "triton", {"block_q": 128, "block_kv": 128, "stages": 3}),
    ("flash2", "a100-sxm4-80gb", "flash-attention-2", {"block_q": 256, "block_kv": 256}),
    ("flash3", "h100-sxm5", None, {"block_q": 256, "block_kv": 256}),
    ("flash2", "mi300x", None, {"block_q": 128, "block_kv": 512}),
]


@pytest.mark.parametrize(("algorithm", "device", "kernels", "tiles"), CASES)
def test_a_check_that_fails_names_tiles_that_fit_with_one_size_changed(algorithm, device, kernels, tiles):
    refused = check(algorithm, CALL, device, tiles, kernels)
    assert not refused.fits
    assert refused.nearest
    for near in refused.nearest:
        assert check(algorithm, CALL, device, near, refused.implementation).fits
        changed = {name for name in ("block_q", "block_kv") if near[name] != tiles[name]}
        assert len(changed) <= 1
        assert all(near[name] < tiles[name] for name in changed)
        assert not changed or near["stages"] == tiles.get("stages", near["stages"])
        assert f"fits: block_q={near['block_q']}, block_kv={near['block_kv']}" in str(refused)


def test_a_config_of_triton_that_exceeds_shared_memory_is_told_fewer_stages_and_fewer_keys():
    refused = check("flash2", CALL, "rtx4090", CASES[0][3], "triton")
    assert refused.resources["shared memory"].limit == 101_376
    assert [(near["block_kv"], near["stages"]) for near in refused.nearest] == [(128, 2), (64, 3)]


def test_a_tile_that_fits_is_told_no_other():
    assert check("flash2", CALL, "a100-sxm4-80gb", {"block_q": 128, "block_kv": 64}).nearest == ()


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_without_tiles_what_an_estimate_answers_is_checked_at_tiles_that_fit(direction, mask):
    call = Attention(q_len=4096, head_dim=64, direction=direction, mask=mask)
    timed = []
    for algorithm in set(list_algorithms()) - {"eager"}:  # its kernels have no tiles
        with suppress(InputError, InfeasibleError):
            estimate(algorithm, call, "h100-sxm5")
            timed.append(algorithm)
    assert {"flash2", "standard"} <= set(timed)
    for algorithm in timed:
        assert check(algorithm, call, "h100-sxm5").fits, algorithm
