"""Times of one kernel library at the points of many calls and tiles, each at its fastest launch configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from iomodel.common.arithmetic import anywhere, larger
from iomodel.placement.fit import in_one_memory
from iomodel.timing.balance import GridRows
from iomodel.timing.clock import Clock
from iomodel.timing.kernel_time import Launched


@dataclass(frozen=True)
class PointCalls:
    """The numbers of many calls of one kind, in the order of the alphabet; rows are as wide as compiled."""

    numbers: Mapping[str, Any]
    element_size: int
    mask: Any = None

    @property
    def point(self) -> tuple[Any, ...]:
        """Values of the symbols of a workload."""
        return tuple(self.numbers.values())

    @property
    def q_len(self) -> Any:
        """Queries [rows]."""
        return self.numbers["q_len"]

    @property
    def kv_len(self) -> Any:
        """Keys [rows]."""
        return self.numbers["kv_len"]

    @property
    def head_dim(self) -> Any:
        """Width of a row of Q and K [elements]."""
        return self.numbers["head_dim"]

    @property
    def value_dim(self) -> Any:
        """Width of a row of V and O [elements]."""
        return self.numbers["value_dim"]

    @property
    def page_size(self) -> Any:
        """Keys of a page [rows]."""
        return self.numbers["page_size"]

    @property
    def rows(self) -> GridRows | None:
        """The numbers and the mask of the grids; None for calls without a mask."""
        if self.mask is None:
            return None
        group, batch, heads = (self.numbers[name] for name in ("group", "batch", "heads"))
        return GridRows(self.q_len, self.kv_len, group, self.mask, batch, heads, self.page_size)

    def widened(self, widths: tuple[int, int]) -> PointCalls:
        """Return the calls with rows as wide as compiled; calls without a mask have no such rows."""
        if self.mask is None:
            return self
        return replace(self, numbers={**self.numbers, "head_dim": widths[0], "value_dim": widths[1]})


@dataclass
class Fastest:
    """The fastest launch found so far at every point: its time [s], infinite where none fits, and its columns.

    The time is that of the kernels; `kernels` among the columns is their number, `host` the host time per launch [s].
    """

    seconds: Any
    columns: dict[str, Any]

    @classmethod
    def none(cls, size: int) -> Fastest:
        """Start without a launch."""
        return cls(np.full(size, np.inf), {})

    def column(self, name: str) -> Any:
        """Return a column, of zeros if no launch has it."""
        return self.columns.get(name, np.zeros(len(self.seconds)))

    def place(self, where: Any, part: Fastest) -> None:
        """Take the launches of some of the points."""
        self.seconds[where] = part.seconds
        for name, values in part.columns.items():
            self.columns.setdefault(name, np.zeros(len(self.seconds)))[where] = values

    def offer(self, where: Any, seconds: Any, columns: Mapping[str, Any]) -> None:
        """Take a launch at the points (a mask) where it fits and is faster."""
        better = where & (seconds < self.seconds)
        if better.all():
            self.seconds, size = seconds, len(self.seconds)
            self.columns = {name: np.broadcast_to(values, size) for name, values in columns.items()}
            return
        self.seconds = np.where(better, seconds, self.seconds)
        for name in columns.keys() | self.columns.keys():
            self.columns[name] = np.where(better, columns.get(name, 0), self.column(name))


def fastest_at(
    clock: Clock, calls: PointCalls, options: Mapping[str, Any], tiles: Mapping[str, Any], given: Mapping[str, Any],
    size: int,
) -> Fastest:  # fmt: skip
    """Time the points in every launch configuration with the given warps and stages, and keep the fastest."""
    found, rows = Fastest.none(size), calls.rows
    if not clock.placements:
        widths = clock.widths
        work = clock.demands.over(calls, calls.widened(widths), options, tiles)
        footprint = np.max([np.broadcast_to(demand.footprint, size) for demand in work], axis=0) if work else 0
        fits = in_one_memory(clock.hardware, footprint).fits if tiles else np.full(size, True)
        found.offer(fits, *_columns(clock, work, rows, Launched(), None if tiles else 1, size))
        return found
    for placement in clock.placements:
        point = calls.widened(placement.widths)
        work = clock.demands.over(calls, point, options, tiles)
        placed = placement.at_points(point)
        query, key = (np.broadcast_to(tiles[name], size) for name in placement.tiles)
        for launch in placement.launches():
            wanted = np.full(size, True)
            for name in given.keys() & {"warps", "stages"}:
                wanted = wanted & (given[name] == getattr(launch, name))
            if not wanted.any():
                continue
            fit = placed.fit(query, key, launch)
            fits = wanted & fit.fits
            if fits.any():
                launched = clock.launched(launch, fit)
                seconds, columns = _columns(clock, work, rows, launched, launched.blocks_per_sm, size)
                found.offer(fits, seconds, {**columns, "warps": launch.warps, "stages": launch.stages})
    return found


def _columns(
    clock: Clock, work: Any, rows: GridRows | None, launched: Launched, blocks: Any, size: int
) -> tuple[Any, dict[str, Any]]:
    """Time the kernels of all points in one launch configuration, with the time of each resource [s]."""
    total: Any = 0.0
    columns: dict[str, Any] = {}
    kernels: Any = 0
    for demand in work:
        each = replace(launched, blocks_per_sm=clock.room(demand) if blocks is None else blocks)
        took = clock.elapsed(demand, rows, each)
        runs = demand.requested_bytes > 0  # without traffic it is not launched
        total, kernels = total + took.seconds * runs, kernels + runs
        parts = {**took.breakdown, "streamed": took.streamed}
        whole = np.all(runs)
        for name, value in parts.items():
            own = value if whole else value * runs
            columns[name] = columns[name] + own if name in columns else own
    columns |= {"kernels": kernels, "host": clock.parameters.host_launch}
    return np.broadcast_to(total, size), columns


def in_sequence(passes: Sequence[Fastest]) -> Fastest:
    """Join the passes of the same calls; the host takes a time to launch each kernel."""
    names = dict.fromkeys(name for each in passes for name in each.columns)
    columns = {name: sum(each.column(name) for each in passes) for name in names}
    seconds = sum(each.seconds for each in passes)
    launches = columns.pop("kernels", 0) * larger(*(each.column("host") for each in passes))
    columns.pop("host", None)
    waits = launches > seconds
    if anywhere(waits):
        seconds = np.where(waits, launches, seconds)
        columns["launch"] = np.where(waits, launches, columns["launch"])
    return Fastest(seconds, columns)
