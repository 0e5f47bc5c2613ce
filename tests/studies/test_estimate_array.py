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
]
MASKS: list[Any] = ["full", "causal", iomodel.Window(left=300, right=0), iomodel.Window(right=7, align="top-left")]


def points(seed: int, size: int, algorithm: str) -> dict[str, Any]:
    """Lengths, heads, widths and tiles of random calls."""
    rng = np.random.default_rng(seed)
    kv_heads, q_len = rng.choice([1, 2, 4], size), rng.integers(1, 5000, size)
    if algorithm == "split_kv":
        q_len = rng.integers(1, 9, size)
    found = {
        "batch": rng.integers(1, 5, size), "kv_heads": kv_heads, "heads": kv_heads * rng.choice([1, 2, 8], size),
        "q_len": q_len, "kv_len": q_len + rng.integers(0, 3000, size), "head_dim": rng.choice([64, 96, 128], size),
    }  # fmt: skip
    if algorithm != "standard":
        found |= {"block_q": rng.choice([64, 128, 192], size), "block_kv": rng.choice([16, 64, 100, 128], size)}
    return found


@example(0, KERNELS[0], "causal", {})
@example(1, KERNELS[7], "full", {"splits": 3})
@example(2, KERNELS[2], "causal", {"warps": 8, "packed": True})
@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(KERNELS),
    mask=st.sampled_from(MASKS),
    given=st.sampled_from([{}, {"packed": True}, {"packed": False}]),
)
def test_every_point_is_its_estimate(seed: int, kernel: Any, mask: Any, given: dict[str, Any]) -> None:
    algorithm, device, direction = kernel
    arguments = {**points(seed, 6, algorithm), **given, "mask": mask, "direction": direction}
    found = iomodel.estimate_array(algorithm, device, infeasible="mark", **arguments)
    for place in range(6):
        try:
            one = found.at(place)
        except iomodel.InfeasibleError:
            assert not found.feasible[place]
            continue
        assert found.seconds[place] == pytest.approx(one.seconds, rel=1e-9)
        assert found.mfu[place] == pytest.approx(one.mfu, rel=1e-9)
        for name, seconds in found.breakdown.items():
            assert seconds[place] == pytest.approx(one.breakdown.get(name, 0.0), rel=1e-6, abs=1e-15)
        for name, chosen in found.chosen.items():
            assert chosen[place] == {**one.cost.options, **one.tiles}[name]


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
        ({"mask": iomodel.Documents([64])}, "mask: data given"),
        ({"direction": "both"}, "direction: 'both' given"),
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


def test_linear_layers_have_no_array_of_times() -> None:
    with pytest.raises(iomodel.InputError, match="algorithm: gemm given"):
        iomodel.estimate_array("gemm", "h100-sxm5", rows=[1, 2], in_features=64, out_features=64)
