"""Tools of the server: workloads from plain data, and the plain form of public results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown
from iomodel.workloads.attention import Attention
from iomodel.workloads.cross_entropy import CrossEntropy
from iomodel.workloads.linear import Linear
from iomodel.workloads.mlp import MLP, Experts
from iomodel.workloads.recurrence import Recurrence
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload import Workload

KINDS: Mapping[str, type[Workload]] = FrozenDict(
    q_len=Attention,
    q_lens=VarlenAttention,
    out_features=Linear,
    loads=Experts,
    hidden_features=MLP,
    vocab_size=CrossEntropy,
    tokens=Recurrence,
)
"""The kind of workload that each of these fields belongs to; the first one given decides."""


def workload_from(data: Any) -> Workload:
    """Build the workload that plain data describe, a kind by its own field.

    >>> workload_from({"rows": 8, "in_features": 4, "out_features": 2}).flops
    128
    """
    if not isinstance(data, Mapping):
        raise InputError(
            f"workload: {shown(data)} given; allowed: an object such as {{'q_len': 4096, 'head_dim': 128}}"
        )
    kind = next((kind for field, kind in KINDS.items() if field in data), None)
    if kind is None:
        raise InputError(
            f"workload: {shown(dict(data))} given; allowed: the fields of a workload, one of {', '.join(KINDS)} "
            "among them"
        )
    return kind(**{str(name): value for name, value in data.items()})


Data = dict[str, Any]


def bound(workload: Data, sram_bytes: int, units: int = 1) -> Data:
    """Bound the HBM traffic of a call from below, for every schedule that forms each product once.

    Args:
        workload: Fields of the call, such as {"q_len": 8192, "head_dim": 128, "heads": 32, "kv_heads": 8,
            "mask": "causal", "dtype": "bf16"}, or {"rows": 8192, "in_features": 4096, "out_features": 4096} of a matrix
            product.
        sram_bytes: On-chip memory of one processor, registers included [B]; the certificate of best_tile has the
            memory of a device's SM, and the bound for it.
        units: Processors that share the work.
    """
    from iomodel.counting.bounds import lower_bounds

    bounds = lower_bounds(workload_from(workload), sram_bytes=sram_bytes, units=units)
    return {name: each.to_dict() for name, each in bounds.items()}


def best_tile(
    algorithm: str, workload: Data, hardware: str, implementation: str | None = None, objective: str | None = None
) -> Data:
    """Find the best tile of a kernel on a device, with the time, the traffic and a certificate.

    Args:
        algorithm: A name of list_algorithms, such as "flash3" or "gemm".
        workload: Fields of the call.
        hardware: A device, such as "h100-sxm5".
        implementation: The layout of shared memory and registers, such as "triton"; by default the fastest that runs.
        objective: "time" (the default where a kernel is known) or "traffic".
    """
    from iomodel.solving.solve import solve

    chosen = {"implementation": implementation, "objective": objective}
    limits = {name: value for name, value in chosen.items() if value is not None}
    return solve(algorithm, workload_from(workload), hardware, **limits).to_dict()  # type: ignore[arg-type]


def what_binds(algorithm: str, workload: Data, hardware: str, tiles: dict[str, int] | None = None) -> Data:
    """Estimate the time of a call, the resource that binds, and the DRAM traffic.

    Args:
        algorithm: A name of list_algorithms, such as "flash3" or "gemm".
        workload: Fields of the call.
        hardware: A device, such as "h100-sxm5".
        tiles: Tiles of the kernel, such as {"block_q": 128, "block_kv": 64}; by default those that are shipped or best.
    """
    from iomodel.studies.estimate import estimate

    return estimate(algorithm, workload_from(workload), hardware, tiles).to_dict()


def gap(algorithm: str, workload: Data, hardware: str, seconds: float, tiles: dict[str, int] | None = None) -> Data:
    """Explain a measured time: the gap to the model and to the physical floor, what limits it, and the remedies.

    Args:
        algorithm: A name of list_algorithms, such as "flash2".
        workload: Fields of the call.
        hardware: A device, such as "a100-sxm4-80gb".
        seconds: The measured time [s].
        tiles: Tiles of the kernel that was measured; by default those that are shipped or best.
    """
    from iomodel.studies.diagnosis.diagnose import diagnose

    return diagnose(algorithm, workload_from(workload), hardware, seconds, tiles).to_dict()


def program_bound(stream: str, hardware: str, seconds: float | None = None, warm: bool = False) -> Data:
    """Bound the time of a recorded PyTorch program from below, or tell the gap of a measured time; runs nothing of it.

    Args:
        stream: Path of the calls that iomodel.torch.TrafficMode recorded and saved.
        hardware: A device, such as "h100-sxm5".
        seconds: A measured time [s]; an impossible one has below_bound true, with the limits that say so.
        warm: The last cache may hold bytes of the program, as where a benchmark repeats it.
    """
    from iomodel.torch.traffic_mode import bound_or_gap

    return bound_or_gap(stream, hardware, seconds, warm).to_dict()


def traffic(algorithm: str, workload: Data, tiles: dict[str, int] | None = None) -> Data:
    """Count the HBM traffic and the operations of a call at given tiles, exactly.

    Args:
        algorithm: A name of list_algorithms, such as "flash2".
        workload: Fields of the call.
        tiles: Tiles of the kernel, such as {"block_q": 128, "block_kv": 64}; standard attention takes none.
    """
    from iomodel.counting.cost import cost

    return cost(algorithm, workload_from(workload), tiles).to_dict()


def names() -> dict[str, list[str]]:
    """List the names of algorithms and devices."""
    from iomodel.algorithms import list_algorithms
    from iomodel.devices.device import list_hardware

    return {"algorithms": list_algorithms(), "hardware": list_hardware()}


TOOLS: Mapping[str, Any] = {
    tool.__name__: tool for tool in (bound, best_tile, what_binds, gap, program_bound, traffic, names)
}
"""The tools by name."""
