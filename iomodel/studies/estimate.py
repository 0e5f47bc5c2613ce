"""Estimates of the time, the limiting resource and the DRAM traffic of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.cache import per_device
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer, as_mapping
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.bounds import compulsory
from iomodel.counting.cost import Cost
from iomodel.counting.options import only_taken
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.levels import memory_levels
from iomodel.devices.rates import Rates, rates
from iomodel.errors import InputError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import (
    LAUNCH_NAMES,
)
from iomodel.nests.implementation import Implementation
from iomodel.placement.implementations import check_layer_kernels, implementation_for
from iomodel.solving.best_choice import best_choice
from iomodel.solving.default_tiles import fastest_tiles
from iomodel.timing.clock import Clock, clock_for
from iomodel.timing.kernel_time import KernelTime
from iomodel.timing.layer_clock import layer_clock
from iomodel.timing.level_traffic import level_traffic
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.timing.result import Estimate
from iomodel.timing.totals import dram_interval, leaving_interval, seconds_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.varlen import VarlenAttention, as_call
from iomodel.workloads.workload import Workload, as_workload


class Timed(Protocol):
    """A launch configuration of one pass, with the times of its kernels."""

    @property
    def tiles(self) -> Mapping[str, int]:
        """Tiles, warps and stages."""

    @property
    def times(self) -> list[float]:
        """Time of each kernel [s]."""

    @property
    def kernels(self) -> tuple[KernelTime, ...]:
        """The kernels."""


@dataclass(frozen=True)
class _TimedKernels:
    """A launch configuration of kernels that have been described."""

    tiles: Mapping[str, int]
    kernels: tuple[KernelTime, ...]

    @property
    def times(self) -> list[float]:
        return [kernel.seconds for kernel in self.kernels]


def estimate(
    algorithm: AlgorithmLike,
    workload: Workload,
    hardware: Hardware | str,
    tiles: Mapping[str, int] | None = None,
    *,
    parameters: Parameters = DEFAULT,
    implementation: str | Implementation | None = None,
    **options: Any,
) -> Estimate:
    """Estimate the time, the limiting resource and the DRAM traffic of a call.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention, VarlenAttention, Linear or Recurrence
        The call; sequences of different lengths share one grid. Without tiles a linear layer takes the fastest of the
        usual tiles, and the fastest `splits` if it is not given.
    hardware : Hardware or str
        A device; its `measured` figures take precedence over those of the datasheet.
    tiles : mapping of tile name to int, optional
        Tiles [rows], optionally with ``warps`` and ``stages``; the fastest launch of these tiles counts. The default
        is the tile that the implementation ships for the call, and where it ships none the fastest tiles, as
        :func:`iomodel.solve` answers them.
    parameters : Parameters
        The assumptions of the model beside the figures of the device.
    implementation : str or Implementation, optional
        The kernels: one of :func:`iomodel.list_implementations`, by default the first that runs the call there.
        Without tiles, the options that its kernels choose per call are chosen too.
    **options
        Options of the algorithm, and ``packed=True``.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        An unknown name or wrong tile; a device without a matrix peak of the dtype or without a bandwidth.
    InfeasibleError
        The tiles do not fit the device, or no tiles do.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(batch=2, heads=16, q_len=8192, head_dim=128)
    >>> e = iomodel.estimate("flash2", w, "a100-sxm4-80gb", {"block_q": 128, "block_kv": 64, "warps": 4})
    >>> e.bound, round(e.mfu, 2)
    ('matrix', 0.71)
    """
    device = as_device(hardware)
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.devices.Parameters")
    known = rates(device, as_workload(workload).dtype)
    if not isinstance(workload, Call):
        if isinstance(workload, Linear):
            check_layer_kernels(algorithm, workload, device, implementation)
        elif implementation is not None:
            raise InputError(
                f"implementation: {shown(implementation)} given; allowed: none, with a {workload.operation} workload"
            )
        return _of_layer(algorithm, workload, device, tiles, parameters, known, options)
    call = as_call(workload)
    BoundCall.bind(algorithm, call, options, tiled=False)  # raises for a wrong input before the search
    searched = call.direction == "both"
    if tiles is None:
        tiles, chosen = fastest_tiles(algorithm, call, device, parameters, implementation, options)
        options = dict(chosen)
        searched = True
    tile_mapping = as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    launch = {name: tile_mapping[name] for name in LAUNCH_NAMES & tile_mapping.keys()}
    for name, size in launch.items():
        as_integer(name, size)
    if tile_mapping and not searched:
        options = _with_searched(algorithm, call, device, implementation, options, parameters, tile_mapping)
    bound = BoundCall.bind(algorithm, call, options, tiled=bool(tile_mapping.keys() - LAUNCH_NAMES))
    sizes = bound.sizes(tile_mapping)
    passes = _passes(bound, call, device, sizes, parameters, implementation)
    timed = [clock.fastest(tile, launch) for clock, tile in passes]
    parameters = max((clock.parameters for clock, _ in passes), key=lambda values: values.host_launch)
    clocks = tuple(clock for clock, tile in passes if tile and clock.assumed)
    return assembled(algorithm, call, device, partial(bound.at, sizes), timed, known, parameters, sizes, clocks)


def _with_searched(
    algorithm: AlgorithmLike,
    call: Attention | VarlenAttention,
    device: Hardware,
    implementation: str | Implementation | None,
    options: dict[str, Any],
    parameters: Parameters,
    tiles: Mapping[str, int],
) -> dict[str, Any]:
    """Add the fastest of the options that the kernels choose per call and that are not given."""
    declaration = find_algorithm(algorithm)
    if implementation is None and not any(known.searched for known in declaration.implementations):
        return options
    kernels = implementation_for(declaration, call, device, implementation)
    if set(kernels.searched) <= options.keys():
        return options
    best = best_choice(declaration, call, device, kernels, options, parameters, lambda _: tiles)
    return options if best is None else dict(best[1])


def _of_layer(
    algorithm: AlgorithmLike,
    workload: Workload,
    device: Hardware,
    tiles: Mapping[str, int] | None,
    parameters: Parameters,
    known: Rates,
    options: dict[str, Any],
) -> Estimate:
    """Estimate a workload other than attention; a linear layer at the usual tiles of these."""
    bound, clock = BoundCall.bind(algorithm, workload, options), layer_clock(device, parameters)
    if tiles is None and not isinstance(workload, Linear):
        tiles = fastest_tiles(algorithm, workload, device, parameters, None, options)[0]
    tile_mapping = (
        {} if tiles is None else as_mapping("tiles", tiles, "{'block_m': 128, 'block_n': 128, 'block_k': 64}")
    )
    sizes: dict[str, int] = {} if tiles is None else bound.sizes(tile_mapping)
    if isinstance(workload, Linear):
        parts = options.get("splits") if tiles is None else bound.options["splits"]
        launch = {name: as_integer(name, tile_mapping[name]) for name in LAUNCH_NAMES & tile_mapping.keys()}
        kernels, tile = clock.fastest((workload,), None if tiles is None else {**sizes, **launch}, parts, algorithm)
        sizes = dict(tile.sizes)
        bound = BoundCall.bind(algorithm, workload, {**options, "splits": sizes.pop("splits")})
    else:
        timer = clock_for(algorithm, workload, device, bound.options, parameters, known)
        kernels = list(timer.fastest(sizes, {}).kernels)
    cost = bound.cost(sizes)
    launch = tile.launch if isinstance(workload, Linear) else {}
    timed = [_TimedKernels({**sizes, **launch}, tuple(kernels))]
    return assembled(algorithm, workload, device, lambda: cost, timed, known, parameters, sizes)


def _passes(
    whole: BoundCall,
    call: Attention | VarlenAttention,
    device: Hardware,
    sizes: Mapping[str, int],
    parameters: Parameters,
    implementation: str | Implementation | None,
) -> list[tuple[Clock, dict[str, int]]]:
    """Return the clock of each direction under its own options, with its tiles by their plain names."""
    options = tuple(sorted(whole.options.items()))
    passes = []
    for bound, clock in _clocks(device, whole.algorithm, call, options, bool(sizes), parameters, implementation):
        tile = {name: sizes[name] for name in bound.tiles}
        if bound.workload.direction == "backward" and call.direction == "both":
            tile = {name: sizes.get(f"bwd_{name}", sizes[name]) for name in bound.tiles}
        passes.append((clock, tile))
    return passes


@per_device
def _clocks(
    device: Hardware,
    declaration: Algorithm,
    call: Attention | VarlenAttention,
    options: tuple[tuple[str, Any], ...],
    tiled: bool,
    parameters: Parameters,
    implementation: str | Implementation | None,
) -> list[tuple[BoundCall, Clock]]:
    """Build the clock of each direction of a call; it times any tile."""
    known, passes = rates(device, call.dtype), []
    for direction in ("forward", "backward") if call.direction == "both" else (call.direction,):
        pass_call, taken = call, dict(options)
        if direction != call.direction:
            pass_call = call.model_copy(update={"direction": direction})
            taken = only_taken(declaration, direction, taken)
            if direction == "forward":
                taken |= declaration.saved
        bound = BoundCall.bind(declaration, pass_call, taken, tiled=tiled)
        clock = clock_for(declaration, pass_call, device, bound.options, parameters, known, implementation)
        passes.append((bound, clock))
    return passes


def assembled(
    algorithm: AlgorithmLike,
    call: Workload,
    device: Hardware,
    cost: Callable[[], Cost],
    timed: Sequence[Timed],
    known: Rates,
    parameters: Parameters,
    sizes: Mapping[str, int],
    assumed: Sequence[Clock] = (),
) -> Estimate:
    """Combine the passes of a call into one estimate; what its time does not need is computed when it is read."""
    seconds = seconds_of([time for launch in timed for time in launch.times], parameters)
    tiles = dict(sizes)
    if call.direction != "both":
        for launch in timed:
            tiles |= {name: size for name, size in launch.tiles.items() if name in LAUNCH_NAMES}
    own: dict[str, Callable[[Estimate], Any]] = {
        "cost": lambda _: cost(),
        "kernels": lambda _: tuple(kernel for launch in timed for kernel in launch.kernels),
        "compulsory_bytes": lambda result: min(compulsory(algorithm, call).bytes, result.requested_bytes),
        "left_out": lambda _: (
            *known.left_out,
            *dict.fromkeys(clock.bare for clock in assumed if clock.bare is not None),
            *memory_levels(device)[1],
        ),
        "levels": lambda result: level_traffic(
            algorithm, call, device, result.requested_bytes, result.l2_bytes, result.dram_bytes
        ),
    }
    return Estimate.deferring(
        {**LATER, **own},
        algorithm=name_of(algorithm),
        workload=call,
        hardware=device,
        tiles=FrozenDict(tiles),
        seconds=seconds,
        rates=known,
        parameters=parameters,
    )


def _breakdown(result: Estimate) -> FrozenDict[str, float]:
    """Add up the breakdowns of the kernels; where the host takes longer than they do, it is the launches."""
    summed: dict[str, float] = {}
    for kernel in result.kernels:
        for name, value in kernel.breakdown.items():
            summed[name] = summed.get(name, 0.0) + value
    if result.seconds > sum(kernel.seconds for kernel in result.kernels):
        summed["launch"] = result.seconds
    return FrozenDict(summed)


def _dram_bytes(result: Estimate) -> tuple[int, int]:
    cached = result.rates.cached
    return dram_interval(result.kernels, result.compulsory_bytes, result.requested_bytes, cached)


def _l2_bytes(result: Estimate) -> tuple[int, int]:
    capacity = result.rates.l2_capacity
    return leaving_interval(result.kernels, result.compulsory_bytes, result.requested_bytes, capacity)


def _lock_step_bytes(result: Estimate) -> int | None:
    together = [kernel.lock_step_bytes for kernel in result.kernels]
    low, high = result.dram_bytes
    return None if None in together else min(max(low, sum(filter(None, together))), high)


def _idle(result: Estimate) -> Iterator[str]:
    """Warn of the longest kernel if it leaves SMs without a block."""
    units = result.rates.units
    longest = max(result.kernels, key=lambda kernel: kernel.seconds, default=None)
    if longest is not None and units is not None and longest.blocks < units:
        blocks = "1 block leaves" if longest.blocks == 1 else f"{longest.blocks:,} blocks leave"
        yield f"{longest.title}: {blocks} {units - longest.blocks:,} of {units:,} SMs idle"


LATER: Mapping[str, Callable[[Estimate], Any]] = {
    "requested_bytes": lambda result: result.cost.hbm_bytes,
    "breakdown": _breakdown,
    "bound": lambda result: max(result.breakdown, key=result.breakdown.__getitem__),
    "dram_bytes": _dram_bytes,
    "l2_bytes": _l2_bytes,
    "lock_step_bytes": _lock_step_bytes,
    "assumed": lambda result: (*result.rates.assumed, *_idle(result)),
}
"""Fields of an estimate that follow from other fields."""
