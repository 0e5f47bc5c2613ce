"""Loops whose trips are different blocks although their operands are loaded outside."""

from __future__ import annotations

import iomodel
from tests.support.inside import SPLITS

STEP = iomodel.Attention(heads=128, kv_heads=1, q_len=1, kv_len=100_000, head_dim=576, value_dim=512, latent=True)


def test_the_keys_of_a_query_are_divided_where_nothing_is_summed_over_them() -> None:
    tiles = iomodel.estimate("dsa", STEP, "h100-sxm5").tiles
    found = iomodel.estimate("dsa", STEP, "h100-sxm5", tiles)
    scores, _, attention = found.kernels
    assert scores.blocks == -(-100_000 // tiles["block_sum"])
    assert attention.blocks == -(-128 // tiles["block_q"])  # the running softmax of a tile of heads stays in one block


def test_the_chosen_keys_of_a_query_are_divided_by_splits() -> None:
    tiles = {"block_sum": 256, "block_q": 16, "block_kv": 64}
    # What is written back, and the start of the first blocks, take as long for any number of splits.
    clean = iomodel.devices.Parameters(dirty_l2=0, block_clocks=0)
    whole, parts = (
        iomodel.estimate("dsa", STEP, "h100-sxm5", tiles, splits=splits, parameters=clean) for splits in (1, 8)
    )
    assert parts.kernels[2].blocks == 8 * whole.kernels[2].blocks
    assert 4 * parts.kernels[2].seconds < whole.kernels[2].seconds


def test_the_default_number_of_splits_is_as_fast_as_any_other_at_its_tiles() -> None:
    found = iomodel.estimate("dsa", STEP, "h100-sxm5")
    chosen = found.cost.options["splits"]
    assert chosen > 1
    for splits in SPLITS:
        if splits * found.tiles["block_kv"] <= 2048:
            assert found.seconds <= iomodel.estimate("dsa", STEP, "h100-sxm5", found.tiles, splits=splits).seconds


def test_a_partition_is_divided_with_its_sums() -> None:
    call = iomodel.Attention(heads=4, q_len=1, kv_len=4096, head_dim=64)
    found = iomodel.estimate("split_kv", call, "h100-sxm5", {"block_q": 64, "block_kv": 64}, splits=8)
    assert found.kernels[0].blocks == 4 * 8
