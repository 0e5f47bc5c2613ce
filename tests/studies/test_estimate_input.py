"""Bad input to an estimate is refused in one clear line."""

from __future__ import annotations

from dataclasses import fields
from math import inf, nan
from typing import Any

import pytest

import iomodel
from iomodel import InfeasibleError, InputError, IOModelError, UnknownNameError
from iomodel.errors import SpecError
from tests.support.estimate_calls import A100

W = iomodel.Attention(heads=8, q_len=512, head_dim=64)


BOTH = W.model_copy(update={"direction": "both"})


TILES, FP8 = {"block_q": 64, "block_kv": 64}, {"dtype": "fp8"}


@pytest.mark.parametrize(
    ("error", "text", "change"),
    [
        (UnknownNameError, "hardware: 'h1000' is unknown", {"hardware": "h1000"}),
        (InputError, "hardware: None given", {"hardware": None}),
        (UnknownNameError, "algorithm: 'flash9' is unknown", {"algorithm": "flash9"}),
        (InputError, "workload: 3 given", {"workload": 3}),
        (SpecError, "compute.peak.fp8: a100-sxm4-80gb lacks it", {"workload": W.model_copy(update=FP8)}),
        (SpecError, "compute.peak.fp8: a100-sxm4-80gb", {"algorithm": "fa2", "workload": W.model_copy(update=FP8)}),
        (SpecError, "compute.peak.bf16: t4 lacks it", {"hardware": "t4"}),
        (InputError, "FlashAttention-2 has no kernel for NVIDIA V100", {"hardware": "v100-sxm2-32gb"}),
        (InputError, r"t4 \(compute capability 7.5\) given; allowed: .* 8.0", {"hardware": "t4", "algorithm": "fa2"}),
        (SpecError, "compute.peak.bf16: t4 lacks it", {"hardware": "t4", "algorithm": "standard"}),
        (InfeasibleError, "they exceed shared memory by .* B", {"tiles": {"block_q": 512, "block_kv": 512}}),
        (
            InfeasibleError,
            "they exceed registers by",
            {"algorithm": "fa2", "tiles": {"block_q": 256, "block_kv": 128, "warps": 4}},
        ),
        (InfeasibleError, "^block_q: 60 given; allowed: multiples of 64", {"tiles": {"block_q": 60, "block_kv": 64}}),
        (
            InfeasibleError,
            "^block_q: 60 given; allowed: multiples of 64",
            {"algorithm": "fa2", "tiles": {"block_q": 60, "block_kv": 64}},
        ),
        (InputError, "warps", {"tiles": {**TILES, "warps": 3}}),
        (InputError, "warps: 0 given", {"tiles": {**TILES, "warps": 0}}),
        (InputError, "warps: nan given", {"tiles": {**TILES, "warps": nan}}),
        (InputError, "stages", {"tiles": {**TILES, "stages": 9}}),
        (InputError, "block_q, block_kv: flash2 needs these tiles", {"tiles": {"warps": 4}}),
        (InputError, "block_q: -1 given", {"tiles": {"block_q": -1, "block_kv": 64}}),
        (InputError, "block_kv: 1.5 given", {"tiles": {"block_q": 64, "block_kv": 1.5}}),
        (UnknownNameError, "tile of flash2: 'block_z' is unknown", {"tiles": {**TILES, "block_z": 64}}),
        (InputError, "tiles: 7 given", {"tiles": 7}),
        (InputError, "parameters: 'fast' given", {"parameters": "fast"}),
        (UnknownNameError, "implementation of flash2: 'fast' is unknown", {"implementation": "fast"}),
        (UnknownNameError, "option of flash2: 'speed' is unknown", {"speed": 1}),
        (InputError, "lse: \\[1\\] given", {"lse": [1]}),
        (InputError, "lse: 2 given", {"lse": 2}),
        (InputError, "direction: 'both' given", {"algorithm": "two_pass", "workload": BOTH}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("with_tiles", [True, False])
def test_bad_input_is_one_clear_line(
    error: type[Exception], text: str, change: dict[str, Any], with_tiles: bool
) -> None:
    given_: dict[str, Any] = {
        "algorithm": "flash2",
        "workload": W,
        "hardware": A100,
        "tiles": TILES if with_tiles else None,
    }
    with pytest.raises(error, match=text) as refused:
        iomodel.estimate(**{**given_, **change})
    assert isinstance(refused.value, IOModelError)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [field.name for field in fields(iomodel.devices.Parameters)])
@pytest.mark.parametrize("value", [-1, -1e-9, nan, inf, -inf, True, None, "1", 10**400])
def test_a_parameter_is_a_number_from_zero_up(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name}: .* given; allowed: ") as refused:
        iomodel.devices.Parameters(**{name: value})
    assert "\n" not in str(refused.value)
    assert iomodel.estimate("flash2", W, A100, TILES, parameters=iomodel.devices.Parameters(**{name: 0})).seconds > 0
