"""Overlap of the thread blocks that share an SM, as a closed queueing network.

A block alternates between the units of its SM and waits that occupy no unit (barriers, latencies, its start). Blocks on
one SM queue for the same unit and overlap otherwise. Mean value analysis (Reiser and Lavenberg 1980, J. ACM 27:313)
gives the time per block exactly for exponentially distributed service, between no overlap and perfect overlap, and has
no parameter. Warps of one block that share a scheduler overlap within a trip alone, because the block waits for all of
them at its end: the unit that takes longest serves them one after another, the others count once. Warp groups of a
warp-specialized forward pass wait for data alone, and so overlap like blocks.

The costs of a trip (:class:`iomodel.timing.parameters.Parameters`) were read from kernels that overlap already: forward
passes with two blocks or two warp groups on an SM, backward passes with two warps of a block on a scheduler. Such a
kernel takes the sum of its phases; any other takes more or less by the difference of the two networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from iomodel.common.arithmetic import anywhere, larger, pick, ratio, smaller

MOST = 8
"""Largest number of concurrent blocks per SM that is distinguished; more overlap as much."""


def times(
    busy: Sequence[Any],
    wait: Any,
    most: Any,
    beside: Any = 0.0,
    warps: Any = 1,
    groups: Any = 1,
    read_with: tuple[int, int] = (2, 1),
    awaited: Any = 0.0,
    asynchronous: Any = False,
) -> list[Any]:
    """Compute the time per block with 1, 2, ... `most` blocks at once on an SM [s]; times may be arrays.

    Of an array of `most`, the result has the times up to its largest number; those beyond a point's own are not its.

    Parameters
    ----------
    busy : sequence of float
        Time of a block on each unit, one after another [s].
    wait : float
        Time of a block on no unit [s].
    most : int or array
        Blocks at once [-].
    beside : float
        Time of a block on a unit that works beside the others [s].
    warps : int
        Computing warps of a block on each scheduler of its SM, which wait for each other in each trip [-].
    groups : int
        Parts of a block that overlap like blocks [-].
    read_with : tuple of int
        Blocks or groups on an SM, and warps of a block on a scheduler, of the kernels that take the sum of their phases
        [-]; (1, 1) for a kernel of which nothing was read.
    awaited : float
        Time of a block on no unit that was read from kernels with one block on an SM [s], beside `wait`.
    asynchronous : bool or array
        True where one warp of a block on each scheduler waits for products that run beside it. What two blocks leave
        idle is then a wait, of which more blocks fill more.

    >>> times([2.0, 1.0], 1.0, 3)  # 4 for two, more for one, less for three
    [5.375, 4.0, 3.628968253968254]
    >>> times([2.0, 1.0], 1.0, 2, read_with=(1, 1))
    [4.0, 2.625]
    >>> times([2.0, 1.0], 1.0, 2, awaited=1.0)  # two blocks hide more than half of it
    [6.375, 4.375]
    """
    alone = sum(busy) + wait
    at_once = larger(1, smaller(most, MOST))
    joined = groups * at_once
    deepest = int(at_once.max()) if isinstance(at_once, np.ndarray) else int(at_once)
    reach = int(joined.max()) if isinstance(joined, np.ndarray) else int(joined)
    if isinstance(warps, int) and warps == read_with[1] and not anywhere(awaited):
        # One network, of which the two read a part each.
        cycles = read = _cycles(_served(busy, warps), wait, max(reach, read_with[0]))
    else:
        read = _cycles(_served(busy, read_with[1]), wait, read_with[0])
        cycles = _cycles(_served(busy, warps), wait + awaited, reach)
    excess = alone - read[read_with[0] - 1]
    if not isinstance(groups, np.ndarray):
        shares = [pick(asynchronous, min(1.0, read_with[0] / many), 1.0) for many in range(1, deepest + 1)]
        return [
            larger(cycles[min(groups * many, len(cycles)) - 1] + excess * share, beside)
            for many, share in enumerate(shares, 1)
        ]
    parts = [(number, groups == number) for number in sorted(set(groups.ravel().tolist()))]
    return [
        larger(sum(where * cycles[min(number * many, len(cycles)) - 1] for number, where in parts) + excess, beside)
        for many in range(1, deepest + 1)
    ]


def _served(busy: Sequence[Any], warps: Any) -> Sequence[Any]:
    """Compute the times of a block on each unit that do not overlap within it [s]."""
    if not busy or (isinstance(warps, int) and warps <= 1):
        return busy
    longest, served = larger(*busy), []
    seen: Any = False
    for time in busy:
        counts_once = (time == longest) & (seen ^ True)  # one unit alone serves the warps one after another
        served.append(pick(counts_once, time, time / warps))
        seen = seen | counts_once
    return served


def _cycles(busy: Sequence[Any], wait: Any, most: int) -> list[Any]:
    """Compute the time per block by mean value analysis, for 1, 2, ... `most` blocks [s]."""
    # One array over all units takes a third of the calls of NumPy that an array for each unit would take.
    busy = [time for time in busy if anywhere(time)]
    units: Any = np.stack(np.broadcast_arrays(*busy)) if isinstance(sum(busy), np.ndarray) else None
    queued: Any = 0.0
    idle = False
    queues: Sequence[Any] = [0.0] * len(busy)
    result = []
    for many in range(1, most + 1):
        if units is not None:
            stay = units * (1 + queued) if many > 1 else units
            round_trip = np.add.reduce(stay, axis=0) + wait
            if many == 1:
                idle = not round_trip.all()
            if many < most:
                queued = many * (ratio(stay, round_trip) if idle else stay / round_trip)
        else:
            stays = [time * (1 + queue) for time, queue in zip(busy, queues, strict=True)]
            round_trip = sum(stays) + wait
            if many < most:
                queues = [many * ratio(stay, round_trip) for stay in stays]
        result.append(round_trip / many)
    return result
