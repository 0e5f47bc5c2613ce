"""The fastest tiles of arrays of calls, against the solver of each call."""

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
    ("split_kv", "h100-sxm5", "forward"),
]
WINDOW = iomodel.Window(left=300, right=0)


def calls(seed: int, size: int, name: str) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    kv_heads = rng.choice([1, 2, 4], size)
    q_len = rng.integers(1, 9 if name == "split_kv" else 3000, size)
    return {
        "batch": rng.integers(1, 9, size), "kv_heads": kv_heads, "heads": kv_heads * rng.choice([1, 4], size),
        "q_len": q_len, "kv_len": q_len + rng.integers(0, 3000, size), "head_dim": rng.choice([64, 128], size),
    }  # fmt: skip


@example(0, KERNELS[4], "full", {})
@example(1, KERNELS[0], WINDOW, {})
@example(2, KERNELS[3], "causal", {"packed": True})
@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(KERNELS[:3]),
    mask=st.sampled_from(["full", "causal"]),
    more=st.sampled_from([{}, {"min_block_kv": 48}, {"packed": False}]),
)
def test_every_call_has_the_time_of_its_own_solution(
    seed: int, kernel: tuple[str, str, str], mask: Any, more: dict[str, Any]
) -> None:
    name, device, direction = kernel
    asked = {**calls(seed, 2, name), "mask": mask, "direction": direction, **more}
    each_is_solved(name, device, asked)


@pytest.mark.parametrize("lengths", [((199, 4), (1026, 15)), ((1026, 15), (199, 4)), ((128, 4), (130, 1))])
def test_packing_is_searched_by_the_rows_of_each_call(lengths: tuple[tuple[int, int], ...]) -> None:
    """The longest queries with the heads of the first call fill tiles otherwise than those of any call."""
    q_len, group = np.transpose(lengths)
    asked = {"q_len": q_len, "kv_len": [18594, 361], "heads": 4 * group, "kv_heads": 4, "head_dim": 64}
    each_is_solved("flash3", "h100-sxm5", {**asked, "mask": "causal"})


def each_is_solved(name: str, device: str, asked: dict[str, Any]) -> None:
    """Check the times, tiles and searched options of two calls against the solver."""
    found = iomodel.solve_many(name, device, objective="time", infeasible="mark", **asked)
    for place in range(2):
        try:
            one = found.solution(place)
        except iomodel.InfeasibleError:
            assert not found.feasible[place]
            continue
        assert found.seconds[place] == pytest.approx(one.seconds, rel=1e-12)
        tiles = {tile: int(sizes[place]) for tile, sizes in found.tiles.items()}
        options = {option: int(found.searched[option][place]) for option in one.searched}
        assert (tiles, options) == (dict(one.tiles), {option: int(one.options[option]) for option in one.searched})
        assert found.hbm_bytes[place] == one.cost.hbm_bytes


def test_the_counts_of_the_tiles_are_at_hand() -> None:
    found = iomodel.solve_many("flash2", "a100-sxm4-80gb", objective="time", q_len=[512, 4096], head_dim=64)
    assert (found.cost.hbm_bytes == found.hbm_bytes).all()
    assert (found.ratio >= 1).all()
    assert list(found.tiles) == ["block_q", "block_kv", "warps", "stages"]
    again = iomodel.Solutions.from_json(found.to_json())
    assert again == found
    assert again.seconds.tolist() == found.seconds.tolist()
    assert len(found.to_pandas()) == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"sram_bytes": 1000}, "sram_bytes: 1000 given; allowed: none, with objective='time'"),
        ({"epsilon": 0.1}, "epsilon: 0.1 given"),
        ({"hardware": None}, "hardware: not given"),
        ({"hardware": "tpu-v4"}, "objective: 'time' given with no implementation"),
        ({"direction": "both"}, "objective: 'time' given; allowed: attention in one direction"),
        ({"dtype": ["bf16", "fp16"]}, "dtype: an array given"),
        ({"objective": "speed"}, "objective"),
        ({"objective": "traffic", "implementation": "triton"}, "implementation: 'triton' given"),
        ({"min_block_kv": [16, 32]}, "min_block_kv"),
    ],
)
def test_wrong_arguments_are_one_line(more: dict[str, Any], message: str) -> None:
    asked = {"hardware": "h100-sxm5", "objective": "time", "q_len": [64, 128], "head_dim": 64, **more}
    with pytest.raises(iomodel.IOModelError, match=message) as error:
        iomodel.solve_many("flash2", **asked)
    assert "\n" not in str(error.value)
