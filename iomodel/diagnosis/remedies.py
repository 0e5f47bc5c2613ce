"""Changes to a kernel, each timed by the same model as the kernel itself; those that gain, best first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.diagnosis.candidates import Candidate, candidates
from iomodel.diagnosis.facts import Grid
from iomodel.diagnosis.model import Modelled, physical_floor
from iomodel.errors import IOModelError
from iomodel.estimate_result import Estimate
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.quantity import Quantity

LEAST_GAIN = 1.01
"""Below that the model cannot tell a gain from none [-]."""


@dataclass(frozen=True)
class Remedy:
    """A change and what the model expects of it.

    Attributes
    ----------
    name, why : str
        What changes, and why that should help.
    algorithm, dtype, tiles, options
        The kernel after the change.
    model_seconds : float
        The model's time after it [s].
    gain : float
        The model's time before over that after [-].
    seconds : float
        The measured time over the gain, but no less than `floor` [s].
    floor : float
        What no kernel can beat after the change [s].
    """

    name: str
    why: str
    algorithm: str
    dtype: str
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    model_seconds: float
    gain: float
    seconds: float
    floor: float

    @property
    def change(self) -> str:
        """The kernel after the change, in a few words."""
        sizes = [f"{name} = {size}" for name, size in (*self.tiles.items(), *self.options.items())]
        return f"{self.algorithm}, {self.dtype}{': ' if sizes else ''}{', '.join(sizes)}"

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {**self.__dict__, "tiles": dict(self.tiles), "options": dict(self.options)}


def remedies(found: Modelled, device: Hardware, seconds: float, blocks: Grid, kind: str) -> tuple[Remedy, ...]:
    """Every change that the model expects to gain, the largest gain first."""
    before = found.estimate
    best: dict[str, tuple[float, Estimate, Candidate]] = {}
    for candidate in candidates(found.change, device, blocks):
        try:
            after = candidate.change.timed(device)
        except IOModelError:  # it does not fit, or is not for this call or device: no remedy
            continue
        time = _at_least_vector(after, candidate, found)
        if candidate.name not in best or time < best[candidate.name][0]:
            best[candidate.name] = (time, after, candidate)
    made = [_remedy(*one, before, seconds) for one in best.values()]
    if kind == "launch":
        made += _graph(before, seconds)
    gaining = {
        remedy.change: remedy for remedy in reversed(made) if remedy.gain > LEAST_GAIN and remedy.seconds < seconds
    }
    return tuple(sorted(gaining.values(), key=lambda remedy: (-remedy.gain, remedy.name)))


def uses_no_matrix_unit(found: Modelled) -> bool:
    """Whether a kernel plainly has no use for matrix instructions: fp32 data, or fewer queries than they take."""
    rows = found.estimate.hardware.quantities.get("compute.mma.rows")
    least = int(rows.value) if isinstance(rows, Quantity) else 16
    return found.change.workload.dtype == "fp32" or found.cost.tiles.get("block_q", least) < least


def vector_peak(device: Hardware) -> float | None:
    """fp32 without matrix units [FLOP/s]."""
    figure = device.quantities.get("compute.peak.fp32")
    return float(figure.value) if isinstance(figure, Quantity) else None


def _at_least_vector(after: Estimate, candidate: Candidate, found: Modelled) -> float:
    """A kernel without matrix instructions does not come by them when its data get narrower."""
    peak = vector_peak(after.hardware)
    kept = candidate.change.algorithm == found.change.algorithm and candidate.change.tiles == found.change.tiles
    if peak is None or not kept or not uses_no_matrix_unit(found):
        return after.seconds
    return max(after.seconds, after.cost.flops / peak)


def _remedy(time: float, after: Estimate, candidate: Candidate, before: Estimate, seconds: float) -> Remedy:
    floor, gain = physical_floor(after).seconds, before.seconds / time
    changed = {name: value for name, value in candidate.change.options.items() if name in ("splits", "packed")}
    return Remedy(
        candidate.name,
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
    """The same kernels as the nodes of a graph: the host launches nothing one by one."""
    node = before.hardware.quantities.get("measured.graph_node")
    alone = before.rates.launch if before.rates.launch is not None else before.parameters.kernel_launch
    saved = 0.0
    if isinstance(node, Quantity):
        saved = max(0.0, alone - float(node.value)) * len(before.kernels)
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
