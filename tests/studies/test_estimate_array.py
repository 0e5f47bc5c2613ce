"""Arrays of times: shapes, marks, errors; each time is that of its call alone (tests/laws)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import iomodel


def test_each_point_without_tiles_takes_its_default() -> None:
    call = {"kv_len": 4096, "heads": 32, "kv_heads": 8}
    found = iomodel.estimate_array("flash3", None, "h100-sxm5", q_len=[1, 4096], head_dim=[64, 256], **call)
    assert found.costs.tiles["block_kv"].tolist() == found.chosen["block_kv"].tolist()
    for place, (q_len, head_dim) in enumerate([(1, 64), (4096, 256)]):
        one = iomodel.estimate("flash3", iomodel.Attention(q_len=q_len, head_dim=head_dim, **call), "h100-sxm5")
        assert one.seconds == pytest.approx(found.seconds[place])
        assert {name: found.chosen[name][place] for name in one.tiles} == one.tiles


def test_points_without_a_tile_that_fits_are_marked() -> None:
    call = {"q_len": 64, "head_dim": [64, 100_000], "dtype": "fp32", "implementation": "textbook"}
    found = iomodel.estimate_array("flash2", None, "h100-sxm5", infeasible="mark", **call)
    assert found.feasible.tolist() == [True, False]
    with pytest.raises(iomodel.InfeasibleError, match=r"at index \(1,\)"):
        iomodel.estimate_array("flash2", None, "h100-sxm5", **call)


def test_points_where_no_kernel_fits_do_not_warn() -> None:
    """Several kernels, none of whose tiles fits."""
    call = {"heads": 8, "head_dim": 96, "mask": "causal", "direction": "backward"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = iomodel.estimate_array("flash1", None, "rtx3080", q_len=[2693], infeasible="mark", **call)
    assert not found.feasible.any()


def test_arguments_broadcast() -> None:
    found = iomodel.estimate_array(
        "flash2", None, "h100-sxm5", q_len=[[1024], [4096]], head_dim=64, block_q=[64, 128, 128], block_kv=64
    )
    assert found.shape == (2, 3)
    assert found.seconds[0, 1] == found.seconds[0, 2]
    assert (found.seconds[1] > found.seconds[0]).all()
    assert found.limited_by.shape == (2, 3)
    assert len(found.to_pandas()) == 6
    assert found.streamed_bytes.min() > 0


def test_a_window_without_edges_is_no_mask() -> None:
    call = {"algorithm": "flash2", "hardware": "h100-sxm5", "q_len": [64, 8000], "head_dim": 64}
    windowed = iomodel.estimate_array(mask=iomodel.Window(), **call, block_q=64, block_kv=64)
    assert windowed.seconds.tolist() == iomodel.estimate_array(**call, block_q=64, block_kv=64).seconds.tolist()


def test_warps_alone_may_be_the_array() -> None:
    found = iomodel.estimate_array(
        "flash2", None, "a100-sxm4-80gb", q_len=4096, head_dim=128, block_q=128, block_kv=64, warps=[4, 8]
    )
    assert found.chosen["warps"].tolist() == [4, 8]
    assert found[1].tiles["warps"] == 8


def test_an_empty_array_has_no_times() -> None:
    found = iomodel.estimate_array("flash2", None, "h100-sxm5", q_len=[], head_dim=64, block_q=64, block_kv=64)
    assert found.seconds.shape == (0,)


def test_blocks_of_points_join() -> None:
    """More points than are timed together."""
    lengths = np.arange(1, 40_001)
    found = iomodel.estimate_array("flash2", None, "h100-sxm5", q_len=lengths, head_dim=64, block_q=128, block_kv=64)
    for place in (0, 16_383, 16_384, 39_999):
        assert found.seconds[place] == pytest.approx(found[place].seconds)


def test_a_tile_that_does_not_fit_is_an_error_with_its_index() -> None:
    with pytest.raises(iomodel.InfeasibleError, match=r"shared memory.*at index \(1,\)"):
        iomodel.estimate_array(
            "flash2", None, "a100-sxm4-80gb", q_len=4096, head_dim=128, block_q=[128, 4096], block_kv=64
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mask": iomodel.Documents([63])}, "63 positions"),
        ({"dtype": ["bf16", "fp16"]}, "dtype: an array given"),
        ({"infeasible": "skip"}, "infeasible"),
        ({"parameters": 3}, "parameters: 3 given"),
        ({"block_q": [64, 0]}, "block_q: 0 given, at index"),
        ({"warps": "four"}, "warps"),
        ({"block_m": 64}, "block_m"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: dict[str, Any], message: str) -> None:
    known = {"q_len": 64, "head_dim": 64, "block_q": 64, "block_kv": 64}
    with pytest.raises(iomodel.IOModelError, match=message) as error:
        iomodel.estimate_array("flash2", None, "h100-sxm5", **{**known, **arguments})
    assert "\n" not in str(error.value)


def test_workloads_without_an_array_of_times_are_refused() -> None:
    with pytest.raises(
        iomodel.InputError, match="algorithm: fused_mlp given; allowed: an algorithm of attention or of"
    ):
        iomodel.estimate_array("fused_mlp", None, "h100-sxm5", tokens=[1, 2], in_features=64, hidden_features=64)
    layer = {"rows": 4, "in_features": 256, "out_features": 64, "weight_dtype": "int4"}
    with pytest.raises(iomodel.InputError, match="scale_block: an array given"):
        iomodel.estimate_array("gemm", None, "h100-sxm5", **layer, scale_block=[32, 64])
    with pytest.raises(iomodel.InputError, match="implementation: 'textbook' given"):
        iomodel.estimate_array(
            "gemm", None, "h100-sxm5", rows=4, in_features=64, out_features=64, implementation="textbook"
        )


def test_a_grid_that_is_the_same_at_all_points_is_timed_at_each() -> None:
    """The tiles of the forward pass are numbers, those of the backward pass an array."""
    fields = {"heads": 8, "kv_heads": 1, "q_len": 2048, "head_dim": 96, "mask": iomodel.Window(left=4095, right=717)}
    tiles = {"block_q": 128, "block_kv": 32}
    sizes = [160, 64, 33]
    times = iomodel.estimate_array(
        "flash2", None, "a100-sxm4-80gb", direction="both", bwd_block_q=sizes, infeasible="mark", **fields, **tiles
    )
    call = iomodel.Attention(direction="both", **fields)
    for place, size in enumerate(sizes[:2]):
        alone = iomodel.estimate("flash2", call, "a100-sxm4-80gb", {**tiles, "bwd_block_q": size, "bwd_block_kv": 32})
        assert times.seconds[place] == pytest.approx(alone.seconds, rel=1e-9)
    assert np.isnan(times.seconds[2])
