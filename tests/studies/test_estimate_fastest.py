"""The tiles of least time are those of an exhaustive search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import iomodel
from iomodel import Hardware, hardware
from tests.support.estimate_calls import A100, FAST, H100, NEAR, Asked, calls, some
from tests.support.inside import implementation_for


@dataclass(frozen=True)
class Small:
    """A call whose tiles are few."""

    algorithm: str
    workload: iomodel.Attention
    device: Hardware
    options: Mapping[str, Any]


@st.composite
def small_calls(draw: st.DrawFn) -> Small:
    name, direction = draw(st.sampled_from([*FAST, ("flash1", "forward"), ("flash1", "backward")]))
    device = H100 if name == "flash3" else draw(st.sampled_from([A100, H100, hardware("rtx4090")]))
    shape = {
        "batch": draw(st.sampled_from([1, 40])),
        "heads": draw(st.sampled_from([1, 4])),
        "q_len": draw(st.integers(1, 100)),
        "kv_len": draw(st.integers(1, 100)),
        "head_dim": 64,
        "mask": draw(st.sampled_from(["full", "causal"])),
    }
    call = iomodel.Attention(direction=direction, **shape)
    kernels = draw(st.sampled_from(iomodel.list_implementations(name, device, call)[:-1]))
    return Small(name, call, device, {"implementation": kernels})


@some(12)
@given(call=small_calls())
def test_the_fastest_tiles_are_those_of_an_exhaustive_search(call: Small) -> None:
    w = call.workload
    last = 192, 128  # what twelve and eight warps multiply at once, more than the sequences have
    best = inf
    for block_q, block_kv in product(*(range(16, most + 1, 16) for most in last)):
        for warps, stages in product((4, 8, 12), (1, 2)):
            tiles = {"block_q": block_q, "block_kv": block_kv, "warps": warps, "stages": stages}
            if fits(call, tiles):
                found = iomodel.estimate(call.algorithm, w, call.device, tiles, **call.options)
                best = min(best, found.seconds)
    solved = iomodel.solve(call.algorithm, w, call.device, objective="time", **call.options)
    assert solved.seconds == pytest.approx(best, rel=1e-12)
    assert solved.placed is not None
    assert solved.placed.fits
    answer = iomodel.estimate(call.algorithm, w, call.device, solved.tiles, **call.options)
    assert answer.seconds == pytest.approx(best, rel=1e-12)
    assert answer.tiles == solved.tiles
    runner_up = solved.certificate.runner_up
    if runner_up is not None:
        assert runner_up.seconds > solved.seconds
        searched = {name: runner_up.tiles[name] for name in ("splits",) if name in runner_up.tiles}
        searched |= {"packed": True} if runner_up.tiles.get("packed") else {}
        tile = {name: size for name, size in runner_up.tiles.items() if name not in ("splits", "packed")}
        slower = iomodel.estimate(call.algorithm, w, call.device, tile, **{**call.options, **searched})
        assert slower.seconds == pytest.approx(runner_up.seconds)


def fits(call: Small, tiles: Mapping[str, int]) -> bool:
    try:
        return iomodel.check(call.algorithm, call.workload, call.device, tiles, **call.options).fits
    except iomodel.InputError:  # warps or stages that no kernel is launched with
        return False


@some(5)
@given(asked=calls(features=False))
def test_without_tiles_it_takes_the_shipped_or_the_fastest(asked: Asked) -> None:
    """No tile is faster than those that are chosen, unless the kernels ship another for the call."""
    w = asked.workload
    small = replace(asked.grown(q_len=min(w.q_len, 300), kv_len=min(w.kv_len, 300)), options={})
    chosen = replace(small, tiles=None).estimate()
    assert replace(small, tiles=chosen.tiles).estimate().seconds == pytest.approx(chosen.seconds)
    kernels = implementation_for(small.algorithm, small.workload, small.device)
    if "warps" in chosen.tiles and not kernels.tiles:
        assert chosen.seconds <= small.estimate().seconds * NEAR


def test_the_fastest_tiles_of_a_long_call_are_taken() -> None:
    w = iomodel.Attention(batch=4, heads=16, q_len=4096, head_dim=64)
    best = iomodel.solve("flash2", w, A100, objective="time")
    found = iomodel.estimate("flash2", w, A100, best.tiles)
    assert found.tiles == best.tiles
    assert found.seconds == best.seconds
    assert best.tiles["block_q"] > 64
    least = iomodel.solve("flash2", w, A100, objective="traffic")
    assert iomodel.estimate("flash2", w, A100, least.tiles).seconds > found.seconds
    assert least.cost.hbm_bytes <= best.cost.hbm_bytes


@some(6)
@given(
    kv_len=st.sampled_from([1000, 30000, 131072]),
    heads=st.sampled_from([(1, 1), (8, 1), (32, 8)]),
)
def test_decoding_is_split_where_no_implementation_runs(kv_len: int, heads: tuple[int, int]) -> None:
    """A device of the user's own, without an architecture; a shipped one without a kernel is refused."""
    device = hardware("tpu-v5e").model_copy(update={"architecture": None, "id": None})
    w = iomodel.Attention(heads=heads[0], kv_heads=heads[1], q_len=1, kv_len=kv_len, head_dim=128)
    assert iomodel.list_implementations("split_kv", device, w) == ["textbook"]
    found = iomodel.estimate("split_kv", w, device)
    given = [
        iomodel.estimate("split_kv", w, device, splits=splits, packed=packed)
        for splits in (1, 2, 4, 8, 16)
        for packed in {False, heads[0] > heads[1]}
    ]
    assert found.seconds <= min(one.seconds for one in given) * (1 + 1e-12)


@some(10)
@given(call=small_calls(), sizes=st.tuples(st.sampled_from([16, 32, 64]), st.sampled_from([32, 64, 128])))
def test_no_launch_configuration_left_out_is_faster(call: Small, sizes: tuple[int, int]) -> None:
    tiles = dict(zip(("block_q", "block_kv"), sizes, strict=True))
    found = []
    for warps, stages in product((1, 2, 4, 8, 12), (1, 2, 3)):
        launched = {**tiles, "warps": warps, "stages": stages}
        if fits(call, launched):
            found.append(iomodel.estimate(call.algorithm, call.workload, call.device, launched, **call.options))
    assume(found)
    chosen = iomodel.estimate(call.algorithm, call.workload, call.device, tiles, **call.options)
    assert chosen.seconds == min(one.seconds for one in found)
