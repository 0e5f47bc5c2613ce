"""Remedies: changes to a kernel that gain time by the same model as the kernel itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.common.display import figure
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record, column, printed
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity
from iomodel.errors import IOModelError
from iomodel.studies.diagnosis.facts import BlockGrid
from iomodel.studies.diagnosis.model import Modelled, physical_floor
from iomodel.studies.diagnosis.tried_changes import Candidate, candidates
from iomodel.timing.estimate_result import Estimate

LEAST_GAIN = 1.01
"""The least significant gain of the model [-]."""


@dataclass(frozen=True)
class Remedy(Record):
    """A change to a kernel with its predicted gain.

    Attributes
    ----------
    name, why : str
        The change, and the reason for its gain.
    algorithm, dtype, tiles, options
        The kernel after the change.
    model_seconds : float
        The model's time after the change [s].
    gain : float
        The model's time before the change over the time after it [-].
    seconds : float
        The measured time over the gain, but no less than `floor` [s].
    floor : float
        The physical lower bound on the time after the change [s].
    """

    name: str = field(metadata=column(""))
    why: str
    algorithm: str
    dtype: str
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    model_seconds: float
    gain: float = field(metadata=column(">gain", ",.2f"))
    seconds: float = field(metadata=column(">new time", lambda time: f"{figure(time * 1e6)} us"))
    floor: float

    @property
    @printed(column("kernel"))
    def change(self) -> str:
        """The kernel after the change, in a few words."""
        sizes = [f"{name} = {size}" for name, size in (*self.tiles.items(), *self.options.items())]
        return f"{self.algorithm}, {self.dtype}{': ' if sizes else ''}{', '.join(sizes)}"


def remedies(kernel: Modelled, device: Hardware, seconds: float, blocks: BlockGrid, kind: str) -> tuple[Remedy, ...]:
    """List the changes that gain by the model, the largest gain first."""
    before = kernel.estimate
    best: dict[str, tuple[float, Estimate, Candidate]] = {}
    for candidate in candidates(kernel.change, device, blocks):
        try:
            after = candidate.change.timed(device)
        except IOModelError:  # the change does not fit, or does not support the call or the device
            continue
        if candidate.apart and (after.implementation == before.implementation or after.error[1] > before.seconds):
            continue
        time = _at_least_vector(after, candidate, kernel)
        if candidate.name not in best or time < best[candidate.name][0]:
            best[candidate.name] = (time, after, candidate)
    changes = [_remedy(*entry, before, seconds) for entry in best.values()]
    if kind == "launch":
        changes += _graph(before, seconds)
    gaining = {  # weights of two types may take the same tiles, at other times
        (remedy.change, remedy.model_seconds): remedy
        for remedy in reversed(changes)
        if remedy.gain > LEAST_GAIN and remedy.seconds < seconds
    }
    return tuple(sorted(gaining.values(), key=lambda remedy: (-remedy.gain, remedy.name)))


def uses_no_matrix_unit(kernel: Modelled) -> bool:
    """Check that a kernel cannot use matrix instructions: fp32 data, or fewer queries than their tile."""
    rows = kernel.estimate.hardware.quantities.get("compute.mma.rows")
    least = int(rows.value) if isinstance(rows, Quantity) else 16
    return kernel.change.workload.dtype == "fp32" or kernel.cost.tiles.get("block_q", least) < least


def vector_peak(device: Hardware) -> float | None:
    """Return the fp32 peak without matrix units [FLOP/s]."""
    figure = device.quantities.get("compute.peak.fp32")
    return float(figure.value) if isinstance(figure, Quantity) else None


def _at_least_vector(after: Estimate, candidate: Candidate, kernel: Modelled) -> float:
    """Bound the time by the vector peak: narrower data give a kernel no matrix instructions."""
    peak = vector_peak(after.hardware)
    kept = candidate.change.algorithm == kernel.change.algorithm and candidate.change.tiles == kernel.change.tiles
    if peak is None or not kept or not uses_no_matrix_unit(kernel):
        return after.seconds
    return max(after.seconds, after.cost.flops / peak)


def _remedy(time: float, after: Estimate, candidate: Candidate, before: Estimate, seconds: float) -> Remedy:
    floor, gain = physical_floor(after).seconds, before.seconds / time
    options, plain = after.cost.options, {"splits": 1, "packed": False}
    changed = {name: options[name] for name in plain if options.get(name, 0) > plain[name]}
    return Remedy(
        after.implementation if candidate.apart else candidate.name,
        candidate.why,
        after.algorithm,
        after.workload.dtype,
        after.tiles,
        FrozenDict(changed),
        time,
        gain,
        max(floor, seconds / gain),
        floor,
    )


def _graph(before: Estimate, seconds: float) -> Iterator[Remedy]:
    """Yield the same kernels as the nodes of a graph, without single launches by the host."""
    node = before.hardware.quantities.get("measured.graph_node")
    alone = before.rates.launch if before.rates.launch is not None else before.parameters.kernel_launch
    saved = 0.0
    if isinstance(node, Quantity):
        saved = (1 - before.parameters.in_graph) * max(0.0, alone - float(node.value)) * len(before.kernels)
    time = sum(kernel.seconds for kernel in before.kernels) - saved
    gain, floor = before.seconds / time, physical_floor(before).seconds
    why = "a graph launches its kernels without the host, one soon after the other"
    yield Remedy(
        "graph",
        why,
        before.algorithm,
        before.workload.dtype,
        before.tiles,
        FrozenDict({}),
        time,
        gain,
        max(floor, seconds / gain),
        floor,
    )
