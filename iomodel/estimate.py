"""Seconds from bytes and FLOPs: how long a call takes, what binds it, and what crosses the bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.bounds import lower_bounds
from iomodel.check import as_device
from iomodel.cost import Cost, check_requirements, cost_at, tally_for, tile_sizes
from iomodel.default_tiles import fastest_tiles
from iomodel.errors import InputError, shown
from iomodel.estimate_result import Estimate
from iomodel.execution import Execution
from iomodel.expressions import only_taken
from iomodel.fitting import Clock, Timed, clock_for
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.parameters import DEFAULT, Parameters
from iomodel.rates import Rates, rates
from iomodel.symbols import LAUNCH_NAMES
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Attention, VarlenAttention, as_call


def estimate(
    algorithm: str,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str,
    tiles: Mapping[str, int] | None = None,
    *,
    parameters: Parameters = DEFAULT,
    execution: Execution | None = None,
    **options: Any,
) -> Estimate:
    """Estimate the time of a call, what binds it, and its DRAM traffic.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    workload : Attention or VarlenAttention
        The attention call; sequences of different lengths share one grid.
    hardware : Hardware or str
        A device; its `measured` figures are taken where it has them, else the datasheet's.
    tiles : mapping of tile name to int, optional
        Tiles [rows], with ``warps`` and ``stages`` if wanted; of several ways to run them the fastest counts. Without
        them the fastest tiles of all: ``solve(..., residency="gpu", objective="time")``.
    parameters : Parameters
        What the model assumes beside the device's figures.
    execution : Execution, optional
        What overlaps and which loops are thread blocks, where that is not as declared with the algorithm.
    **options
        Options of the algorithm, and ``packed=True``.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        An unknown name or wrong tile; a device without a matrix peak of the dtype or without a bandwidth.
    InfeasibleError
        The tiles do not fit the device, or none does.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(batch=2, heads=16, q_len=8192, head_dim=128)
    >>> e = iomodel.estimate("flash2", w, "a100-sxm4-80gb", {"block_q": 128, "block_kv": 64, "warps": 4})
    >>> e.bound, round(e.mfu, 2)
    ('matrix', 0.72)
    """
    call, device = as_call(workload), as_device(hardware)
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.Parameters")
    if execution is not None and not isinstance(execution, Execution):
        raise InputError(f"execution: {shown(execution)} given; allowed: an iomodel.Execution")
    known = rates(device, call.dtype)
    tally_for(algorithm, call, options, tiled=False)  # refuses what is wrong before anything is searched
    if tiles is None:
        tiles = fastest_tiles(algorithm, call, device, parameters, execution, options)
    given = as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    launch = {name: given[name] for name in LAUNCH_NAMES & given.keys()}
    for name, size in launch.items():
        as_integer(name, size)
    tally, complete = tally_for(algorithm, call, options, tiled=bool(given.keys() - LAUNCH_NAMES))
    sizes = tile_sizes(algorithm, tally.tiles, given)
    check_requirements(find_algorithm(algorithm), call, complete, sizes)
    cost = cost_at(tally, call, sizes, complete)
    passes = _passes(algorithm, call, device, complete, sizes, parameters, known, execution)
    timed = [clock.fastest(tile, launch) for clock, tile in passes]
    bare = tuple(dict.fromkeys(clock.bare for clock, tile in passes if tile and clock.bare is not None))
    return assembled(algorithm, call, device, cost, timed, known, parameters, sizes, bare)


def _passes(
    algorithm: str,
    call: Attention | VarlenAttention,
    device: Hardware,
    complete: Mapping[str, Any],
    sizes: Mapping[str, int],
    parameters: Parameters,
    known: Rates,
    execution: Execution | None,
) -> list[tuple[Clock, dict[str, int]]]:
    """Each direction by itself, with its own options, and its tiles by their plain names."""
    directions = ("forward", "backward") if call.direction == "both" else (call.direction,)
    declaration, found = find_algorithm(algorithm), []
    for direction in directions:
        one = call if direction == call.direction else call.model_copy(update={"direction": direction})
        taken = only_taken(declaration, direction, complete)
        if direction == "forward" and call.direction == "both":
            taken |= declaration.saved
        tally, options = tally_for(algorithm, one, taken, tiled=bool(sizes))
        clock = clock_for(algorithm, one, device, options, parameters, known, execution)
        tile = {name: sizes[name] for name in tally.tiles}
        if direction == "backward" and call.direction == "both":
            tile = {name: sizes.get(f"bwd_{name}", sizes[name]) for name in tally.tiles}
        found.append((clock, tile))
    return found


def assembled(
    algorithm: str,
    call: Attention | VarlenAttention,
    device: Hardware,
    cost: Cost,
    timed: list[Timed],
    known: Rates,
    parameters: Parameters,
    sizes: Mapping[str, int],
    bare: tuple[str, ...] = (),
) -> Estimate:
    """The passes of a call together."""
    kernels = tuple(kernel for one in timed for kernel in one.kernels)
    breakdown: dict[str, float] = {}
    for kernel in kernels:
        for name, value in kernel.breakdown.items():
            breakdown[name] = breakdown.get(name, 0.0) + value
    seconds = sum(kernel.seconds for kernel in kernels)
    host = parameters.host_launch * len(kernels)
    if host > seconds:
        breakdown["launch"], seconds = host, host
    least = lower_bounds(algorithm, call, 1)["compulsory"].bytes
    requested = cost.hbm_bytes
    kept = 2 * (known.l2_capacity or 0) * (len(kernels) - 1)  # what one kernel leaves in the L2 for the next
    low = max(min(least, requested), sum(kernel.distinct_bytes for kernel in kernels) - kept)
    high = min(requested, max(low, sum(kernel.dram_bytes[1] for kernel in kernels)))
    together = [kernel.lock_step_bytes for kernel in kernels]
    launch = {name: size for one in timed for name, size in one.tiles.items() if name in LAUNCH_NAMES}
    return Estimate(
        algorithm=algorithm,
        workload=call,
        hardware=device,
        tiles=FrozenDict({**sizes, **(launch if call.direction != "both" else {})}),
        cost=cost,
        seconds=seconds,
        bound=max(breakdown, key=breakdown.__getitem__),
        breakdown=FrozenDict(breakdown),
        dram_bytes=(low, high),
        lock_step_bytes=None if None in together else min(max(low, sum(filter(None, together))), high),
        compulsory_bytes=min(least, requested),
        requested_bytes=requested,
        kernels=kernels,
        rates=known,
        parameters=parameters,
        left_out=(*known.left_out, *bare),
    )
