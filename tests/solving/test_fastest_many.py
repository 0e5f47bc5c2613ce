"""Solutions of arrays of calls by time, and what is refused; each is that of its call alone (tests/laws)."""

from __future__ import annotations

from typing import Any

import pytest

import iomodel


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
