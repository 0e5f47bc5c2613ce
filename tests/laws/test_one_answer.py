"""One answer by time: the tiles of `solve` are those of `estimate` without tiles, and the first of `tile_times`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import iomodel
from iomodel import InfeasibleError, InputError, hardware, list_hardware
from iomodel.algorithms import algorithm
from iomodel.errors import SpecError
from iomodel.solving.certificate import TIE
from tests.support.estimate_calls import some

DEVICES = [hardware(name) for name in list_hardware()]
UNTILED = ("standard", "eager")
"""Algorithms without default tiles in an estimate: each operand makes one ideal pass."""
ATTENTION = [
    (name, direction)
    for name in iomodel.list_algorithms()
    if algorithm(name).answers == "attention" and name not in UNTILED
    for direction in algorithm(name).directions
]
OTHERS: list[tuple[str, Any]] = [
    ("gemm", iomodel.Linear(rows=100, in_features=512, out_features=300)),
    ("fused_mlp", iomodel.MLP(rows=300, in_features=512, hidden_features=1024)),
    ("split_mlp", iomodel.MLP(rows=300, in_features=512, hidden_features=1024, direction="backward")),
    ("chunked_scan", iomodel.Recurrence(tokens=1000, heads=8, head_dim=64)),
    ("cut_cross_entropy", iomodel.CrossEntropy(rows=300, in_features=512, vocab_size=5000)),
]


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, iomodel.Attention, Any]:
    """A call of any algorithm in any of its directions, on any device."""
    name, direction = draw(st.sampled_from(ATTENTION))
    kv_heads, q_len = draw(st.sampled_from([1, 2, 8])), draw(st.integers(1, 8) | st.integers(1, 600))
    call = {
        "batch": draw(st.sampled_from([1, 3])),
        "kv_heads": kv_heads,
        "heads": kv_heads * draw(st.sampled_from([1, 1, 4])),
        "q_len": q_len,
        "kv_len": q_len + draw(st.just(0) | st.integers(0, 3000)),
        "head_dim": draw(st.sampled_from([64, 80, 128, 192, 256])),
        "dtype": draw(st.sampled_from(["bf16", "fp16", "fp8", "fp32"])),
        "mask": draw(st.sampled_from(["full", "causal"])),
    }
    return name, iomodel.Attention(direction=direction, **call), draw(st.sampled_from(DEVICES))


def ships(name: str, call: iomodel.Attention, device: Any) -> bool:
    """Check that a kernel of a pass ships tiles."""
    passes = ("forward", "backward") if call.direction == "both" else (call.direction,)
    parts = [call.model_copy(update={"direction": direction}) for direction in passes]
    kernels = [iomodel.list_implementations(name, device, part)[0] for part in parts]
    return any(kernel != "textbook" and iomodel.kernels.implementation(name, kernel).tiles for kernel in kernels)


def assert_same(name: str, call: Any, device: Any, shipped: bool) -> None:
    """Compare a solution with the estimate without tiles, and with the map of the times of all tiles."""
    solved, taken = iomodel.solve(name, call, device), iomodel.estimate(name, call, device)
    chosen = {option: solved.options[option] for option in solved.searched}
    kernels = {"implementation": solved.implementation} if " and " not in solved.implementation else {}
    kernels = kernels if isinstance(call, iomodel.Attention) else {}
    again = iomodel.estimate(name, call, device, solved.tiles, **chosen, **kernels)
    if solved.timed:
        assert again.seconds == pytest.approx(solved.seconds, rel=1e-12)
        assert solved.seconds <= taken.seconds * (1 + 1e-12)
    if not shipped:
        assert solved.tiles == taken.tiles
        assert solved.options == taken.cost.options
        assert again.seconds == taken.seconds
    try:
        times = iomodel.kernels.tile_times(name, call, device)
    except InputError:  # no kernel, one of both directions, or a workload without a map
        return
    best = min(times.records(), key=lambda record: record["seconds"])
    fastest = {"splits": 1, "packed": 0, **times.fastest.tiles}
    own = {"splits": 1, "packed": 0, **solved.tiles, **{name: int(size) for name, size in chosen.items()}}
    assert times.fastest.seconds == best["seconds"] <= solved.seconds * (1 + 1e-9)
    if fastest != own:  # a tie: the shipped choice, or one that leaves fewer SMs idle
        assert solved.seconds <= best["seconds"] * (1 + TIE) * (1 + 1e-9)
    assert times.fewest_requests == solved.certificate.least_traffic
    assert times.shipped == solved.certificate.shipped


DECODE = iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=30_000, head_dim=128)
TRAIN = iomodel.Attention(heads=8, q_len=500, head_dim=80, direction="both")


WIDE = iomodel.Attention(heads=32, q_len=4096, head_dim=256, mask="causal")


@example(("flash3", WIDE, hardware("rtx-3090")))  # the shipped tile takes less shared memory than with fewer keys
@example(("flash3", WIDE, hardware("l40s")))
@example(("split_kv", DECODE, hardware("h100-sxm5")))  # a kernel, whose splits and packing are searched
@example(("split_kv", DECODE, hardware("tpu-v5e")))  # splits and packing on the textbook's machine
@example(("flash2", TRAIN, hardware("tpu-v5e")))
@example(("flash2", TRAIN, hardware("a100-sxm4-80gb")))
@example(("flash2", TRAIN, hardware("mi300x")))
@given(case=calls())
def test_an_estimate_without_tiles_takes_those_of_solve(case: tuple[str, iomodel.Attention, Any]) -> None:
    name, call, device = case
    try:
        iomodel.estimate(name, call, device)
    except (InputError, InfeasibleError) as error:
        with pytest.raises(type(error)):
            iomodel.solve(name, call, device)
        return
    except SpecError:  # no rate, and so no time
        assume(False)
    assert_same(name, call, device, ships(name, call, device))


@pytest.mark.parametrize("device", ["rtx-3090", "h100-sxm5", "sim-a100"])
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize("q_len", [4096, 200_000])
def test_an_estimate_without_tiles_says_so_where_tiles_may_not_fit(q_len: int, direction: Any, device: str) -> None:
    """An ideal pass holds in no block; the tiles of least traffic have no time, and may not fit."""
    call = iomodel.Attention(heads=8, q_len=q_len, head_dim=256, direction=direction)
    ideal = iomodel.estimate("standard", call, device)
    assert not ideal.tiles
    assert ideal.left_out[0] == "tiles: each operand makes one ideal pass"
    if q_len > 4096:
        with pytest.raises(InfeasibleError, match=r"; iomodel\.estimate times standard without tiles$"):
            iomodel.solve("standard", call, device)
        with pytest.raises(InfeasibleError):
            iomodel.check("standard", call, device)
        return
    solved = iomodel.solve("standard", call, device)
    assert iomodel.check("standard", call, device) == iomodel.check("standard", call, device, solved.tiles)
    assert solved.tiles
    assert not solved.timed
    assert iomodel.check("standard", call, device, solved.tiles).fits
    assert ideal.cost.hbm_bytes <= solved.cost.hbm_bytes


def test_what_has_no_tiles_is_neither_solved_nor_checked() -> None:
    for verb in (iomodel.solve, iomodel.check, iomodel.solve_array):
        for wanted in (None, "textbook"):
            with pytest.raises(InputError, match="algorithm: eager given, which has no tiles"):
                verb("eager", DECODE, "h100-sxm5", implementation=wanted)


@pytest.mark.parametrize("device", ["h100-sxm5", "mi300x", "tpu-v4"])
@pytest.mark.parametrize(("name", "call"), OTHERS)
def test_so_it_does_for_other_workloads(name: str, call: Any, device: str) -> None:
    """A linear layer is estimated at a tile of the vendors' libraries."""
    assert_same(name, call, hardware(device), isinstance(call, iomodel.Linear))


def test_splits_of_a_device_without_a_kernel_are_chosen() -> None:
    """On a device with several units: a single one, as of a TPU v5e, is busy without splits."""
    call, device = DECODE, hardware("mi300x").model_copy(update={"architecture": None, "id": None})
    assert iomodel.list_implementations("split_kv", device, call) == ["textbook"]
    solved = iomodel.solve("split_kv", call, device)
    assert solved.searched == ("splits", "packed")
    assert solved.options["splits"] > 1
    least = iomodel.solve("split_kv", call, device, objective="traffic")
    assert least.searched == ()
    assert not least.timed
    assert least.cost.hbm_bytes <= least.certificate.least_hbm_bytes


def test_fast_tiles_are_compared_with_those_of_least_traffic() -> None:
    call = iomodel.Attention(q_len=4096, head_dim=64)
    solved = iomodel.solve("linformer", call, "h100-sxm5")
    least = iomodel.solve("linformer", call, "h100-sxm5", objective="traffic")
    fewest = solved.certificate.least_traffic
    assert fewest is not None
    assert fewest.tiles == least.tiles
    assert fewest.hbm_bytes == least.cost.hbm_bytes == solved.certificate.least_hbm_bytes
    assert not least.timed


RUNNING = [
    (name, device)
    for name in ("flash1", "flash2", "flash3")
    for device in iomodel.list_hardware()
    if iomodel.list_implementations(name, device) != ["textbook"]
]


@st.composite
def both_ways(draw: st.DrawFn) -> tuple[str, str, list[iomodel.Attention]]:
    """Draw an algorithm and a device, with a call in each direction and in both; few queries of a group are packed."""
    shape = {
        "heads": 4,
        "kv_heads": draw(st.sampled_from([1, 2, 4])),
        "q_len": draw(st.integers(1, 60) | st.integers(1, 400)),
        "kv_len": draw(st.integers(400, 3000)),
        "head_dim": draw(st.sampled_from([64, 80, 128, 192])),
        "mask": draw(st.sampled_from(["full", "causal"])),
    }
    parts = [iomodel.Attention(direction=direction, **shape) for direction in ("forward", "backward", "both")]
    return (*draw(st.sampled_from(RUNNING)), parts)


FEW = [
    iomodel.Attention(batch=8, heads=8, kv_heads=4, q_len=2, kv_len=64, head_dim=64, direction=direction)
    for direction in ("forward", "backward", "both")
]


@example(("flash2", "rtx4070-super", FEW))
@some(4)
@given(both_ways())
def test_tiles_of_both_directions_are_those_of_each(case: tuple[str, str, list[iomodel.Attention]]) -> None:
    """Each with its own packing of query heads, which no kernel of a backward pass has."""
    name, device, parts = case
    try:
        forward, backward, both = (iomodel.solve(name, part, device, top=3) for part in parts)
    except (InfeasibleError, InputError):  # no kernel
        assume(False)
    assume(both.timed)
    assert both.seconds == pytest.approx(forward.seconds + backward.seconds)
    assert both.cost.hbm_bytes == forward.cost.hbm_bytes + backward.cost.hbm_bytes
    assert both.options.get("packed") == forward.options.get("packed")
    assert iomodel.cost(name, parts[2], tiles=both.choice) == both.cost
    taken = [iomodel.estimate(name, part, device) for part in parts]
    alone = [
        iomodel.estimate(
            name, one.workload, device, {tile: one.tiles[tile] for tile in ("block_q", "block_kv")},
            implementation=one.implementation, **({"packed": True} if one.cost.options["packed"] else {}),
        ).seconds
        for one in taken[:2]
    ]  # fmt: skip
    assert taken[2].seconds == pytest.approx(sum(alone), rel=1e-9)
    assert taken[2].implementation == " and ".join(dict.fromkeys(one.implementation for one in taken[:2]))
    together = iomodel.estimate_array(name, parts[2], device, q_len=[parts[2].q_len])
    assert together.seconds[0] == pytest.approx(taken[2].seconds, rel=1e-9)
    if taken[0].implementation == taken[1].implementation:
        wanted = {"implementation": taken[0].implementation}
        assert iomodel.solve(name, parts[2], device, **wanted).certificate.examined > 0
        together = iomodel.estimate_array(name, parts[2], device, q_len=[parts[2].q_len], **wanted)
        assert together.seconds[0] == pytest.approx(iomodel.estimate(name, parts[2], device, **wanted).seconds)
    for tile in ("block_q", "block_kv"):
        assert (both.tiles[tile], both.tiles[f"bwd_{tile}"]) == (forward.tiles[tile], backward.tiles[tile])
    times = [choice.seconds for choice in both.ranked]
    assert times[1:] == sorted(times[1:])
    assert times[0] <= min(times) * (1 + TIE)
    assert both.ranked[0].tiles == both.tiles
    why = both.certificate
    assert why.binding == max(forward, backward, key=lambda solution: solution.seconds).certificate.binding
    if why.runner_up is not None:
        assert why.runner_up.seconds >= both.seconds
    assert why.lower_bound.bytes * why.ratio == pytest.approx(both.cost.hbm_bytes)
    assert iomodel.Solution.from_dict(both.to_dict()) == both
    low, high = both.dram_bytes
    assert low <= iomodel.estimate(name, parts[2], device, both.tiles).dram_bytes[0] <= high
