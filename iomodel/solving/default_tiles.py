"""Default tiles of an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.options import only_taken
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import Implementation
from iomodel.placement.implementations import implementations_for
from iomodel.placement.shipped_tile import shipped_tile
from iomodel.solving.best_choice import Choice, best_choice
from iomodel.solving.fastest import solve_fastest
from iomodel.solving.textbook_times import textbook_choice
from iomodel.timing.parameters import Parameters
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.varlen import VarlenAttention, as_call
from iomodel.workloads.workload import Workload


def fastest_tiles(
    algorithm: AlgorithmLike,
    call: Workload,
    device: Hardware,
    parameters: Parameters,
    implementation: str | Implementation | None,
    options: Mapping[str, Any],
) -> Choice:
    """Return the default tiles of :func:`iomodel.estimate`, with the options that go with them.

    The default is the tile that the implementation ships for the call, else the tiles of :func:`iomodel.solve`.
    Standard attention has no default tiles: each operand makes one ideal pass.
    """
    chosen = tuple(sorted(options.items()))
    return _remembered(find_algorithm(algorithm), call, device, parameters, implementation, chosen)


@lru_cache(maxsize=1024)
def _remembered(
    algorithm: Algorithm,
    call: Workload,
    device: Hardware,
    parameters: Parameters,
    implementation: str | Implementation | None,
    options: tuple[tuple[str, Any], ...],
) -> Choice:
    chosen = dict(options)
    if not BoundCall.bind(algorithm, call, chosen, tiled=False).tiles:
        return FrozenDict({}), chosen
    if not isinstance(call, Call):
        return textbook_choice(algorithm, call, device, parameters, chosen)
    call = as_call(call)
    if call.direction == "both":
        return _both(algorithm, call, device, parameters, implementation, chosen)
    failure: InfeasibleError | None = None
    for kernels in implementations_for(algorithm, call, device, implementation):
        shipped = shipped_choice(algorithm, call, device, kernels, chosen, parameters)
        if shipped is not None:
            return shipped
        try:
            best = solve_fastest(algorithm, call, device, kernels, None, 1, chosen, parameters)
        except InfeasibleError as error:
            failure = failure or error
        except InputError:
            if implementation is not None:
                raise
        else:
            return best.tiles, {**chosen, **{name: best.options[name] for name in best.searched}}
    if failure is not None:
        raise failure
    return textbook_choice(algorithm, call, device, parameters, chosen, implementation is None)


def shipped_choice(
    algorithm: Algorithm,
    call: Attention | VarlenAttention,
    device: Hardware,
    kernels: Implementation,
    options: Mapping[str, Any],
    parameters: Parameters,
) -> Choice | None:
    """Return the shipped tile of a call with the fastest of the options that the kernels choose; None if none fits."""

    def tile(chosen: Mapping[str, Any]) -> Mapping[str, int] | None:
        return shipped_tile(kernels, call, device, chosen)

    return best_choice(algorithm, call, device, kernels, options, parameters, tile)


def _both(
    algorithm: AlgorithmLike,
    call: Attention | VarlenAttention,
    device: Hardware,
    parameters: Parameters,
    implementation: str | Implementation | None,
    options: dict[str, Any],
) -> Choice:
    """Combine the default tiles of both directions."""
    declaration = find_algorithm(algorithm)
    tiles: dict[str, int] = {}
    for direction in ("forward", "backward"):
        taken = only_taken(declaration, direction, options)
        pass_call = call.model_copy(update={"direction": direction})
        part, searched = fastest_tiles(algorithm, pass_call, device, parameters, implementation, taken)
        options = {**options, **searched}
        plain = {name: size for name, size in part.items() if name not in LAUNCH_NAMES}
        names = BoundCall.bind(algorithm, call, options).tiles
        for name, size in plain.items():
            tiles[f"bwd_{name}" if direction == "backward" and f"bwd_{name}" in names else name] = size
    return FrozenDict(tiles), options
