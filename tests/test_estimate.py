"""Seconds: laws that any time must obey, whatever the algorithm, the device and the tiles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from math import inf, nan
from typing import Any

import pytest
from hypothesis import Phase, assume, example, given, reject, settings
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from iomodel.bounds import lower_bounds
from iomodel.demand import Demand
from iomodel.demands import demands
from iomodel.errors import InfeasibleError, InputError, IOModelError, SpecError, UnknownNameError
from iomodel.expressions import kind_of, structural
from iomodel.hardware import Hardware, hardware, list_hardware
from iomodel.rates import rates
from iomodel.shared_traffic import Layout
from iomodel.timing import Launched, kernel_time
from tests.hardware_edits import edited, scaled

DEVICES = [hardware(name) for name in list_hardware()]
GPUS = [device for device in DEVICES if device.vendor == "NVIDIA"]
A100, H100 = hardware("a100-sxm4-80gb"), hardware("h100-sxm5")
WAYS = [(name, way) for name in iomodel.list_algorithms() for way in algorithm(name).directions]
NEAR = 1 + 1e-9
"""Sums of the same seconds in another order."""


DILUTED = 1.01
"""What a block does once is stretched like its visits, of which a longer call may have more even ones."""


def some(share: int) -> settings:
    """The profile's number of examples divided by `share`, for a test whose examples are slow: too slow to shrink."""
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=max(4, settings().max_examples // share), phases=phases)


@dataclass(frozen=True)
class Asked:
    """What `iomodel.estimate` takes."""

    algorithm: str
    workload: iomodel.Attention
    device: Hardware
    tiles: Mapping[str, int] | None
    options: Mapping[str, Any]

    def estimate(self, **more: Any) -> iomodel.Estimate:
        """The answer; an example without one is none."""
        try:
            return iomodel.estimate(self.algorithm, self.workload, self.device, self.tiles, **{**self.options, **more})
        except (InfeasibleError, SpecError, InputError):
            reject()

    def grown(self, **changes: Any) -> Asked:
        return replace(self, workload=self.workload.model_copy(update=changes))


lengths = st.integers(1, 300) | st.sampled_from([512, 1000, 1024, 4096, 5000])
sides = st.none() | st.integers(0, 300)
windows = st.builds(iomodel.Window, left=st.integers(0, 300), right=st.just(0)) | st.builds(
    iomodel.Window, right=st.integers(0, 300), align=st.just("top-left")
)
masks = st.sampled_from(["full", "causal"]) | windows
rows = st.sampled_from([16, 32, 64, 128])


DTYPES = ("bf16", "fp16", "fp8", "int8", "fp32")
FEATURES = {"bias": True, "dropout": 0.1, "sinks": True}


@st.composite
def calls(
    draw: st.DrawFn, devices: list[Hardware] = DEVICES, ways: list[tuple[str, str]] = WAYS, features: bool = True
) -> Asked:
    """A call with tiles; masks, packing and features that are folded anew only where FlashAttention-2 meets them."""
    name, direction = draw(st.sampled_from(ways))
    device = draw(st.sampled_from(devices))
    every = (name, direction) == ("flash2", "forward")
    dtypes = [dtype for dtype in DTYPES if f"compute.peak.{dtype}" in device.quantities] or ["bf16"]
    kv_heads = draw(st.sampled_from([1, 2, 8]))
    asked: dict[str, Any] = {
        "batch": draw(st.sampled_from([1, 1, 3, 16])),
        "heads": kv_heads * draw(st.sampled_from([1, 1, 4])),
        "kv_heads": kv_heads,
        "q_len": draw(lengths),
        "kv_len": draw(lengths),
        "head_dim": draw(st.sampled_from([8, 64, 80, 128, 256])),
        "dtype": draw(st.sampled_from(dtypes)),
        "mask": draw(masks if every else st.sampled_from(["full", "causal"])),
        "direction": direction,
    }
    asked["value_dim"] = draw(st.sampled_from([asked["head_dim"], 64]))
    if features and every:
        asked |= {field: FEATURES[field] for field in draw(st.sets(st.sampled_from(sorted(FEATURES)), max_size=1))}
    options: dict[str, Any] = {"packed": draw(st.booleans()) if every else False}
    tiled = algorithm(name).tiled_by
    switches = {tiled: draw(st.booleans())} if tiled else {}
    tiles = {tile: draw(rows) for tile in iomodel.expressions(name, direction=direction, **switches).tiles}
    if "splits" in algorithm(name).takes(direction):
        options["splits"] = min(draw(st.integers(1, 3)), -(-asked["kv_len"] // tiles["block_kv"]))
    return Asked(name, iomodel.Attention(**asked), device, tiles, options)


@given(asked=calls())
def test_no_time_is_below_the_floor(asked: Asked) -> None:
    found, w = asked.estimate(), asked.workload
    peak, bandwidth = found.rates.peak, found.rates.hbm_peak
    assert found.seconds * NEAR >= found.cost.useful_flops / peak
    assert found.seconds * NEAR >= lower_bounds(asked.algorithm, w, 1)["compulsory"].bytes / bandwidth
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
    assert found.compulsory_bytes == lower_bounds(asked.algorithm, asked.workload, 1)["compulsory"].bytes
    assert found.intensity == found.cost.useful_flops / high
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
    assert found.breakdown[found.bound] == max(found.breakdown.values())
    assert found.seconds == pytest.approx(sum(kernel.seconds for kernel in found.kernels))
    for part in (found, *found.kernels):
        assert min(part.breakdown.values()) >= 0
        assert all(value <= part.seconds * NEAR for value in part.breakdown.values()), part.breakdown
    for name, value in found.breakdown.items():
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


# What a kernel has to do.

KERNELS = [("flash2", "forward"), ("flash2", "backward"), ("standard", "forward"), ("flash1", "forward")]
AMOUNTS = ("exps", "scores", "gradients", "randoms", "staged", "atomic_bytes", "trips")
more = st.integers(0, 10**12)


@st.composite
def kernels(draw: st.DrawFn) -> tuple[Demand, iomodel.Attention, Any, Launched, Hardware]:
    asked = draw(
        calls(GPUS, KERNELS, features=False).filter(lambda asked: asked.algorithm == "standard" or asked.tiles)
    )
    w, name = asked.workload, asked.algorithm
    if name == "standard":
        asked = replace(asked, tiles={})
    options = {**algorithm(name).takes(w.direction), "packed": False}
    how = algorithm(name).execution[w.direction]
    at = demands(name, kind_of(w), structural(options), how).at(w, w, options, asked.tiles or {})
    layout = Layout(draw(st.sampled_from([(1, 1), (4, 1), (2, 4)])), draw(st.booleans()))
    launched = Launched(layout, draw(st.integers(1, 4)), draw(st.sampled_from([1.0, 0.85])))
    assume("compute.peak." + w.dtype in asked.device.quantities)
    return draw(st.sampled_from(at)), w, how, launched, asked.device


@given(given_kernel=kernels(), grown=st.dictionaries(st.sampled_from([*AMOUNTS, "flops", "bytes", "distinct"]), more))
def test_more_to_do_never_takes_less(given_kernel: Any, grown: dict[str, int]) -> None:
    demand, w, how, launched, device = given_kernel
    known, parameters = rates(device, w.dtype), iomodel.Parameters()
    less = kernel_time(demand, w, False, known, how, launched, parameters)
    bigger = replace(demand, **{name: getattr(demand, name) + grown[name] for name in AMOUNTS if name in grown})
    if bigger.products:
        runs = grown.get("flops", 0)
        bigger = replace(bigger, products=tuple(replace(p, runs=p.runs + runs) for p in bigger.products))
    extra = max(grown.get("bytes", 0), grown.get("distinct", 0))
    bigger = replace(
        bigger,
        moved=tuple(
            replace(m, requested=m.requested + extra, distinct=m.distinct + grown.get("distinct", 0))
            for m in bigger.moved
        ),
    )
    more_ = kernel_time(bigger, w, False, known, how, launched, parameters)
    assert more_.seconds * NEAR >= less.seconds
    for name, value in less.breakdown.items():
        assert more_.breakdown[name] * NEAR >= value or name == "tail"


@given(
    asked=calls(GPUS),
    name=st.sampled_from([field.name for field in fields(iomodel.Parameters)]),
    factor=st.floats(1, 9),
)
def test_a_larger_parameter_never_takes_less(asked: Asked, name: str, factor: float) -> None:
    default = iomodel.Parameters()
    larger = replace(default, **{name: getattr(default, name) * factor + (name == "host_launch") * 1e-4 * factor})
    assert asked.estimate(parameters=larger).seconds * NEAR >= asked.estimate().seconds


# Longer calls. A tile may see fewer keys where the diagonal moves: with the last query at the last key, more queries
# begin further to the left; so does a window that is bounded on its left, as the keys grow.

open_ended = st.sampled_from(["full", "causal"])
growth = st.integers(1, 40) | st.sampled_from([64, 128, 500, 3000])
OSCILLATES = Asked(  # 112 blocks on 108 SMs, of one length or of two
    "flash2",
    iomodel.Attention(heads=56, q_len=256, kv_len=4096, head_dim=64, mask="causal"),
    A100,
    {"block_q": 128, "block_kv": 256},
    {},
)
FLASH1 = Asked(
    "flash1", iomodel.Attention(batch=107, q_len=8192, head_dim=64), A100, {"block_q": 16, "block_kv": 128}, {}
)


@example(OSCILLATES, 14, "causal")
@given(asked=calls(GPUS), longer=growth, mask=open_ended)
def test_more_keys_never_take_less(asked: Asked, longer: int, mask: Any) -> None:
    asked = asked.grown(mask=mask)
    assert asked.grown(kv_len=asked.workload.kv_len + longer).estimate().seconds * DILUTED >= asked.estimate().seconds


@given(asked=calls(GPUS, [("flash2", "forward")]), longer=growth, right=sides)
def test_more_queries_never_take_less(asked: Asked, longer: int, right: int | None) -> None:
    asked = asked.grown(mask="full" if right is None else iomodel.Window(right=right, align="top-left"))
    assert asked.grown(q_len=asked.workload.q_len + longer).estimate().seconds * DILUTED >= asked.estimate().seconds


@given(asked=calls(GPUS), longer=growth)
def test_longer_sequences_never_take_less(asked: Asked, longer: int) -> None:
    w = asked.workload
    asked = asked.grown(kv_len=w.q_len)
    both = asked.grown(q_len=w.q_len + longer, kv_len=w.q_len + longer)
    assert both.estimate().seconds * DILUTED >= asked.estimate().seconds


@example(FLASH1, 1, 1)
@given(asked=calls(GPUS), batch=st.integers(0, 60), times=st.integers(1, 5))
def test_more_heads_never_take_less(asked: Asked, batch: int, times: int) -> None:
    w = asked.workload
    larger = asked.grown(batch=w.batch + batch, heads=times * w.heads, kv_heads=times * w.kv_heads)
    assert larger.estimate().seconds * NEAR >= asked.estimate().seconds


# Better devices.

BETTER = {
    "memory bandwidth": ("memory.hbm.bandwidth", "measured.hbm_"),
    "L2 bandwidth": ("memory.l2.bandwidth", "measured.l2_bandwidth"),
    "L2 capacity": ("memory.l2.capacity",),
    "clock": ("compute.clock",),
    "matrix peak": ("compute.peak", "measured.gemm"),
    "exponentials": ("compute.exp", "measured.exp"),
    "bandwidth of shared memory": ("memory.sram.bandwidth_per_clock_per_sm",),
    "SMs with all that they have": (
        "compute.units",
        "compute.peak",
        "compute.exp",
        "memory.l2.bandwidth",  # each SM has a port of its own
        "measured.gemm",
        "measured.exp",
        "measured.l2_bandwidth",
    ),
    "shared memory of an SM": ("memory.sram.per_sm", "memory.sram.unified_per_sm"),
    "shared memory of a block": ("memory.sram.per",),
    "registers": ("limits.registers_per_sm",),
}
CLOCKED = [device for device in GPUS if device.compute.clock.boost is not None]


def better(device: Hardware, what: str, factor: float) -> Hardware:
    """The device with more of something; as many times of all that an SM has as there are SMs."""
    if what.startswith("SMs") and device.compute.units is not None:
        units = int(device.compute.units.value)
        factor = int(units * factor) / units
    return scaled(device, lambda path: path.startswith(BETTER[what]) and path != "compute.exp_per_clock_per_sm", factor)


@pytest.mark.parametrize("what", sorted(BETTER))
@some(5)
@given(asked=calls(CLOCKED), factor=st.sampled_from([1.01, 1.5, 2, 7]))
def test_a_better_device_never_takes_longer(what: str, asked: Asked, factor: float) -> None:
    found = replace(asked, device=better(asked.device, what, factor)).estimate()
    assert found.seconds <= asked.estimate().seconds * NEAR


FAST = [("flash2", "forward"), ("flash2", "backward"), ("flash3", "forward"), ("split_kv", "forward")]


@some(4)
@given(asked=calls([A100, H100], FAST, features=False), what=st.sampled_from(sorted(BETTER)), factor=st.floats(1, 3))
def test_a_better_device_never_takes_longer_at_its_fastest_tiles(asked: Asked, what: str, factor: float) -> None:
    w = asked.workload
    small = asked.grown(
        q_len=min(w.q_len, 300), kv_len=min(w.kv_len, 300), head_dim=64, value_dim=64, dtype="bf16", kv_dtype=None
    )
    small = replace(small, tiles=None, options={})
    found = replace(small, device=better(asked.device, what, factor)).estimate()
    assert found.seconds <= small.estimate().seconds * NEAR


# The fastest tiles.


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
    return Small(name, iomodel.Attention(direction=direction, **shape), device, {})


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
    solved = iomodel.solve(call.algorithm, w, call.device, residency="gpu", objective="time", **call.options)
    assert solved.seconds == pytest.approx(best, rel=1e-12)
    assert solved.placed is not None
    assert solved.placed.fits
    answer = iomodel.estimate(call.algorithm, w, call.device, **call.options)
    assert answer.seconds == pytest.approx(best, rel=1e-12)
    assert answer.tiles == solved.tiles
    runner_up = solved.certificate.runner_up
    if runner_up is not None:
        assert runner_up.seconds > solved.seconds
        slower = iomodel.estimate(call.algorithm, w, call.device, runner_up.tiles, **call.options)
        assert slower.seconds == pytest.approx(runner_up.seconds)


def fits(call: Small, tiles: Mapping[str, int]) -> bool:
    residencies = algorithm(call.algorithm).residency[call.workload.direction]
    if not any(tiles["warps"] in r.warps and tiles["stages"] in r.stages for r in residencies):
        return False
    return iomodel.check(call.algorithm, call.workload, call.device, tiles, **call.options).fits


@some(5)
@given(asked=calls(features=False))
def test_without_tiles_it_takes_the_fastest(asked: Asked) -> None:
    """No tile given is slower than those that are chosen, where kernels are declared for the device."""
    w = asked.workload
    small = replace(asked.grown(q_len=min(w.q_len, 300), kv_len=min(w.kv_len, 300)), options={})
    chosen = replace(small, tiles=None).estimate()
    assert replace(small, tiles=chosen.tiles).estimate().seconds == pytest.approx(chosen.seconds)
    if "warps" in chosen.tiles:
        assert chosen.seconds <= small.estimate().seconds * NEAR


# Directions and launches.


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
            **options,
            **(algorithm(name).saved if way == "forward" else {}),
        )
        for way in ("forward", "backward")
    )
    assert together.seconds == pytest.approx(forward.seconds + backward.seconds)
    assert together.kernels == (*forward.kernels, *backward.kernels)
    assert together.requested_bytes == forward.requested_bytes + backward.requested_bytes


@given(asked=calls(), host=st.sampled_from([0.0, 1e-7, 5e-5, 1.0]))
def test_a_host_launches_one_kernel_after_the_other(asked: Asked, host: float) -> None:
    free = asked.estimate()
    found = asked.estimate(parameters=iomodel.Parameters(host_launch=host))
    assert found.seconds == pytest.approx(max(free.seconds, host * len(free.kernels)))
    assert found.breakdown["launch"] <= found.seconds * NEAR
    if host * len(free.kernels) > free.seconds:
        assert found.bound == "launch"


@given(call=calls(GPUS, [("split_kv", "forward")], features=False))
def test_one_split_is_no_split(call: Asked) -> None:
    """Nothing is combined, and no kernel launched for it."""
    alone = replace(call, options={**call.options, "splits": 1}).estimate()
    plain = replace(call, algorithm="flash2", options={"packed": call.options["packed"]}).estimate()
    assert len(alone.kernels) == 1
    assert alone.seconds == pytest.approx(plain.seconds)


# What is printed.


@given(asked=calls())
def test_an_answer_is_plain_data_and_a_table(asked: Asked) -> None:
    found = asked.estimate()
    data = json.loads(json.dumps(found.to_dict()))
    assert data["seconds"] == found.seconds
    assert data["breakdown"] == dict(found.breakdown)
    assert data["dram_bytes"] == list(found.dram_bytes)
    assert [kernel["title"] for kernel in data["kernels"]] == [kernel.title for kernel in found.kernels]
    assert json.loads(found.to_json()) == data if hasattr(found, "to_json") else True
    assert f"{found.seconds * 1e6:,.1f}" in str(found)


# Bad input.

W = iomodel.Attention(heads=8, q_len=512, head_dim=64)
BOTH = W.model_copy(update={"direction": "both"})
TILES = {"block_q": 64, "block_kv": 64}


@pytest.mark.parametrize(
    ("error", "text", "change"),
    [
        (UnknownNameError, "hardware: 'h1000' is unknown", {"hardware": "h1000"}),
        (InputError, "hardware: None given", {"hardware": None}),
        (UnknownNameError, "algorithm: 'flash9' is unknown", {"algorithm": "flash9"}),
        (InputError, "workload: 3 given", {"workload": 3}),
        (SpecError, "compute.peak.fp8: a100-sxm4-80gb lacks it", {"workload": W.model_copy(update={"dtype": "fp8"})}),
        (InfeasibleError, "they exceed shared memory by .* B", {"tiles": {"block_q": 512, "block_kv": 512}}),
        (InfeasibleError, "they exceed registers by", {"tiles": {"block_q": 256, "block_kv": 128, "warps": 4}}),
        (InfeasibleError, "they exceed MMA shape by", {"tiles": {"block_q": 60, "block_kv": 64}}),
        (InputError, "warps", {"tiles": {**TILES, "warps": 3}}),
        (InputError, "warps: 0 given", {"tiles": {**TILES, "warps": 0}}),
        (InputError, "warps: nan given", {"tiles": {**TILES, "warps": nan}}),
        (InputError, "stages", {"tiles": {**TILES, "stages": 9}}),
        (InputError, "block_q: flash2 needs this tile", {"tiles": {"warps": 4}}),
        (InputError, "block_q: -1 given", {"tiles": {"block_q": -1, "block_kv": 64}}),
        (InputError, "block_kv: 1.5 given", {"tiles": {"block_q": 64, "block_kv": 1.5}}),
        (UnknownNameError, "tile of flash2: 'block_z' is unknown", {"tiles": {**TILES, "block_z": 64}}),
        (InputError, "tiles: 7 given", {"tiles": 7}),
        (InputError, "parameters: 'fast' given", {"parameters": "fast"}),
        (InputError, "execution: 'fast' given", {"execution": "fast"}),
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


@pytest.mark.parametrize("name", [field.name for field in fields(iomodel.Parameters)])
@pytest.mark.parametrize("value", [-1, -1e-9, nan, inf, -inf, True, None, "1", 10**400])
def test_a_parameter_is_a_number_from_zero_up(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name}: .* given; allowed: ") as refused:
        iomodel.Parameters(**{name: value})
    assert "\n" not in str(refused.value)
    assert iomodel.estimate("flash2", W, A100, TILES, parameters=iomodel.Parameters(**{name: 0})).seconds > 0


def test_bare_devices_are_bounded_by_their_memory() -> None:
    """Where no kernel is declared for a device, the footprint must do."""
    with pytest.raises(InfeasibleError, match=r"are more than the .* B of a block on") as refused:
        iomodel.estimate("flash2", W, "mi300x", {"block_q": 1024, "block_kv": 1024})
    assert refused.value.least == iomodel.cost("flash2", W, {"block_q": 1024, "block_kv": 1024}).footprint_bytes
    assert iomodel.estimate("flash2", W, "mi300x").seconds > 0
