"""Traffic over the boundary of each level of a device's memory, beside the bound for every schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.cache import per_device
from iomodel.common.display import interval
from iomodel.common.results import Column, Record, column
from iomodel.counting.bounds import Bound, largest_bounds
from iomodel.devices.device import Hardware
from iomodel.devices.levels import CLUSTER, L2, LAST, MemoryLevel, memory_levels
from iomodel.nests.algorithm import Algorithm
from iomodel.workloads.workload import Workload


@dataclass(frozen=True)
class LevelTraffic(Record):
    """Traffic of a call over the boundary of a level, and the least traffic of every schedule of its products there.

    Attributes
    ----------
    name : str
        ``SM``: its registers, shared memory, L1 cache and accumulators; ``cluster of SMs``: all SMs of the largest
        cluster of the device; ``L2 and SMs``: the L2 cache with all SMs, or a
        private slice with its share of them; ``last-level cache, L2 and SMs``, where the device has one.
    units, capacity_bytes : int
        The number of units [-], and the capacity of all memories inside one [B].
    moved_bytes : tuple of int
        Least and most that the call moves, all units together [B]: at the SM and at the cluster the requests, which are
        one number; behind the L2 `l2_bytes` of the estimate; behind the last cache `dram_bytes`.
    bound : Bound
        The largest bound that holds for every schedule of the products that the algorithm forms, at this capacity.
    """

    name: str
    units: int
    capacity_bytes: int = field(metadata=column(">capacity of one [B]", ","))
    moved_bytes: tuple[int, int] = field(metadata=column(">moved [B]", interval))
    bound: Bound = field(
        metadata={
            "columns": (
                Column(">every schedule, at least [B]", lambda bound: f"{bound.bytes:,}"),
                Column("bound", attrgetter("name")),
            )
        }
    )

    @property
    def distance(self) -> tuple[float, float]:
        """Least and most traffic over the bound [-]."""
        least, most = self.moved_bytes
        return least / self.bound.bytes, most / self.bound.bytes

    @property
    def title(self) -> str:
        """Name the level, with the number of its units where there are several."""
        return f"{self.units:,} x {self.name}" if self.units > 1 else self.name


def level_traffic(
    algorithm: AlgorithmLike,
    workload: Workload,
    device: Hardware,
    requested: int,
    leaving: tuple[int, int],
    dram: tuple[int, int],
) -> tuple[LevelTraffic, ...]:
    """Put the requests, the bytes that leave the L2 and the DRAM traffic of a call [B] beside the bounds.

    There is a bound at each level that the device's file knows.

    The proofs hold at every boundary: for each unit with the capacity of all memories inside it, and added up
    (`docs/theory.md`, "Several levels").
    """
    moved = {"SM": (requested, requested), CLUSTER: (requested, requested), L2: leaving, LAST: dram}
    return tuple(
        LevelTraffic(level.name, level.units, level.capacity_bytes, moved[level.name], bound)
        for level, bound in _bounds(device, find_algorithm(algorithm), workload)
    )


@per_device
def _bounds(device: Hardware, algorithm: Algorithm, workload: Workload) -> list[tuple[MemoryLevel, Bound]]:
    """Return the bound for every schedule at each level, which no tile changes."""
    return [
        (level, largest_bounds(algorithm, workload, sram_bytes=level.capacity_bytes, units=level.units)[1])
        for level in memory_levels(device)[0]
    ]
