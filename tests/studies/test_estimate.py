"""Seconds: what any answer must obey, whatever the algorithm, the device and the tiles."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel
from iomodel import hardware, list_implementations, lower_bounds
from iomodel.algorithms import algorithm
from tests.support.device_edits import edited
from tests.support.estimate_calls import DEVICES, GPUS, H100, NEAR, WAYS, Asked, calls


@given(asked=calls())
def test_no_time_is_below_the_floor(asked: Asked) -> None:
    found, w = asked.estimate(), asked.workload
    peak, bandwidth = found.rates.peak, found.rates.hbm_peak
    assert found.seconds * NEAR >= found.cost.useful_flops / peak
    assert (
        found.seconds * NEAR
        >= lower_bounds(w, algorithm=asked.algorithm, sram_elements=1)["compulsory"].bytes / bandwidth
    )
    assert found.floor == max(found.cost.useful_flops / peak, found.compulsory_bytes / bandwidth)
    assert 0 < found.seconds < inf
    assert 0 <= found.mfu <= 1
    assert found.flops_per_second * found.seconds == pytest.approx(found.cost.useful_flops)
    assert found.ridge == peak / bandwidth
    assert found.cost == iomodel.cost(asked.algorithm, w, asked.tiles, **asked.options)


@given(asked=calls())
def test_dram_traffic_is_between_once_and_every_request(asked: Asked) -> None:
    found = asked.estimate()
    low, high = found.dram_bytes
    assert 0 < found.compulsory_bytes <= low <= high <= found.requested_bytes == found.cost.hbm_bytes
    assert (
        found.compulsory_bytes
        == lower_bounds(asked.workload, algorithm=asked.algorithm, sram_elements=1)["compulsory"].bytes
    )
    assert low <= found.streamed_bytes <= high
    assert found.intensity == found.cost.useful_flops / found.streamed_bytes
    assert low <= max(found.compulsory_bytes, sum(kernel.dram_bytes[0] for kernel in found.kernels))
    assert sum(kernel.requested_bytes for kernel in found.kernels) == found.requested_bytes
    for kernel in found.kernels:
        least, most = kernel.dram_bytes
        assert 0 < kernel.distinct_bytes <= least <= most <= kernel.requested_bytes
        assert kernel.distinct_bytes <= kernel.streamed_bytes <= kernel.requested_bytes
        if kernel.lock_step_bytes is not None:
            assert least <= kernel.lock_step_bytes <= most


@example(  # atomic additions and requests go through one L2
    Asked(
        "flash2",
        iomodel.Attention(
            batch=3, heads=8, kv_heads=2, q_len=1000, kv_len=2000, head_dim=128, mask="causal", direction="backward"
        ),
        hardware("h200-sxm"),
        {"block_q": 32, "block_kv": 16},
        {},
    )
)
@example(  # exponentials that are slower than all else
    Asked(
        "flash3",
        iomodel.Attention(batch=4, heads=16, q_len=2048, head_dim=64),
        edited(H100, {"measured.exp": 1e11}),
        {"block_q": 128, "block_kv": 128},
        {},
    )
)
@given(asked=calls())
def test_a_breakdown_says_what_binds(asked: Asked) -> None:
    found = asked.estimate()
    assert found.breakdown[found.limited_by] == max(found.breakdown.values())
    work, launches = sum(kernel.seconds for kernel in found.kernels), found.parameters.host_launch * len(found.kernels)
    assert found.seconds == pytest.approx(max(work, launches))
    for part in (found, *found.kernels):
        assert min(part.breakdown.values()) >= 0
        assert all(value <= part.seconds * NEAR for value in part.breakdown.values()), part.breakdown
    for name, value in found.breakdown.items():
        if name == "launch" and launches > work:
            assert value == found.seconds
            continue
        assert value == pytest.approx(sum(kernel.breakdown.get(name, 0) for kernel in found.kernels))
    assert all(kernel.blocks > 0 and kernel.waves > 0 for kernel in found.kernels)


@given(asked=calls(), warps=st.sampled_from([None, 4, 8, 12]))
def test_an_answer_is_that_of_its_own_tiles(asked: Asked, warps: int | None) -> None:
    """The fastest way to run a tile is one of the ways; asked for by name it takes as long."""
    found = asked.estimate()
    assert {name: found.tiles[name] for name in asked.tiles or {}} == asked.tiles
    if asked.workload.direction != "both":
        assert replace(asked, tiles=found.tiles).estimate() == found
    if warps is not None:
        assert replace(asked, tiles={**(asked.tiles or {}), "warps": warps}).estimate().seconds >= found.seconds


@given(asked=calls(DEVICES, [way for way in WAYS if way[1] == "both"]))
def test_both_directions_are_the_one_and_the_other(asked: Asked) -> None:
    together = asked.estimate()
    name, options = asked.algorithm, dict(asked.options)
    forward, backward = (
        iomodel.estimate(
            name,
            asked.workload.model_copy(update={"direction": way}),
            asked.device,
            {
                tile: (asked.tiles or {}).get(f"bwd_{tile}" if way == "backward" else tile, (asked.tiles or {})[tile])
                for tile in iomodel.expressions(
                    name, direction=way, **({"tiled": bool(asked.tiles)} if name == "standard" else {})
                ).tiles
            },
            implementation=asked.implementation,
            **options,
            **(algorithm(name).saved if way == "forward" else {}),
        )
        for way in ("forward", "backward")
    )
    work = sum(kernel.seconds for kernel in together.kernels)
    assert together.seconds == pytest.approx(max(work, together.parameters.host_launch * len(together.kernels)))
    assert together.seconds <= (forward.seconds + backward.seconds) * NEAR
    assert together.kernels == (*forward.kernels, *backward.kernels)
    assert together.requested_bytes == forward.requested_bytes + backward.requested_bytes


@given(asked=calls(), host=st.sampled_from([0.0, 1e-7, 5e-5, 1.0]))
def test_a_host_launches_one_kernel_after_the_other(asked: Asked, host: float) -> None:
    free = asked.estimate()
    found = asked.estimate(parameters=iomodel.devices.Parameters(host_launch=host))
    assert found.seconds == pytest.approx(max(free.seconds, host * len(free.kernels)))
    assert found.breakdown.get("launch", 0.0) <= found.seconds * NEAR
    if host * len(free.kernels) > free.seconds:
        assert found.limited_by == "launch"


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        ("flash2", iomodel.Attention(heads=8, q_len=512, head_dim=128)),
        ("standard", iomodel.Attention(heads=8, q_len=512, head_dim=128)),
        ("split_kv", iomodel.Attention(heads=8, q_len=1, kv_len=4096, head_dim=128)),
        ("gemm", iomodel.Linear(rows=8, in_features=512, out_features=512)),
    ],
)
def test_kernels_with_products_start_from_a_graph_in_arrays_too(
    name: str, workload: iomodel.Attention | iomodel.Linear
) -> None:
    parameters = iomodel.devices.Parameters(in_graph=1.0)
    one = iomodel.estimate(name, workload, H100, parameters=parameters)
    many = iomodel.estimate_array(name, workload, H100, parameters=parameters)
    assert many.seconds == pytest.approx(one.seconds)
    assert many.breakdown["launch"] == pytest.approx(one.breakdown["launch"])
    assert one.breakdown["launch"] < iomodel.estimate(name, workload, H100).breakdown["launch"]


@given(call=calls(GPUS, [("split_kv", "forward")], features=False))
def test_one_split_is_no_split(call: Asked) -> None:
    """Nothing is combined, and no kernel launched for it."""
    names = [list_implementations(name, call.device, call.workload) for name in ("split_kv", "flash2")]
    same = {"implementation": next(name for name in names[0] if name in names[1])}
    alone = replace(call, options={**call.options, "splits": 1}).estimate(**same)
    plain = replace(call, algorithm="flash2", options={"packed": call.options["packed"]}).estimate(**same)
    assert len(alone.kernels) == 1
    assert alone.seconds == pytest.approx(plain.seconds)


@given(asked=calls())
def test_an_answer_is_plain_data_and_a_table(asked: Asked) -> None:
    found = asked.estimate()
    data = json.loads(json.dumps(found.to_dict()))
    assert data["seconds"] == found.seconds
    assert data["breakdown"] == dict(found.breakdown)
    assert data["dram_bytes"] == list(found.dram_bytes)
    assert [kernel["title"] for kernel in data["kernels"]] == [kernel.title for kernel in found.kernels]
    assert json.loads(found.to_json()) == data if hasattr(found, "to_json") else True
    rounded = {f"{found.seconds * (1e6 + off):,.1f}" for off in (-1e-6, 1e-6)}  # a half goes either way
    assert any(figure in str(found) for figure in rounded)
