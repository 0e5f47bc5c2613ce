"""The fastest of the options that the kernels of an implementation choose per call, at given tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.bound_call import BoundCall
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.errors import IOModelError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import Implementation
from iomodel.solving.candidates import choices
from iomodel.timing.clock import clock_for
from iomodel.timing.parameters import Parameters
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention

Choice = tuple[Mapping[str, int], Mapping[str, Any]]
"""Tiles, and the options that go with them."""


def best_choice(
    algorithm: Algorithm,
    call: Attention | VarlenAttention,
    device: Hardware,
    kernels: Implementation,
    options: Mapping[str, Any],
    parameters: Parameters,
    tile: Callable[[Mapping[str, Any]], Mapping[str, int] | None],
) -> Choice | None:
    """Return the fastest of the options that the kernels choose, at the tile under each; None if no tile fits."""
    known = rates(device, call.dtype)
    best: tuple[float, Choice | None] = (inf, None)
    for searched in choices(kernels, call, algorithm.takes(call.direction), options):
        chosen = {**options, **searched}
        sizes = tile(chosen)
        if sizes is None:
            continue
        launch = {name: sizes[name] for name in LAUNCH_NAMES & sizes.keys()}
        try:
            bound = BoundCall.bind(algorithm, call, chosen)
            plain = bound.sizes({name: sizes[name] for name in bound.tiles if name in sizes})
            timed = clock_for(algorithm, call, device, bound.options, parameters, known, kernels).fastest(plain, launch)
        except IOModelError:
            continue
        if timed.seconds < best[0]:
            best = timed.seconds, (FrozenDict(timed.tiles), chosen)
    return best[1]
