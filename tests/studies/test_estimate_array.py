"""Times at arrays of shapes, tiles and options, against the estimate of each point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel

KERNELS = [
    ("flash2", "a100-sxm4-80gb", "forward"),
    ("flash2", "a100-sxm4-80gb", "backward"),
    ("flash3", "h100-sxm5", "forward"),
    ("flash2", "b200", "forward"),
    ("flash2", "mi300x", "forward"),
    ("flash2", "tpu-v4", "forward"),
    ("flash1", "rtx4090", "forward"),
    ("split_kv", "h100-sxm5", "forward"),
    ("standard", "h100-sxm5", "forward"),
    ("two_pass", "h100-sxm5", "backward"),
    ("flash2", "a100-sxm4-80gb", "both"),
    ("flash3", "h100-sxm5", "both"),
    ("flash1", "rtx4090", "both"),
    ("flash2", "tpu-v4", "both"),
    ("standard", "h100-sxm5", "both"),
    ("eager", "a100-sxm4-80gb", "both"),
]
UNTILED = ("standard", "eager")
MASKS: list[Any] = ["full", "causal", iomodel.Window(left=300, right=0), iomodel.Window(right=7, align="top-left")]


def points(seed: int, size: int, algorithm: str, tiled: bool) -> dict[str, Any]:
    """Lengths, heads, widths and tiles of random calls."""
    rng = np.random.default_rng(seed)
    kv_heads, q_len = rng.choice([1, 2, 4], size), rng.integers(1, 3000, size)
    if algorithm == "split_kv":
        q_len = rng.integers(1, 9, size)
    found = {
        "batch": rng.integers(1, 5, size), "kv_heads": kv_heads, "heads": kv_heads * rng.choice([1, 2, 8], size),
        "q_len": q_len, "kv_len": q_len + rng.integers(0, 3000, size), "head_dim": rng.choice([64, 96, 128], size),
    }  # fmt: skip
    if algorithm not in UNTILED and tiled:
        found |= {"block_q": rng.choice([64, 128, 192], size), "block_kv": rng.choice([16, 64, 100, 128], size)}
    return found


def assert_estimates(found: iomodel.EstimateArray) -> None:
    """Every point is the estimate of its call."""
    for place in range(found.seconds.size):
        try:
            one = found.at(place)
        except iomodel.InfeasibleError:
            assert not found.feasible[place]
            continue
        assert found.seconds[place] == pytest.approx(one.seconds, rel=1e-9)
        assert found.mfu[place] == pytest.approx(one.mfu, rel=1e-9)
        for name, seconds in found.breakdown.items():
            assert seconds[place] == pytest.approx(one.breakdown.get(name, 0.0), rel=1e-6, abs=1e-14)
        known = {**one.cost.options, **one.tiles}
        for name, chosen in found.chosen.items():
            assert chosen[place] == known.get(name, chosen[place])
        if known.items() >= {name: found.costs.options.get(name) for name in ("splits", "packed")}.items():
            assert found.costs.hbm_bytes[place] == one.cost.hbm_bytes


@example(0, KERNELS[0], "causal", True, {})
@example(1, KERNELS[7], "full", True, {"splits": 3})
@example(2, KERNELS[2], "causal", True, {"warps": 8, "packed": True})
@example(3, KERNELS[2], "causal", False, {})
@example(4, KERNELS[11], "causal", False, {})
@example(5, KERNELS[10], "causal", True, {"bwd_block_q": 64, "bwd_block_kv": 128})
@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(KERNELS),
    mask=st.sampled_from(MASKS),
    tiled=st.booleans(),
    given=st.sampled_from([{}, {"packed": True}, {"packed": False}]),
)
def test_every_point_is_its_estimate(seed: int, kernel: Any, mask: Any, tiled: bool, given: dict[str, Any]) -> None:
    algorithm, device, direction = kernel
    arguments = {**points(seed, 6, algorithm, tiled), **given, "mask": mask, "direction": direction}
    assert_estimates(iomodel.estimate_array(algorithm, device, infeasible="mark", **arguments))


@given(
    seed=st.integers(0, 2**32 - 1),
    lengths=st.lists(st.integers(1, 700), min_size=1, max_size=4),
    direction=st.sampled_from(["forward", "both"]),
    tiled=st.booleans(),
    causal=st.booleans(),
)
def test_masks_given_by_data_have_times(
    seed: int, lengths: list[int], direction: str, tiled: bool, causal: bool
) -> None:
    total = {"q_len": sum(lengths), "kv_len": sum(lengths), "direction": direction}
    arguments = {**points(seed, 4, "flash2", tiled), **total, "mask": iomodel.Documents(lengths, causal=causal)}
    assert_estimates(iomodel.estimate_array("flash2", "a100-sxm4-80gb", infeasible="mark", **arguments))


def test_pages_under_a_mask_have_times() -> None:
    arguments = {**points(0, 6, "flash2", True), "mask": "causal", "page_size": [16, 64, 100, 16, 64, 100]}
    assert_estimates(iomodel.estimate_array("flash2", "h100-sxm5", infeasible="mark", **arguments))


TYPES: list[dict[str, Any]] = [{}, {"gated": True}, {"weight_dtype": "int4", "scale_block": 128}, {"dtype": "fp16"}]


@given(
    seed=st.integers(0, 2**32 - 1),
    device=st.sampled_from(["h100-sxm5", "a100-sxm4-80gb", "b200"]),
    types=st.sampled_from(TYPES),
    tiles=st.sampled_from(
        [(), ("block_m", "block_n", "block_k"), ("block_m", "block_n", "block_k", "warps", "stages")]
    ),
    splits=st.sampled_from([{}, {"splits": 1}, {"splits": 2}]),
)
def test_every_linear_layer_is_its_estimate(
    seed: int, device: str, types: dict[str, Any], tiles: tuple[str, ...], splits: dict[str, int]
) -> None:
    rng = np.random.default_rng(seed)
    sizes = {"block_m": [16, 64, 256], "block_n": [64, 256], "block_k": [32, 64], "warps": [4, 8], "stages": [2, 4]}
    arguments = {
        "rows": rng.choice([1, 17, 128, 500, 4000, 20_000], 6),
        "in_features": rng.choice([512, 1000, 4096], 6),
        "out_features": rng.choice([64, 1000, 8192], 6),
        "groups": rng.choice([1, 1, 8], 6),
        **{name: rng.choice(sizes[name], 6) for name in tiles},
    }
    assert_estimates(iomodel.estimate_array("gemm", device, infeasible="mark", **arguments, **types, **splits))


def test_each_point_without_tiles_takes_its_default() -> None:
    call = {"kv_len": 4096, "heads": 32, "kv_heads": 8}
    found = iomodel.estimate_array("flash3", "h100-sxm5", q_len=[1, 4096], head_dim=[64, 256], **call)
    assert found.costs.tiles["block_kv"].tolist() == found.chosen["block_kv"].tolist()
    for place, (q_len, head_dim) in enumerate([(1, 64), (4096, 256)]):
        one = iomodel.estimate("flash3", iomodel.Attention(q_len=q_len, head_dim=head_dim, **call), "h100-sxm5")
        assert one.seconds == pytest.approx(found.seconds[place])
        assert {name: found.chosen[name][place] for name in one.tiles} == one.tiles


def test_points_without_a_tile_that_fits_are_marked() -> None:
    call = {"q_len": 64, "head_dim": [64, 100_000], "dtype": "fp32"}
    found = iomodel.estimate_array("flash2", "h100-sxm5", infeasible="mark", **call)
    assert found.feasible.tolist() == [True, False]
    with pytest.raises(iomodel.InfeasibleError, match=r"at index \(1,\)"):
        iomodel.estimate_array("flash2", "h100-sxm5", **call)


def test_arguments_broadcast() -> None:
    found = iomodel.estimate_array(
        "flash2", "h100-sxm5", q_len=[[1024], [4096]], head_dim=64, block_q=[64, 128, 128], block_kv=64
    )
    assert found.shape == (2, 3)
    assert found.seconds[0, 1] == found.seconds[0, 2]
    assert (found.seconds[1] > found.seconds[0]).all()
    assert found.bound.shape == (2, 3)
    assert len(found.to_pandas()) == 6
    assert found.streamed_bytes.min() > 0


def test_warps_alone_may_be_the_array() -> None:
    found = iomodel.estimate_array(
        "flash2", "a100-sxm4-80gb", q_len=4096, head_dim=128, block_q=128, block_kv=64, warps=[4, 8]
    )
    assert found.chosen["warps"].tolist() == [4, 8]
    assert found.at(1).tiles["warps"] == 8


def test_an_empty_array_has_no_times() -> None:
    found = iomodel.estimate_array("flash2", "h100-sxm5", q_len=[], head_dim=64, block_q=64, block_kv=64)
    assert found.seconds.shape == (0,)


def test_blocks_of_points_join() -> None:
    """More points than are timed together."""
    lengths = np.arange(1, 40_001)
    found = iomodel.estimate_array("flash2", "h100-sxm5", q_len=lengths, head_dim=64, block_q=128, block_kv=64)
    for place in (0, 16_383, 16_384, 39_999):
        assert found.seconds[place] == pytest.approx(found.at(place).seconds)


def test_a_tile_that_does_not_fit_is_an_error_with_its_index() -> None:
    with pytest.raises(iomodel.InfeasibleError, match=r"shared memory.*at index \(1,\)"):
        iomodel.estimate_array("flash2", "a100-sxm4-80gb", q_len=4096, head_dim=128, block_q=[128, 4096], block_kv=64)


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
        iomodel.estimate_array("flash2", "h100-sxm5", **{**known, **arguments})
    assert "\n" not in str(error.value)


def test_workloads_without_an_array_of_times_are_refused() -> None:
    with pytest.raises(
        iomodel.InputError, match="algorithm: fused_mlp given; allowed: an algorithm of attention or of"
    ):
        iomodel.estimate_array("fused_mlp", "h100-sxm5", tokens=[1, 2], in_features=64, hidden_features=64)
    layer = {"rows": 4, "in_features": 256, "out_features": 64, "weight_dtype": "int4"}
    with pytest.raises(iomodel.InputError, match="scale_block: an array given"):
        iomodel.estimate_array("gemm", "h100-sxm5", **layer, scale_block=[32, 64])
    with pytest.raises(iomodel.InputError, match="implementation: 'textbook' given"):
        iomodel.estimate_array("gemm", "h100-sxm5", rows=4, in_features=64, out_features=64, implementation="textbook")
