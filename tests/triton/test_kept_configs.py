"""Pruning in a launch: it never raises, a config without rules is kept, counted and named."""

from __future__ import annotations

import warnings
from collections import namedtuple
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from tests.support import autotuner
from tests.support.inside import check_triton

VERSION = "3.9.0"
CALL = iomodel.Attention(batch=4, heads=32, q_len=4096, head_dim=128)
BACKWARD = CALL.model_copy(update={"direction": "backward"})
Config = autotuner.Config


def pruner(call: Any = CALL, device: str = "h100-sxm5", **more: Any) -> Any:
    return iomodel.triton.pruner(call, device, **{"version": VERSION, **more})


@dataclass
class FlexConfig:
    """PyTorch's form of a config."""

    block_m: int
    block_n: int
    num_stages: int
    num_warps: int


class Slotted:
    __slots__ = ("BLOCK_M", "BLOCK_N", "num_stages", "num_warps")

    def __init__(self, *values: int) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            setattr(self, name, value)


Row = namedtuple("Row", "block_m block_n num_stages num_warps")


def test_a_config_has_any_form() -> None:
    keep = pruner(top=None)
    forms = [
        Config({"BLOCK_M": 128, "BLOCK_N": 64}, 8, 3), FlexConfig(128, 64, 3, 8), Row(128, 64, 3, 8),
        Slotted(128, 64, 3, 8), {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8, "num_stages": 3},
    ]  # fmt: skip
    judged = keep.judge(forms, {})
    assert {(each.seconds, each.check) for each in judged} == {(judged[0].seconds, judged[0].check)}
    assert judged[0].check == check_triton(128, 64, 128, warps=8, stages=3, arch=90, version=VERSION)


sizes = st.sampled_from([16, 32, 64, 96, 128, 256, 0, -1, True, None, "64", 1.5])
odd = st.one_of(
    st.none(), st.integers(), st.text(max_size=3), st.just(object()),
    st.fixed_dictionaries(
        {"BLOCK_M": sizes, "BLOCK_N": sizes},
        optional={
            "num_warps": st.sampled_from([1, 2, 3, 4, 8, 16, 0, "4", None]),
            "num_stages": st.sampled_from([1, 3, 0, None]),
            "num_ctas": st.sampled_from([1, 2, "2"]), "maxnreg": st.sampled_from([None, 96, 168]),
            "WARP_SPECIALIZE": st.booleans(), "EVEN_K": st.booleans(),
        },
    ),
)  # fmt: skip


@given(
    st.lists(odd, max_size=5), st.sampled_from(["forward", "backward", "matmul", "matmul_gated", "decode"]),
    st.sampled_from(["a100-sxm4-80gb", "b300", "gb10", "t4", "mi300x"]),
    st.sampled_from([CALL, None, lambda _: 1 / 0, CALL.model_copy(update={"dtype": "fp32"})]),
    st.sampled_from([{}, {"HEAD_DIM": 128}, {"N_CTX": 4096, "HEAD_DIM": 64}]),
)  # fmt: skip
def test_no_list_ends_a_launch(configs: Any, kernel: str, device: str, call: Any, arguments: Any) -> None:
    """Every config is kept, too large, or behind the `top`; one without rules is always kept."""
    keep = pruner(call, device, kernel=kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = keep(configs, arguments)
    pruned, judged = keep.pruned(configs, arguments), keep.judge(configs, arguments)
    assert kept == [*pruned.kept]
    assert bool(kept) == bool(configs)
    assert sum(pruned.unjudged.values()) + pruned.too_large <= pruned.given == len(configs)
    unjudged = [each.config for each in judged if each.fits is None]
    assert kept[len(kept) - len(unjudged) :] == unjudged
    assert sum(pruned.unjudged.values()) == len(unjudged)
    assert bool(unjudged) <= bool(pruned.note)
    assert "\n" not in pruned.note


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"num_ctas": 2}, "num_ctas: 2 given; allowed: 1, the layout of one block is known"),
        ({"maxnreg": 168}, "maxnreg: 168 given; allowed: none, Triton's own choice is known"),
        ({"WARP_SPECIALIZE": True}, "WARP_SPECIALIZE: True given; allowed: False, the layout of warps without roles"),
        ({"BLOCK_N": 96}, "N: 96 given; allowed: a power of two"),
    ],
)
def test_a_config_without_rules_is_kept_last_and_named(change: dict[str, Any], reason: str) -> None:
    plain = [{"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": stages} for stages in (2, 3)]
    other = plain[0] | change
    with pytest.warns(UserWarning, match=f"1 of 3 configs kept without a check: {reason}"):
        kept = pruner(top=1)([other, *plain], {})
    assert kept[-1] is other
    assert len(kept) == 2


def test_a_launch_without_sizes_is_judged_by_its_memory() -> None:
    wide = {"BLOCK_M": 128, "BLOCK_N": 256, "num_stages": 5}
    configs = [{"BLOCK_M": 64, "BLOCK_N": 64, "num_stages": 2}, wide]
    with pytest.warns(UserWarning, match=r"kept by memory alone: names: no q_len among the arguments"):
        kept = pruner(None)(configs, {"HEAD_DIM": 128})
    assert kept == configs[:1]


def test_where_none_fits_the_smallest_is_left_for_triton_to_report() -> None:
    configs = [{"BLOCK_M": 256, "BLOCK_N": 256, "num_warps": 8, "num_stages": stages} for stages in (5, 4, 3)]
    with pytest.warns(UserWarning, match=r"none of 3 configs fits h100-sxm5; .* least shared memory, 458,752 B"):
        assert pruner()(configs, {}) == configs[2:]
    assert pruner()([], {}) == []


def test_a_device_without_a_peak_is_judged_by_its_memory() -> None:
    """GB10's file has no rate of bf16."""
    call = CALL.model_copy(update={"dtype": "bf16"})
    configs = [{"BLOCK_M": 64, "BLOCK_N": 64, "num_stages": stages} for stages in (2, 5)]
    assert pruner(call, "gb10").pruned(configs).kept == (configs[0],)
    assert pruner(call, "b300").pruned(configs).too_large == 0
    assert pruner(call, "t4").pruned(configs).kept == tuple(configs)
    assert pruner(call, "mi300x").pruned(configs).kept == tuple(configs)


# --- tiles


def backward(m1: int, n1: int, m2: int, n2: int, arch: int = 86) -> Any:
    return check_triton(m1, n1, 128, stages=2, arch=arch, kernel="backward", dq_tile=(m2, n2), version=VERSION)


def test_all_tiles_of_a_backward_config_are_read() -> None:
    """Tiles of dQ beside equal tiles of dK and dV change the memory and the time."""
    names = ("BLOCK_M1", "BLOCK_N1", "BLOCK_M2", "BLOCK_N2")
    keep = pruner(BACKWARD, "a100-sxm4-80gb", kernel="backward", top=None)
    tiles = (64, 64, 64, 64), (64, 64, 128, 128), (32, 64, 128, 32)
    configs = [Config(dict(zip(names, each, strict=True)), 4, 2) for each in tiles]
    judged = keep.judge(configs, {})
    assert len({each.check.shared for each in judged}) == len({each.seconds for each in judged}) == 3
    assert [each.check for each in judged] == [backward(*each, arch=80) for each in tiles]
    assert keep.pruned(configs).unread == ()
    two = Config({"BLOCK_M1": 32, "BLOCK_N1": 64}, 4, 2)
    assert keep.judge([two], {})[0].tiles == (32, 64, 64, 32)


def test_a_tile_that_is_not_read_is_named() -> None:
    keep = pruner()
    config = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_D": 64, "PRE_LOAD_V": True, "num_warps": 4}
    pruned = keep.pruned([config])
    assert pruned.unread == ("BLOCK_D", "PRE_LOAD_V")
    assert pruned.note == "iomodel.triton: not read: BLOCK_D; names= binds a tile"


# --- matrix products


def test_a_list_of_matrix_products_is_cut_by_memory_alone() -> None:
    """The 108 configs that unsloth tunes its grouped product over: https://github.com/unslothai/unsloth."""
    listed = [
        Config({"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k}, warps, stages)
        for m, n, k, warps, stages in product((64, 128), (64, 128, 256), (64, 128, 256), (4, 8), (3, 4, 5))
    ]
    keep = iomodel.triton.pruner(None, "a100-sxm4-80gb", kernel="matmul", version=VERSION)
    pruned = keep.pruned(listed)
    assert len(pruned.kept) + pruned.too_large == len(listed) == 108
    assert [*pruned.kept] == [config for config in listed if config in pruned.kept]
    copies = [
        (config.num_stages - 1) * 2 * (tile["BLOCK_SIZE_M"] + tile["BLOCK_SIZE_N"]) * tile["BLOCK_SIZE_K"]
        for config in listed
        for tile in (config.kwargs,)
    ]
    assert pruned.too_large == sum(size > 166_912 for size in copies) > 40
    with pytest.raises(iomodel.InputError, match=r"^top: 8 given; allowed: None, a matrix product is judged by"):
        iomodel.triton.pruner(None, "a100-sxm4-80gb", kernel="matmul", top=8)


def test_two_accumulators_stream_two_right_tiles() -> None:
    """A compile of Liger's up-projection by Triton 3.9.0: https://github.com/linkedin/Liger-Kernel at ead96b61."""
    given = {"warps": 2, "stages": 5, "arch": 80, "version": VERSION}
    assert check_triton(128, 128, 128, kernel="matmul_gated", **given).shared == 393_216
    assert check_triton(128, 128, 128, kernel="matmul", **given).shared == 262_144
