"""From a measured time to what binds a kernel, what it asks for in vain, and what would help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.check import as_device
from iomodel.cost import Cost
from iomodel.diagnosis.bound import bound_of
from iomodel.diagnosis.facts import Grid, Redundancy, WorkingSet, grid, on_chip, redundancies, sm_capacity, working_sets
from iomodel.diagnosis.model import Change, modelled, physical_floor
from iomodel.diagnosis.remedies import Remedy, remedies, uses_no_matrix_unit, vector_peak
from iomodel.diagnosis.text import shown as drawn
from iomodel.errors import InputError, shown
from iomodel.estimate_result import Estimate
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.parameters import DEFAULT, Parameters
from iomodel.show import Shown
from iomodel.validation import as_integer, finite
from iomodel.workload import Attention, as_attention


@dataclass(frozen=True)
class Diagnosis(Shown):
    """What a measured time says of a kernel.

    Attributes
    ----------
    seconds, floor : float
        The time measured; what no kernel can beat [s].
    bound : str
        ``memory``, ``L2/requests``, ``shared memory``, ``compute``, ``launch`` or ``latency/occupancy``.
    nearest : str
        The entry of the estimate's breakdown that comes nearest to the time.
    reasons : tuple of str
        Why it is that class.
    estimate : Estimate
        What the model says of the same kernel; its breakdown holds the floors.
    cost : Cost
        What the kernel counts, at the tiles given.
    redundancy : tuple of Redundancy
        For each tensor what is asked for, and what need move.
    working_sets : tuple of WorkingSet
        Bytes that are used together, against the memories.
    grid : Grid
        Thread blocks against SMs.
    on_chip_bytes, on_chip_limit : int
        What the tiles take, and what a block may use [B].
    vector_peak : float or None
        The fp32 peak without matrix units, where the kernel plainly uses none [FLOP/s].
    remedies : tuple of Remedy
        What would help, the largest predicted gain first.
    left_out : tuple of str
        What could not be said, or was assumed.
    """

    algorithm: str
    workload: Attention
    hardware: Hardware
    tiles: Mapping[str, int]
    seconds: float
    floor: float
    bound: str
    nearest: str
    reasons: tuple[str, ...]
    estimate: Estimate
    cost: Cost
    redundancy: tuple[Redundancy, ...]
    working_sets: tuple[WorkingSet, ...]
    grid: Grid
    on_chip_bytes: int
    on_chip_limit: int
    vector_peak: float | None
    remedies: tuple[Remedy, ...]
    left_out: tuple[str, ...]

    @property
    def figures(self) -> dict[str, float]:
        """Rates and shares achieved: FLOPs [FLOP/s], bandwidths [B/s], intensities [FLOP/B], shares [-]."""
        cost, known, time = self.cost, self.estimate.rates, self.seconds
        requested, compulsory = cost.hbm_bytes, self.estimate.compulsory_bytes
        useful, visited = cost.useful_flops / time, cost.flops / time
        vector = {} if self.vector_peak is None else {"vector_share": useful / self.vector_peak}
        return {
            "useful_flops_per_second": useful,
            "visited_flops_per_second": visited,
            "matrix_share": useful / known.peak,
            **vector,
            "requested_bandwidth": requested / time,
            "requested_share": requested / time / known.hbm_peak,
            "compulsory_bandwidth": compulsory / time,
            "compulsory_share": compulsory / time / known.hbm_peak,
            "requested_intensity": cost.useful_flops / requested,
            "compulsory_intensity": cost.useful_flops / compulsory,
            "ridge": self.estimate.ridge,
            "redundancy": requested / compulsory,
        }

    @property
    def floors(self) -> Mapping[str, float]:
        """What each resource would need by itself, and what trips, tails and launches add [s]."""
        return self.estimate.breakdown

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "workload": self.workload.to_dict(),
            "hardware": self.hardware.id or self.hardware.name,
            "tiles": dict(self.tiles),
            "seconds": self.seconds,
            "floor": self.floor,
            "model_seconds": self.estimate.seconds,
            "useful_flops": self.cost.useful_flops,
            "visited_flops": self.cost.flops,
            "requested_bytes": self.cost.hbm_bytes,
            "compulsory_bytes": self.estimate.compulsory_bytes,
            "figures": self.figures,
            "bound": self.bound,
            "nearest": self.nearest,
            "reasons": list(self.reasons),
            "floors": dict(self.floors),
            "redundancy": [one.to_dict() for one in self.redundancy],
            "working_sets": [one.to_dict() for one in self.working_sets],
            "grid": self.grid.to_dict(),
            "on_chip_bytes": self.on_chip_bytes,
            "on_chip_limit": self.on_chip_limit,
            "remedies": [remedy.to_dict() for remedy in self.remedies],
            "left_out": list(self.left_out),
        }

    def __rich__(self) -> Any:
        """Return tables for the terminal."""
        return drawn(self)


def diagnose(
    algorithm: str,
    workload: Attention,
    hardware: Hardware | str,
    seconds: float,
    tiles: Mapping[str, int] | None = None,
    *,
    blocks: int | None = None,
    parameters: Parameters = DEFAULT,
    **options: Any,
) -> Diagnosis:
    """Say what binds a kernel that was timed, what it asks for in vain, and what would help.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`: the schedule of the kernel.
    workload : Attention
        The attention call, forward or backward.
    hardware : Hardware or str
        The device it ran on.
    seconds : float
        The time measured [s].
    tiles : mapping of tile name to int, optional
        Tiles of the kernel [rows], with ``warps`` and ``stages`` if known; without them those of least time.
    blocks : int, optional
        Thread blocks as launched, where they are not those of the algorithm's grid [-]. They count against the SMs;
        the model's time stays that of the algorithm's own grid.
    parameters : Parameters
        What the time model assumes beside the device's figures.
    **options
        Options of the algorithm, and ``packed=True``.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        As for :func:`iomodel.estimate`; a time that is no number above 0, or below what is physically possible.
    InfeasibleError
        No tiles are given, and none fits.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=16, head_dim=8192, dtype="fp32")
    >>> d = iomodel.diagnose("tiled_query", w, "a100-sxm4-80gb", 183e-6, {"block_q": 1, "block_kv": 16})
    >>> d.bound, d.grid.blocks, d.grid.idle, d.remedies[0].name
    ('latency/occupancy', 16, 92, 'split keys')
    """
    call, device = as_attention(workload), as_device(hardware)
    time = _time(seconds)
    launched = None if blocks is None else as_integer("blocks", blocks)
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.Parameters")
    found = modelled(Change(algorithm, call, tiles, FrozenDict(options), parameters), device)
    floor = physical_floor(found.estimate)
    if time < floor.seconds:
        raise InputError(
            f"seconds: {time:g} given; impossible: {algorithm} on {device.name} cannot take less than "
            f"{floor.seconds:.3g} s ({floor.reason})"
        )
    against = grid(found.estimate, launched)
    bound = bound_of(found.estimate, time, against)
    taken = on_chip(found, device)
    return Diagnosis(
        algorithm=algorithm,
        workload=call,
        hardware=device,
        tiles=found.cost.tiles if found.note else found.estimate.tiles,
        seconds=time,
        floor=floor.seconds,
        bound=bound.kind,
        nearest=bound.nearest,
        reasons=bound.reasons,
        estimate=found.estimate,
        cost=found.cost,
        redundancy=redundancies(found, device),
        working_sets=working_sets(call, device, taken),
        grid=against,
        on_chip_bytes=taken,
        on_chip_limit=device.sram_per_block,
        vector_peak=vector_peak(device) if uses_no_matrix_unit(found) else None,
        remedies=remedies(found, device, time, against, bound.kind),
        left_out=(*([found.note] if found.note else []), *_missing(device), *found.estimate.left_out),
    )


def _time(seconds: object) -> float:
    if not finite(seconds) or seconds <= 0:
        raise InputError(f"seconds: {shown(seconds)} given; allowed: a time above 0 in seconds, such as 0.000183")
    return float(seconds)


def _missing(device: Hardware) -> list[str]:
    return [] if sm_capacity(device) is not None else ["whether a working set fits an SM (no capacity on file)"]
