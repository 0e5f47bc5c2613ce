"""Time of a Triton config by the time model: the work of its tiles, the blocks that an SM holds, replicated rows."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from iomodel.counting.bound_call import BoundCall
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.placement.limits import device_of
from iomodel.placement.triton_check import TritonCheck
from iomodel.timing.clock import Clock, clock_for
from iomodel.timing.kernel_time import Launched, elapsed
from iomodel.timing.kernel_work import SCORES
from iomodel.timing.parameters import DEFAULT
from iomodel.timing.shared_memory import WarpLayout
from iomodel.workloads.attention import Attention

SPILLED = 4.0
"""Factor on the time of a config that spills: a rank, not a time; its slowness varies too much to predict [-]."""


def seconds(
    kernel: str,
    workload: Attention,
    hardware: Hardware,
    tile: tuple[int, int],
    warps: int,
    stages: int,
    outcome: TritonCheck,
) -> float:
    """Estimate the time of a config [s]; without a pipeline a block waits for what it loads."""
    clock = _clock(kernel, workload, hardware)
    M, N = tile
    grouped = outcome.instruction != "mma.sync"
    along_rows = grouped or workload.value_dim <= M or warps == 1
    layout = WarpLayout(
        (warps, 1) if along_rows else (1, warps), grouped, frozenset({SCORES}) if along_rows else frozenset(),
        0 if along_rows else 1, workload.element_size,
    )  # fmt: skip
    again = max(1, 16 * warps // M) if along_rows and not grouped else 1  # warps without rows of their own
    launched = Launched(layout, blocks_per_sm=blocks(hardware, outcome, warps))
    widths = (workload.head_dim, workload.value_dim)
    execution = clock.execution
    if stages < 2:
        execution = replace(execution, phases=(("l2",), *execution.phases))
    total = 0.0
    for demand in clock.demand(widths, {"block_q": M, "block_kv": N}):
        products = tuple(replace(product, runs=product.runs * again) for product in demand.products)
        work = replace(demand, products=products, exps=demand.exps * again, scores=demand.scores * again)
        packed = bool(clock.options["packed"])
        total += elapsed(work, workload, packed, clock.rates, execution, launched, clock.parameters).seconds
    return total * (SPILLED if outcome.spills else 1.0)


def blocks(hardware: Hardware, outcome: TritonCheck, warps: int) -> int:
    """Count the blocks that an SM holds, at least one."""
    device = device_of(hardware)
    taken = -(-(outcome.shared + device.shared_reserved) // device.shared_granularity) * device.shared_granularity
    registers = -(-min(outcome.registers, device.registers_per_thread) // 8) * 8 * device.warp * warps
    limits = [
        device.shared_per_sm // taken,
        device.registers_per_sm // max(1, registers),
        device.warps_per_sm // warps,
        device.blocks_per_sm,
    ]
    if outcome.tmem:
        limits.append(outcome.tmem_limit // outcome.tmem)
    return max(1, min(limits))


@lru_cache(maxsize=64)
def _clock(kernel: str, workload: Attention, hardware: Hardware) -> Clock:
    split = kernel.endswith("decode")
    options = {"packed": True, "splits": _splits(workload, hardware)} if split else {}
    algorithm = "split_kv" if split else "flash2"
    complete = BoundCall.bind(algorithm, workload, options, tiled=False).options
    return clock_for(algorithm, workload, hardware, complete, DEFAULT, rates(hardware, workload.dtype))


def _splits(workload: Attention, hardware: Hardware) -> int:
    """Choose the fewest splits that give each SM a block."""
    units = rates(hardware, workload.dtype).units or 1
    return max(1, min(-(-units // (workload.batch * workload.kv_heads)), -(-workload.kv_len // 128)))
