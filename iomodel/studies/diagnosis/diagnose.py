"""Diagnosis of a measured time: the limiting resource, the redundant traffic and the remedies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.spellings import renamed
from iomodel.common.validation import as_integer, finite
from iomodel.counting.choice import split_choice
from iomodel.counting.cost import Cost
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, shown
from iomodel.nests.implementation import Implementation
from iomodel.placement.implementations import named
from iomodel.studies.diagnosis.bound import bound_of, largest_floor
from iomodel.studies.diagnosis.facts import (
    BlockGrid,
    Redundancy,
    WorkingSet,
    grid,
    on_chip,
    redundancies,
    sm_capacity,
    working_sets,
)
from iomodel.studies.diagnosis.growth import Growth, as_against, growth
from iomodel.studies.diagnosis.model import Change, Modelled, modelled, physical_floor
from iomodel.studies.diagnosis.remedies import Remedy, remedies, uses_no_matrix_unit, vector_peak
from iomodel.studies.diagnosis.text import shown as drawn
from iomodel.timing.estimate_result import Estimate
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.workloads.attention import Attention
from iomodel.workloads.linear import Linear
from iomodel.workloads.workload import Workload


@dataclass(frozen=True)
class Diagnosis(Result):
    """Explanation of a measured time.

    Attributes
    ----------
    seconds, floor : float
        The measured time; the physical lower bound on it [s].
    limited_by : str
        ``memory``, ``L2/requests``, ``shared memory``, ``compute``, ``launch`` or ``latency/occupancy``.
    nearest : str
        The entry of the estimate's breakdown nearest to the time.
    reasons : tuple of str
        The evidence for the class.
    estimate : Estimate
        The model's estimate of the same kernel; its breakdown holds the floors.
    cost : Cost
        The cost of the kernel at the given tiles.
    redundancy : tuple of Redundancy
        The requested and the compulsory traffic of each tensor.
    working_sets : tuple of WorkingSet
        The bytes that are used together, compared with the memories.
    grid : BlockGrid
        The thread blocks, compared with the SMs.
    on_chip_bytes, on_chip_limit : int
        The on-chip memory of the tiles, and the limit per block [B].
    vector_peak : float or None
        The fp32 peak without matrix units, for a kernel that cannot use them [FLOP/s].
    remedies : tuple of Remedy
        The changes that would gain, the largest predicted gain first.
    growth : Growth or None
        The growth from this time to a second one, if one is given, beside that of the work of each resource.
    left_out : tuple of str
        The unknowns and the assumptions.
    """

    derived = ("figures", "floors", "bound")
    renamed = FrozenDict(bound=("limited_by", ".limited_by"))

    algorithm: str
    workload: Annotated[Any, Workload]
    hardware: Hardware
    tiles: Mapping[str, int]
    seconds: float
    floor: float
    limited_by: str
    nearest: str
    reasons: tuple[str, ...]
    estimate: Estimate
    cost: Cost
    redundancy: tuple[Redundancy, ...]
    working_sets: tuple[WorkingSet, ...]
    grid: BlockGrid
    on_chip_bytes: int
    on_chip_limit: int
    vector_peak: float | None
    remedies: tuple[Remedy, ...]
    left_out: tuple[str, ...]
    growth: Growth | None = None

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
        """Time each resource would take if it were the only limit, and the times of trips, tails and launches [s]."""
        return self.estimate.breakdown

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        counts = {
            "model_seconds": self.estimate.seconds,
            "useful_flops": self.cost.useful_flops,
            "visited_flops": self.cost.flops,
            "requested_bytes": self.cost.hbm_bytes,
            "compulsory_bytes": self.estimate.compulsory_bytes,
        }
        return {**super().to_dict(), **counts}

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        return drawn(self)


@strict
def diagnose(
    algorithm: AlgorithmLike,
    workload: Workload,
    hardware: Hardware | str,
    seconds: float,
    tiles: Mapping[str, Any] | None = None,
    *,
    blocks: int | None = None,
    against: Mapping[str, Any] | str | None = None,
    parameters: Parameters = DEFAULT,
    implementation: str | Implementation | None = None,
    **options: Any,
) -> Diagnosis:
    """Explain a measured time: the limiting resource, the wasted work, and the remedies.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`: the schedule of the kernel.
    workload : Attention or Linear
        The attention call, forward or backward, or the linear layer.
    hardware : Hardware or str
        The device of the measurement.
    seconds : float
        The measured time [s].
    tiles : mapping of tile name to int, optional
        Tiles of the kernel [rows], with ``warps`` and ``stages`` if known; those of
        :func:`iomodel.estimate` by default.
    blocks : int, optional
        Thread blocks as launched, if they differ from the algorithm's grid [-]. They are compared with the SMs; the
        model's time remains that of the algorithm's own grid.
    against : mapping or str, optional
        A second measured time of the kernel, with the fields of the call, the tiles and the options that differ, such
        as ``{"kv_len": 8192, "seconds": 4e-3}`` or "kv_len=8192,seconds=4ms". The limit then is the resource whose work
        grows as the time does: a time that grows with the FLOPs alone is bound by compute, one that grows with the
        traffic by the memory, and one that does not grow by launches and the host. Of resources whose work grows
        alike, it is that of the first time, or the one with the largest floor.
    parameters : Parameters
        The assumptions of the time model beside the figures of the device.
    implementation : str or Implementation, optional
        The measured kernels: one of :func:`iomodel.list_implementations`; those of :func:`iomodel.estimate` by
        default.
    **options
        Options of the algorithm, and ``packed=True``; tiles by name (``block_q=128``).

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
    >>> d.limited_by, d.grid.blocks, d.grid.idle, d.remedies[0].name
    ('latency/occupancy', 16, 92, 'split keys')
    >>> w = iomodel.Attention(heads=16, q_len=256, kv_len=4096, head_dim=128)
    >>> other = {"q_len": 128, "kv_len": 16384, "seconds": 81e-6}  # twice the FLOPs, 3.8 times the bytes
    >>> iomodel.diagnose("flash2", w, "a100-sxm4-80gb", 80e-6, against=other).limited_by
    'launch'
    """
    if not isinstance(workload, Attention | Linear):
        raise InputError(f"workload: {shown(workload)} given; allowed: an iomodel.Attention or Linear")
    call = workload
    device = as_device(hardware)
    time = _time(seconds)
    launched = None if blocks is None else as_integer("blocks", blocks)
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.devices.Parameters")
    tiles, options = split_choice(algorithm, tiles, options)
    kernel = modelled(Change(algorithm, call, tiles, FrozenDict(options), parameters, implementation), device)
    floor = physical_floor(kernel.estimate)
    if time < floor.seconds:
        raise InputError(
            f"seconds: {time:g} given; impossible: {algorithm} on {device.name} cannot take less than "
            f"{floor.seconds:.3g} s ({floor.reason})"
        )
    blocked = grid(kernel.estimate, launched)
    bound = bound_of(kernel.estimate, time, blocked)
    grown = None if against is None else _growth(kernel, device, time, against)
    limit = bound.kind if grown is None or bound.kind in grown.alike else largest_floor(kernel.estimate, grown.alike)
    taken = on_chip(kernel, device)
    return Diagnosis(
        algorithm=name_of(named(algorithm, None, device)[0]),
        workload=call,
        hardware=device,
        tiles=kernel.cost.tiles if kernel.note else kernel.estimate.tiles,
        seconds=time,
        floor=floor.seconds,
        limited_by=limit,
        nearest=bound.nearest,
        reasons=(*(() if grown is None else grown.reasons()), *bound.reasons),
        estimate=kernel.estimate,
        cost=kernel.cost,
        redundancy=redundancies(kernel, device),
        working_sets=working_sets(call, device, taken),
        grid=blocked,
        on_chip_bytes=taken,
        on_chip_limit=device.sram_per_block,
        vector_peak=vector_peak(device) if uses_no_matrix_unit(kernel) else None,
        remedies=remedies(kernel, device, time, blocked, limit),
        left_out=(*([kernel.note] if kernel.note else []), *_missing(device), *kernel.estimate.left_out),
        growth=grown,
    )


def _growth(kernel: Modelled, device: Hardware, seconds: float, against: object) -> Growth:
    """Compare a measured time with a second one of the same kernel."""
    change, given = kernel.change, as_against(against)
    time, own = _time(given.pop("seconds")), type(change.workload).model_fields
    fields = dict(renamed(given, own))
    call = change.workload.replace(**{name: fields.pop(name) for name in own if name in fields})
    tiles, options = split_choice(change.algorithm, None, fields)
    sizes = change.tiles if tiles is None else {**(change.tiles or {}), **tiles}
    options = FrozenDict({**change.options, **options})
    other = modelled(replace(change, workload=call, tiles=sizes, options=options), device)
    if time < (floor := physical_floor(other.estimate)).seconds:
        raise InputError(
            f"against: {time:g} s given; impossible: it cannot take less than {floor.seconds:.3g} s ({floor.reason})"
        )
    return growth(kernel.estimate, other.estimate, (seconds, time))


def _time(seconds: object) -> float:
    if not finite(seconds) or seconds <= 0:
        raise InputError(f"seconds: {shown(seconds)} given; allowed: a time above 0 in seconds, such as 0.000183")
    return float(seconds)


def _missing(device: Hardware) -> list[str]:
    return [] if sm_capacity(device) is not None else ["whether a working set fits an SM (no capacity on file)"]
