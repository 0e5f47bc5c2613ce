"""Better figures of a device never take longer, figure by figure; devices of a family keep their order."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from zlib import crc32

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import iomodel
from iomodel import Hardware, IOModelError, hardware, list_hardware
from iomodel.algorithms import algorithm
from iomodel.timing.kernel_time import Launched, Setting, kernel_time
from iomodel.timing.shared_memory import WarpLayout
from iomodel.timing.work_at_point import demands
from tests.support.device_edits import bettered, directed, scaled
from tests.support.inside import has_rates, kind_of, matrix, rates, structural
from tests.support.strategies import one_in

NEAR = 1 + 1e-9

DECODE = iomodel.Attention(batch=4, heads=32, kv_heads=8, q_len=1, kv_len=8192, head_dim=128, dtype="bf16")
PREFILL = iomodel.Attention(heads=16, q_len=2048, head_dim=128, dtype="bf16", mask="causal")
LONG = PREFILL.model_copy(update={"q_len": 3000, "kv_len": 3000, "dtype": "fp16", "kv_dtype": "fp16"})
CALLS: list[tuple[str, iomodel.Attention, dict[str, int], dict[str, object]]] = [
    ("flash2", PREFILL, {"block_q": 64, "block_kv": 64}, {"packed": False}),
    ("flash2", LONG, {"block_q": 128, "block_kv": 64}, {"packed": False}),
    ("flash3", PREFILL.model_copy(update={"mask": "full"}), {"block_q": 128, "block_kv": 128}, {"packed": False}),
    (
        "flash2",
        PREFILL.model_copy(update={"direction": "backward"}),
        {"block_q": 64, "block_kv": 64},
        {"packed": False},
    ),
    ("split_kv", DECODE, {"block_q": 64, "block_kv": 64}, {"splits": 8, "packed": True}),
    ("flash1", PREFILL.model_copy(update={"head_dim": 64, "value_dim": 64}), {"block_q": 16, "block_kv": 128}, {}),
    ("standard", PREFILL, {}, {}),
    ("eager", PREFILL.model_copy(update={"q_len": 1000, "kv_len": 1000}), {}, {}),
]


def seconds(call: int, device: Hardware, length: int | None = None, kernels: str | None = None) -> float | None:
    """The time of a call, in a dtype that the device has; None where it is refused."""
    name, workload, tiles, options = CALLS[call]
    # Where a kernel no longer fits, the next one answers, and may be slower: the laws are those of each kernel.
    kernels = kernels or iomodel.list_implementations(name, device, workload)[0]
    options = {**options, "implementation": kernels}
    dtypes = (workload.dtype, "bf16", "fp16", "fp32")
    dtype = next((dtype for dtype in dtypes if f"compute.peak.{dtype}" in device.quantities), workload.dtype)
    update = {"dtype": dtype, "kv_dtype": dtype}
    if length is not None:
        update |= {"kv_len": length, "q_len": min(length, workload.q_len)}
    try:
        return iomodel.estimate(name, workload.model_copy(update=update), device, tiles or None, **options).seconds
    except IOModelError:
        return None


@pytest.mark.parametrize("name", list_hardware())
def test_no_figure_that_is_raised_makes_a_time_grow(name: str) -> None:
    """Half as much again of each figure in turn; other factors are drawn below.

    The quick profile asks a third of the calls of each device and figure, by the hash of their names.
    """
    device, factor = hardware(name), 1.5
    before = {call: time for call in range(len(CALLS)) if (time := seconds(call, device)) is not None}
    for path in directed(device):
        better = bettered(device, path, factor)
        for call, time in list(before.items())[crc32(f"{name} {path}".encode()) % one_in(3) :: one_in(3)]:
            after = seconds(call, better)
            assert after is None or after <= time * NEAR, (path, CALLS[call])


@given(data=st.data(), name=st.sampled_from(list_hardware()), factor=st.floats(1, 20))
def test_any_figure_of_any_device(data: st.DataObject, name: str, factor: float) -> None:
    device = hardware(name)
    path, call = data.draw(st.sampled_from(directed(device))), data.draw(st.integers(0, len(CALLS) - 1))
    length = data.draw(st.integers(1, 5000))
    before, after = (seconds(call, one, length) for one in (device, bettered(device, path, factor)))
    assume(before is not None and after is not None)
    assert before is not None
    assert after is not None
    assert after <= before * NEAR


ORDERED = [
    ("flash3", "h100-sxm5", "flash-attention-3"),
    ("flash2", "b200", "flash-attention-4"),
    ("flash2", "mi300x", "ck"),
    ("flash2", "mi300x", "aiter-assembly"),
    ("flash2", "mi355x", "triton-amd"),
]
"""Kernels whose heads take turns, and devices of theirs, some with a cache behind private slices."""


@pytest.mark.parametrize(("name", "device_name", "kernels"), ORDERED)
def test_no_raised_rate_makes_a_time_grow_whatever_the_order_of_blocks(
    name: str, device_name: str, kernels: str
) -> None:
    device, draw = hardware(device_name), Random(name + kernels)
    for mask in ("causal", "full"):
        sizes = {"heads": draw.choice([8, 24]), "batch": draw.choice([1, 3]), "q_len": draw.choice([1000, 4096])}
        call = iomodel.Attention(**sizes, head_dim=128, mask=mask, dtype="bf16")
        before = iomodel.estimate(name, call, device, implementation=kernels, packed=False)
        for path in directed(device):
            if path.startswith("limits."):
                continue
            better = bettered(device, path, draw.choice([1.1, 1.5, 3.0]))
            after = iomodel.estimate(name, call, better, before.tiles, implementation=kernels, packed=False)
            assert after.seconds <= before.seconds * NEAR, (path, mask)


EDITS = 2000
KINDS = [("flash2", "forward"), ("flash2", "backward"), ("flash3", "forward"), ("flash3", "backward")]
TOGETHER = ("compute.peak.", "measured.gemm_", "_per_clock_per_sm", "clock", "exp", "fp32", "bandwidth")
"""Parts of the paths of figures that are raised together, beside all matrix rates."""


@pytest.mark.parametrize("name", [name for name in list_hardware() if has_rates(hardware(name), "bf16")])
def test_no_raised_figure_makes_a_kernel_slower_on_an_edited_device(name: str) -> None:
    """Balances of the units that no device ships: there, softmax may be longer than the products that hide it."""
    draw, every = Random(name), [one for one in list_hardware() if has_rates(hardware(one), "bf16")]
    for _ in range(-(-EDITS // len(every))):
        device = hardware(name)
        for part in TOGETHER:
            device = scaled(device, lambda path, part=part: part in path, draw.choice([0.5, 1, 1, 1, 2, 4]))
        algorithm_name, direction = draw.choice(KINDS)
        mask, dim = draw.choice(["full", "causal"]), draw.choice([64, 128, 256])
        call = iomodel.Attention(heads=16, q_len=draw.choice([100, 2048]), head_dim=dim, mask=mask, direction=direction)
        declared = algorithm(algorithm_name)
        options = {**declared.takes(direction), "packed": False}
        how = declared.execution[direction]
        work = demands(declared, kind_of(call), structural(options), how)
        kernel = draw.choice(work.at(call, call, options, {"block_q": 128, "block_kv": draw.choice([64, 128])}))
        launched = Launched(
            replace(WarpLayout(), together=draw.choice([False, True])),
            blocks_per_sm=draw.choice([1, 2, 3]),
            exposed=draw.choice([0.0, 0.25, 0.85, 1.0]),
            warps=draw.choice([1, 2, 3]),
            specialized=draw.choice([False, True]),
        )

        def seconds(one: Hardware, kernel=kernel, call=call, how=how, launched=launched) -> float:
            return kernel_time(
                kernel, Setting(rates(one, "bf16"), how, iomodel.devices.Parameters(), call), launched
            ).seconds

        factor = draw.uniform(1, 5)
        path = draw.choice([*directed(device), "every matrix rate"])
        better = (
            scaled(device, matrix(device).__contains__, factor)
            if path == "every matrix rate"
            else bettered(device, path, factor)
        )
        assert seconds(better) <= seconds(device) * NEAR, (path, factor, algorithm_name, direction, launched)


SIBLINGS = [
    ("a100-sxm4-80gb", "a100-pcie-80gb"),
    ("a100-sxm4-80gb", "a100-sxm4-40gb"),
    ("h100-sxm5", "h100-pcie"),
    ("h200-sxm", "h100-sxm5"),
    ("h100-sxm5", "h800-sxm5"),
    ("gh200-96gb", "h100-sxm5"),
    ("h200-nvl", "h100-nvl"),
    ("l40s", "l40"),
    ("rtx-pro-6000", "rtx5090"),
    ("b200", "h200-sxm"),
    ("gb200", "b200"),
    ("b300", "b200"),
    ("gb300", "b300"),
    ("mi325x", "mi300x"),
    ("mi355x", "mi325x"),
    ("mi355x", "mi350x"),
    ("rtx4090", "rtx3090"),
    ("rtx5090", "rtx4090"),
    ("l4", "t4"),
    ("v100-sxm2-32gb", "v100-sxm2-16gb"),
    ("tpu-v5p", "tpu-v4"),
]


@pytest.mark.parametrize(("better", "other"), SIBLINGS)
@pytest.mark.parametrize("call", range(len(CALLS)))
def test_siblings_keep_their_order(better: str, other: str, call: int) -> None:
    """By the same kernels, the first that both devices run."""
    name, workload, _, _ = CALLS[call]
    # Blocks leave SMs idle, and the clock of the better one is the lower: of the L40S alone that at its power is known.
    if (better, name) in (("rtx-pro-6000", "split_kv"), ("l40s", "split_kv")):
        clocks = [rates(hardware(one), "bf16").clock or 0 for one in (better, other)]
        assert clocks[0] < clocks[1]
        return
    if (better, name) in (("b200", "flash1"), ("b200", "flash2")):  # mma.sync has a quarter of the peak there
        warps = [rates(hardware(one), "bf16").warp_matrix for one in (better, other)]
        assert warps[0] < warps[1]
        return
    if (better, other, name) == ("mi355x", "mi325x", "flash1"):  # blocks leave CUs idle, and their power to others
        spare = [rates(hardware(one), "bf16").spare for one in (better, other)]
        assert spare[0] == 1 < spare[1]
        return
    known = [iomodel.list_implementations(name, hardware(one), workload) for one in (better, other)]
    kernels = next((kernel for kernel in known[0] if kernel in known[1]), None)
    times = [seconds(call, hardware(one), kernels=kernels) for one in (better, other)]
    if None not in times:
        assert times[0] <= times[1] * NEAR
