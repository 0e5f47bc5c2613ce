"""Reasons why measured bytes lie outside of predicted ones, or where inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from iomodel.common.counter_names import SECTOR
from iomodel.counting.cost import Cost
from iomodel.integrations.nsight.audit_result import AuditedLevel
from iomodel.integrations.nsight.counters import KernelCounters
from iomodel.nests import tensors
from iomodel.nests.language import Tensor
from iomodel.timing.estimate_result import Estimate

TENSORS: Mapping[str, Tensor] = {value.name: value for value in vars(tensors).values() if isinstance(value, Tensor)}
FULL = 0.9
"""Share of a sector that coalesced loads use at least: the first and last sector of a row may be shared."""


def written_bytes(cost: Cost) -> int | None:
    """Return the bytes of the outputs of a call that writes each once [B].

    None if it reads what it writes, as partial results, or the types of the tensors do not add up to its traffic.
    """
    both = [name for name, count in cost.writes.items() if count and cost.reads.get(name)]
    if both or cost.atomics:
        return None
    numbers = cost.workload.longest.numbers
    sizes: dict[str, float] = {"io": cost.workload.element_size, "fp32": 4, "int32": 4, "int64": 8, "bool": 1}
    sizes["out"] = numbers.get("out_element_size", sizes["io"])
    sizes["kv"] = numbers.get("kv_size", 32 * sizes["io"]) / 32
    quarters = numbers.get("weight_size", 32 * sizes["io"])

    def size(name: str) -> float:
        if name in ("W", "W_gate", "W_up"):
            return float(quarters / 32)
        known = TENSORS.get(name)
        kind = "kv" if name in ("K", "V") else "io" if known is None else known.dtype
        if known is None and (name.endswith("_acc") or name in ("router_weights", "angles")):
            kind = "fp32"
        elif name in ("slots", "tokens"):
            kind = "int64"
        elif name in ("Y", "G", "bias"):
            kind = "out"
        return float(sizes.get(kind, sizes["io"]))

    written = sum(count * size(name) for name, count in cost.writes.items())
    read = sum(count * size(name) for name, count in cost.reads.items())
    return round(written) if round(written + read) == cost.hbm_bytes else None


def explanations(
    estimate: Estimate, counters: KernelCounters, levels: Mapping[str, AuditedLevel], written: int | None
) -> Iterator[str]:
    """Explain the levels of a call from its counters."""
    yield from _spills(counters)
    yield from _uncoalesced(counters)
    if "L2" in levels:
        yield from _requests(counters, levels["L2"], estimate)
    if "DRAM" in levels:
        yield from _below(estimate, counters, levels, written)
        yield from _streams(estimate, counters, written)


def _spills(counters: KernelCounters) -> Iterator[str]:
    local = counters.local_bytes
    if local:
        yield f"spills: {local:,} B of local memory are moved beside the tensors; fewer rows or more warps avoid it"


def _uncoalesced(counters: KernelCounters) -> Iterator[str]:
    used = counters.bytes_per_sector
    if used is not None and 0 < used < FULL * SECTOR:
        yield (
            f"uncoalesced loads: {used:.1f} of {SECTOR} B of a sector are used, so loads ask the L2 for "
            f"{SECTOR / used:.2f} times their bytes"
        )


def _requests(counters: KernelCounters, level: AuditedLevel, estimate: Estimate) -> Iterator[str]:
    """Explain sectors of the L2 that differ from the requests."""
    requested = level.predicted[1]
    if level.verdict == "above":
        used, excess = counters.bytes_per_sector, level.measured - requested
        local = counters.local_bytes or 0
        wasted = used is not None and 0 < used < FULL * SECTOR
        if not local and not wasted:
            ratio = level.measured / requested
            tiles = ", ".join(f"{name} = {size}" for name, size in estimate.tiles.items())
            yield (
                f"requests: {ratio:.2f} times the predicted, {excess:,} B more, by coalesced loads without spills; the "
                f"kernel has smaller tiles than {tiles or 'given'}, or does not skip hidden tiles"
            )
    elif level.verdict == "below":
        yield (
            f"requests: {1 - level.measured / requested:.0%} of the requests do not reach the L2: the L1 cache, "
            "multicast within a cluster or larger tiles serve them"
        )


def _below(
    estimate: Estimate, counters: KernelCounters, levels: Mapping[str, AuditedLevel], written: int | None
) -> Iterator[str]:
    """Explain missing DRAM traffic by data that stay in the L2."""
    writes = counters.dram_written
    capacity = estimate.rates.l2_capacity or 0
    if written is not None and writes is not None and writes < written:
        left = written - writes
        if left <= capacity:
            yield (
                f"write-back outside the window: {left:,} B of the output, {left / written:.0%}, are still in the L2 "
                f"({capacity:,} B) when the kernel ends"
            )
    reads = levels.get("DRAM reads")
    if reads is not None and reads.verdict == "below":
        missing = reads.predicted[0] - reads.measured
        yield (
            f"warm cache: {missing:,} B of the inputs were in the L2 before the kernel; "
            "ncu --cache-control all empties it"
        )


def _streams(estimate: Estimate, counters: KernelCounters, written: int | None) -> Iterator[str]:
    """State how often K and V, or the operands of a product, come from DRAM."""
    reads = counters.dram_read
    cost = estimate.cost
    if reads is None or written is None or not {"K", "V"} <= cost.reads.keys():
        return
    w = cost.workload.longest
    numbers = w.numbers
    rows = numbers["batch"] * numbers["kv_heads"] * numbers["kv_len"]
    once = rows * (numbers["head_dim"] + numbers["value_dim"]) * numbers.get("kv_size", 32 * w.element_size) / 32
    others = estimate.compulsory_bytes - written - once
    passes, requested = (reads - others) / once, estimate.requested_bytes - written - others
    if passes > 1.05:
        yield (
            f"re-read K and V: they come from DRAM {passes:.1f} times, of {requested / once:.1f} times that blocks ask "
            "for them; blocks of one head that run together, or taller tiles of queries, share them"
        )
