"""Loops whose trips are different blocks although their operands are loaded outside."""

from __future__ import annotations

import iomodel

STEP = iomodel.Attention(heads=128, kv_heads=1, q_len=1, kv_len=100_000, head_dim=576, value_dim=512, latent=True)


def test_the_keys_of_a_query_are_divided_where_nothing_is_summed_over_them() -> None:
    tiles = iomodel.estimate("dsa", STEP, "h100-sxm5").tiles
    found = iomodel.estimate("dsa", STEP, "h100-sxm5", tiles)
    scores, _, attention = found.kernels
    assert scores.blocks == -(-100_000 // tiles["block_sum"])
    assert attention.blocks == -(-128 // tiles["block_q"])  # the running softmax of a tile of heads stays in one block


def test_a_partition_is_divided_with_its_sums() -> None:
    call = iomodel.Attention(heads=4, q_len=1, kv_len=4096, head_dim=64)
    found = iomodel.estimate("split_kv", call, "h100-sxm5", {"block_q": 64, "block_kv": 64}, splits=8)
    assert found.kernels[0].blocks == 4 * 8
