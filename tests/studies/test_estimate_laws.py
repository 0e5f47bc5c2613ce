"""More to do never takes less, and a better device never takes longer."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import iomodel
from iomodel import Hardware, hardware
from iomodel.algorithms import algorithm
from tests.support.device_edits import scaled
from tests.support.estimate_calls import A100, FAST, GPUS, H100, NEAR, TILED, Asked, calls, sides, some
from tests.support.inside import (
    WARP_ROWS,
    KernelWork,
    Launched,
    Setting,
    WarpLayout,
    demands,
    kernel_time,
    kind_of,
    rates,
    structural,
)

KERNELS = [("flash2", "forward"), ("flash2", "backward"), ("standard", "forward"), ("flash1", "forward")]
AMOUNTS = ("exps", "scores", "gradients", "randoms", "staged", "atomic_bytes", "trips")
more = st.integers(0, 10**12)


@st.composite
def kernels(draw: st.DrawFn) -> tuple[KernelWork, iomodel.Attention, Any, Launched, Hardware]:
    asked = draw(
        calls(GPUS, KERNELS, features=False).filter(lambda asked: asked.algorithm == "standard" or asked.tiles)
    )
    w, name = asked.workload, asked.algorithm
    if name == "standard":
        asked = replace(asked, tiles={})
    options = {**algorithm(name).takes(w.direction), "packed": False}
    how = algorithm(name).execution[w.direction]
    at = demands(algorithm(name), kind_of(w), structural(options), how).at(w, w, options, asked.tiles or {})
    layout = WarpLayout(draw(st.sampled_from([(1, 1), (4, 1), (2, 4)])), draw(st.booleans()))
    launched = Launched(layout, draw(st.integers(1, 4)), draw(st.sampled_from([1.0, 0.85])))
    assume("compute.peak." + w.dtype in asked.device.quantities)
    return draw(st.sampled_from(at)), w, how, launched, asked.device


@given(given_kernel=kernels(), grown=st.dictionaries(st.sampled_from([*AMOUNTS, "flops", "bytes", "distinct"]), more))
def test_more_to_do_never_takes_less(given_kernel: Any, grown: dict[str, int]) -> None:
    demand, w, how, launched, device = given_kernel
    at = Setting(rates(device, w.dtype), how, iomodel.devices.Parameters(), w)
    less = kernel_time(demand, at, launched)
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
    more_ = kernel_time(bigger, at, launched)
    assert more_.seconds * NEAR >= less.seconds
    for name, value in less.breakdown.items():
        assert name == "tail" or more_.breakdown[name] * NEAR >= value


@given(
    asked=calls(GPUS),
    name=st.sampled_from([field.name for field in fields(iomodel.devices.Parameters)]),
    factor=st.floats(1, 9),
)
def test_a_larger_parameter_never_takes_less(asked: Asked, name: str, factor: float) -> None:
    default = iomodel.devices.Parameters()
    larger = replace(default, **{name: getattr(default, name) * factor + (name == "host_launch") * 1e-4 * factor})
    assert asked.estimate(parameters=larger).seconds * NEAR >= asked.estimate().seconds


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


def alike(asked: Asked, shorter: int, longer: int) -> bool:
    """Check that the same kernels run the rows of both lengths."""
    return asked.algorithm != "eager" or not shorter <= WARP_ROWS < longer  # longer rows are loaded faster


@example(OSCILLATES, 14, "causal")
@given(asked=calls(GPUS), longer=growth, mask=open_ended)
def test_more_keys_never_take_less(asked: Asked, longer: int, mask: Any) -> None:
    asked = asked.grown(mask=mask)
    assume(alike(asked, asked.workload.kv_len, asked.workload.kv_len + longer))
    assert asked.grown(kv_len=asked.workload.kv_len + longer).estimate().seconds * NEAR >= asked.estimate().seconds


ONE_EDGE = Asked(  # six and seven tiles of queries, of which none shares an SM
    "flash2",
    iomodel.Attention(heads=4, kv_heads=1, q_len=89, kv_len=82, head_dim=8),
    hardware("a10"),
    {"block_q": 64, "block_kv": 32},
    {"packed": True},
)


@example(ONE_EDGE, 8, 1)
@given(asked=calls(GPUS, [("flash2", "forward")]), longer=growth, right=sides)
def test_more_queries_never_take_less(asked: Asked, longer: int, right: int | None) -> None:
    asked = asked.grown(mask="full" if right is None else iomodel.Window(right=right, align="top-left"))
    assert asked.grown(q_len=asked.workload.q_len + longer).estimate().seconds * NEAR >= asked.estimate().seconds


@given(asked=calls(GPUS), longer=growth)
def test_longer_sequences_never_take_less(asked: Asked, longer: int) -> None:
    w = asked.workload
    assume(alike(asked, w.q_len, w.q_len + longer))
    asked = asked.grown(kv_len=w.q_len)
    both = asked.grown(q_len=w.q_len + longer, kv_len=w.q_len + longer)
    assert both.estimate().seconds * NEAR >= asked.estimate().seconds


@example(FLASH1, 1, 1)
@given(asked=calls(GPUS), batch=st.integers(0, 60), times=st.integers(1, 5))
def test_more_heads_never_take_less(asked: Asked, batch: int, times: int) -> None:
    w = asked.workload
    larger = asked.grown(batch=w.batch + batch, heads=times * w.heads, kv_heads=times * w.kv_heads)
    assert larger.estimate().seconds * NEAR >= asked.estimate().seconds


BEYOND = Asked(  # the queries of a block do not wait for the buffers of its few keys
    "flash2",
    iomodel.Attention(q_len=93, kv_len=14, head_dim=64),
    H100,
    {"block_q": 128, "block_kv": 16},
    {},
)


@example(BEYOND, "block_kv", 93, 14, 16)
@given(
    asked=calls(ways=TILED),
    name=st.sampled_from(["block_q", "block_kv"]),
    q_len=st.integers(1, 64) | st.integers(1, 5000),
    kv_len=st.integers(1, 64) | st.integers(1, 5000),
    more=st.integers(1, 15).map(lambda steps: 16 * steps),
)
def test_a_tile_that_grows_beyond_its_axis_is_never_faster(
    asked: Asked, name: str, q_len: int, kv_len: int, more: int
) -> None:
    assume(asked.tiles and name in asked.tiles)
    one_split = {"splits": 1} if "splits" in asked.options else {}
    asked = replace(asked.grown(q_len=q_len, kv_len=kv_len), options={**asked.options, **one_split})
    rows = kv_len if name == "block_kv" else q_len * (asked.workload.group if asked.options.get("packed") else 1)
    cover = 16 * -(-rows // 16)
    larger = replace(asked, tiles={**asked.tiles, name: cover + more}).estimate()
    covering = replace(asked, tiles={**asked.tiles, name: cover}).estimate()
    assert covering.seconds <= larger.seconds * NEAR


BETTER = {
    "memory bandwidth": ("memory.hbm.bandwidth", "measured.hbm_"),
    "L2 bandwidth": ("memory.l2.bandwidth", "measured.l2_bandwidth"),
    "L2 capacity": ("memory.l2.capacity",),
    "clock": ("compute.clock",),
    "matrix peak": ("compute.peak", "measured.gemm", "compute.fp16_per_clock", "compute.mma.warp_fp16"),
    "SMs": ("compute.units",),
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
    if what == "SMs with all that they have" and device.compute.units is not None:
        units = int(device.compute.units.value)
        factor = int(units * factor) / units
    return scaled(device, lambda path: path.startswith(BETTER[what]) and path != "compute.exp_per_clock_per_sm", factor)


@pytest.mark.parametrize("what", sorted(BETTER))
@some(5)
@given(asked=calls(CLOCKED), factor=st.sampled_from([1.01, 1.5, 2, 7]))
def test_a_better_device_never_takes_longer(what: str, asked: Asked, factor: float) -> None:
    found = replace(asked, device=better(asked.device, what, factor)).estimate()
    assert found.seconds <= asked.estimate().seconds * NEAR


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
