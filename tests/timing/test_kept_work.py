"""What the time model keeps or skips changes no time: grids kept with the work, latencies that lose."""

from dataclasses import replace
from itertools import product

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.timing import kernel_time as module
from iomodel.timing.kernel_time import Launched, Setting, kernel_time
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.parameters import DEFAULT
from iomodel.timing.work_at_point import demands
from tests.support.inside import PIPELINED, check_options, kind_of, rates, structural

FLASH2, GPU = algorithm("flash2"), "h100-sxm5"
TILES = {"block_q": 128, "block_kv": 64}


def work(call: iomodel.Attention) -> KernelWork:
    options = check_options(FLASH2, {}, direction="forward")
    (kernel,) = demands(FLASH2, kind_of(call), structural(options), PIPELINED).at(call, call, options, TILES)
    return kernel


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_work_that_was_timed_on_another_device_or_call_is_timed_as_if_new(mask: str) -> None:
    calls = [iomodel.Attention(heads=3, kv_heads=1, q_len=n, kv_len=4096, head_dim=64, mask=mask) for n in (4096, 1024)]
    known = rates(iomodel.hardware(GPU), "bf16")

    def timed(demand: KernelWork, call: iomodel.Attention, units: int, packed: bool, blocks: int, l2: int) -> object:
        here = replace(known, units=units, l2_capacity=l2)
        launched = Launched(blocks_per_sm=blocks)
        found = kernel_time(demand, Setting(here, PIPELINED, DEFAULT, call, packed), launched)
        return found.seconds, found.streamed_bytes

    settings = list(product(calls, (132, 7), (False, True), (1, 2), (50_000_000, 200_000)))
    new = [timed(work(calls[0]), *setting) for setting in settings]
    for before in settings:
        for after, fresh in zip(settings, new, strict=True):
            used = work(calls[0])
            timed(used, *before)
            assert timed(used, *after) == fresh


def test_the_latency_of_loads_is_left_out_only_where_it_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = iomodel.devices.Parameters(dram_clocks=3000)
    calls = [
        (iomodel.Attention(heads=heads, q_len=n, kv_len=3000, head_dim=64, mask=mask), tiles, parameters)
        for heads, n, mask in product((1, 32), (1, 1000), ("full", "causal"))
        for tiles in (TILES, {"block_q": 64, "block_kv": 32})
        for parameters in (DEFAULT, slow)
    ]

    def times() -> list[float]:
        device = iomodel.hardware(GPU).model_copy()  # timers keep the launches of a device
        return [iomodel.estimate("flash2", call, device, tiles, parameters=how).seconds for call, tiles, how in calls]

    decided = []
    asked = module._may_decide
    monkeypatch.setattr(module, "_may_decide", lambda *given: decided.append(asked(*given)) or decided[-1])
    quick = times()
    monkeypatch.setattr(module, "_may_decide", lambda *_: True)
    assert quick == times()
    assert {True, False} <= set(decided)
    monkeypatch.setattr(module, "_may_decide", lambda *_: False)
    assert quick != times()
