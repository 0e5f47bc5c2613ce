"""Result of an estimate: time, limiting resource, traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from iomodel.common import labels
from iomodel.common.display import ANSWER, LIMIT, Mark, Result, Table, choice_text, sizes_text, trusted
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Deferred
from iomodel.common.tabular import Tabular
from iomodel.counting.cost import Cost
from iomodel.counting.without_tiles import inputs_beside
from iomodel.devices.device import Hardware
from iomodel.devices.levels import L2, LAST
from iomodel.devices.rates import Rates
from iomodel.nests.implementation import TEXTBOOK, kernels_title
from iomodel.timing.error_interval import interval
from iomodel.timing.kernel_time import KernelTime
from iomodel.timing.level_traffic import LevelTraffic
from iomodel.timing.parameters import Parameters
from iomodel.timing.time_shares import time_shares
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload import Workload

ENDS = ("least", "most")


@dataclass(frozen=True)
class Estimate(Deferred, Result, Tabular):
    """Estimated time of a call, with its breakdown.

    The time is computed at once; fields that it does not need are computed when they are first read.

    Attributes
    ----------
    seconds : float
        Time of the call [s].
    limited_by : str
        The entry of `breakdown` that takes longest.
    breakdown : mapping of str to float
        Time each resource would take if it were the only limit, and the times of trips, tails and launches [s]. They
        overlap, so they do not sum to `seconds`.
    dram_bytes : tuple of int
        Lower and upper bound of the DRAM traffic behind the last cache [B].
    l2_bytes : tuple of int
        Lower and upper bound of what leaves the L2 [B]: the DRAM traffic, or more if a last-level cache is behind it.
    lock_step_bytes : int or None
        DRAM traffic if all blocks of a wave are in phase [B]; None under a mask, where they are not, and for a device
        with an unknown L2 cache.
    compulsory_bytes, requested_bytes : int
        Each input and output once; requests of the thread blocks [B].
    error : tuple of float
        Ends of the interval in which eight in ten measured times are expected, from the errors of published times of
        the same architecture, direction and regime (:mod:`iomodel.timing.error_interval`) [s].
    flops_per_second, mfu : float
        FLOPs of visible pairs over the time [FLOP/s], and their share of the datasheet's peak [-].
    intensity, ridge : float
        FLOPs of visible pairs over `streamed_bytes`; peak over memory bandwidth [FLOP/B].
    streamed_bytes : int
        DRAM traffic behind the time: that of blocks in phase, within `dram_bytes` [B].
    kernels : tuple of KernelTime
        Times of the kernels.
    left_out : tuple of str
        Effects, and levels of `levels`, omitted because the device's file lacks a figure.
    assumed : tuple of str
        Figures that a declared default stands in for, and warnings about the launch.
    levels : tuple of LevelTraffic
        The traffic over the boundary of each level of the memory, beside the bound for every schedule there.
    implementation : str
        The kernels that are timed, of both passes in a call of both; "textbook" for one memory per block.
    """

    derived = (
        "error",
        "flops_per_second",
        "mfu",
        "streamed_bytes",
        "intensity",
        "ridge",
        "distance_to_ridge",
        "floor",
        "bound",
    )
    renamed = FrozenDict(bound=("limited_by", ".limited_by"))
    enclosing = ("relative",)

    algorithm: str
    workload: Annotated[Any, Workload]
    hardware: Hardware
    tiles: Mapping[str, int]
    cost: Cost
    seconds: float
    limited_by: str
    breakdown: Mapping[str, float]
    dram_bytes: tuple[int, int]
    l2_bytes: tuple[int, int]
    lock_step_bytes: int | None
    compulsory_bytes: int
    requested_bytes: int
    kernels: tuple[KernelTime, ...]
    rates: Rates
    parameters: Parameters
    left_out: tuple[str, ...]
    assumed: tuple[str, ...] = field(default_factory=tuple)
    levels: tuple[LevelTraffic, ...] = field(default_factory=tuple)
    implementation: str = TEXTBOOK.name

    @property
    def error(self) -> tuple[float, float]:
        """Interval in which eight in ten measured times are expected [s].

        >>> import iomodel
        >>> e = iomodel.estimate("flash2", iomodel.Attention(heads=16, q_len=4096, head_dim=128), "a100-sxm4-80gb")
        >>> e.error[0] < e.seconds < e.error[1]
        True
        """
        return interval(self.hardware, self.workload, self.seconds)

    @property
    def flops_per_second(self) -> float:
        """FLOPs of the visible pairs over the time [FLOP/s]."""
        return self.cost.useful_flops / self.seconds

    @property
    def mfu(self) -> float:
        """Share of the matrix peak used by the visible pairs [-]."""
        return self.flops_per_second / self.rates.peak

    @property
    def intensity(self) -> float:
        """Arithmetic intensity relative to the DRAM traffic behind the time [FLOP/B]."""
        return self.cost.useful_flops / self.streamed_bytes

    @property
    def streamed_bytes(self) -> int:
        """DRAM traffic behind the time, within its interval [B]."""
        least, most = self.dram_bytes
        return min(max(sum(kernel.streamed_bytes for kernel in self.kernels), least), most)

    @property
    def ridge(self) -> float:
        """Intensity above which the matrix units, not the memory, are the limit [FLOP/B]."""
        return self.rates.peak / self.rates.hbm_peak

    @property
    def distance_to_ridge(self) -> float:
        """Intensity over the ridge point; below 1 an ideal kernel is memory bound [-]."""
        return self.intensity / self.ridge

    @property
    def excess_seconds(self) -> dict[str, float]:
        """Time that the traffic above the bound of each level of the memory takes alone [s]; the largest is worth work.

        Requests take the bandwidth of the L2, DRAM traffic that of the HBM. Of the requests, each level between the SMs
        and the L2 has what its bound is below that of the level inside, which only sharing there can save. A level that
        neither stream crosses is omitted.

        >>> import iomodel
        >>> e = iomodel.estimate("flash2", iomodel.Attention(heads=16, q_len=4096, head_dim=128), "a100-sxm4-80gb")
        >>> max(e.excess_seconds, key=e.excess_seconds.get)
        'SM'
        """
        excess, above = {}, self.requested_bytes
        inside = [level for level in self.levels if level.name not in (L2, LAST)]
        for level in inside:
            least = min(above, level.bound.bytes)
            excess[level.name] = self.breakdown.get("l2", 0) * (above - least) / self.requested_bytes
            above = least
        if len(inside) < len(self.levels):
            last = self.levels[-1]
            share = 1 - min(1, last.bound.bytes / self.streamed_bytes)
            excess[last.name] = self.breakdown.get("hbm", 0) * share
        return excess

    @property
    def floor(self) -> float:
        """Lower bound on the time: compulsory traffic at full bandwidth, visible pairs at the matrix peak [s].

        Where the L2 holds the tensors (`Parameters.warm_l2`) there need be no traffic.
        """
        bandwidth = math.inf if self.parameters.warm_l2 else self.rates.hbm_peak
        return max(self.compulsory_bytes / bandwidth, self.cost.useful_flops / self.rates.peak)

    def time_in(self, seconds: float) -> tuple[str, str]:
        """Write a time with its unit: clocks on a simulated device, else microseconds."""
        if self.rates.simulated and self.rates.clock is not None:
            return f"{seconds * self.rates.clock:,.0f}", "clk"
        return f"{seconds * 1e6:,.1f}", "us"

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per kernel and resource: the time that the resource alone would take [s]."""
        return [
            {"kernel": kernel.title, "resource": resource, "seconds": seconds}
            for kernel in self.kernels
            for resource, seconds in kernel.breakdown.items()
        ]

    def sketch(self) -> str:
        """Draw the time as a sum, and that of each resource."""
        from iomodel.common.sketch import BarRow, bars

        shares = time_shares(self.kernels, self.seconds)
        rows = [BarRow("total", shares, f"{self.seconds * 1e6:,.1f} us: {', '.join(shares)}")]
        rows += [BarRow(name, {name: time}, f"{time * 1e6:,.1f} us") for name, time in self.breakdown.items()]
        return bars(rows)

    def headline(self) -> str:
        """Return the answer in a few words."""
        answer = f"{self.seconds * 1e6:,.1f} us, bound by {self.limited_by}"
        return f"{self.algorithm} on {self.hardware.label}: {choice_text(self.tiles)}, {answer}"

    def _spread(self, unit: str) -> list[tuple[str, str, str]]:
        """Return the row of the interval; of a simulated device, which adds resources up, the time if they overlap."""
        if self.rates.simulated:
            hidden = sum(max(kernel.breakdown.values()) for kernel in self.kernels)
            return [("if loads hide behind products", self.time_in(hidden)[0], unit)]
        return [("eight in ten measured", " to ".join(self.time_in(end)[0] for end in self.error), unit)]

    def _grid(self) -> list[tuple[str, str, str]]:
        """Return the rows of the blocks and waves of each kernel with tiles."""
        if not self.tiles:
            return []
        of = {kernel: f" of {kernel.title}" * (len(self.kernels) > 1) for kernel in self.kernels}
        return [
            (f"blocks{name}", f"{kernel.blocks:,}", f"in {kernel.waves:,} wave{'s' * (kernel.waves != 1)}")
            for kernel, name in of.items()
        ]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        tiles = sizes_text({**self.tiles, **self._chosen})
        low, high = self.dram_bytes
        pairs = " (visible pairs)" * isinstance(self.workload, Attention | VarlenAttention)
        time, unit = self.time_in(self.seconds)
        clock = self.rates.clock if unit == "clk" else None
        rows = [
            ("time", Mark(time, ANSWER), unit if clock is None else f"{unit} of {1e9 / clock:,.4g} ns"),
            *self._spread(unit),
            ("bound by", Mark(self.limited_by, LIMIT), ""),
            *((f"  {name}", *self.time_in(value)) for name, value in self.breakdown.items()),
            (f"achieved{pairs}", f"{self.flops_per_second / 1e12:,.1f}", "TFLOP/s"),
            ("MFU", f"{100 * self.mfu:,.1f}", "%"),
            *self._grid(),
            (labels.DRAM, f"{self.streamed_bytes:,}", "B"),
            (labels.LEAST_DRAM, f"{low:,}", "B"),
            (labels.MOST_DRAM, f"{high:,}", "B"),
            *([] if self.lock_step_bytes is None else [(labels.DRAM_IN_PHASE, f"{self.lock_step_bytes:,}", "B")]),
            *(
                []
                if self.l2_bytes == self.dram_bytes
                else [
                    (f"leaving the L2, at {end}", f"{size:,}", "B")
                    for end, size in zip(ENDS, self.l2_bytes, strict=True)
                ]
            ),
            (labels.REQUESTS, f"{self.requested_bytes:,}", "B"),
            (labels.COMPULSORY, f"{self.compulsory_bytes:,}", "B"),
            *((f"  beside it {name}", f"{size:,}", "B") for name, size in self._beside().items()),
            (labels.OVER_DRAM, f"{self.intensity:,.1f}", "FLOP/B"),
            (labels.RIDGE, f"{self.ridge:,.1f}", "FLOP/B"),
        ]
        if self.rates.simulated:
            element = self.workload.element_size
            rows.append((f"ridge point, of {element} B each", f"{self.ridge * element:,.1f}", "FLOP/element"))
        notes = trusted(self.left_out, self.assumed)
        title = f"{kernels_title(self.algorithm, self.implementation)} on {self.hardware.name}: {tiles}"
        tables: list[Table | str] = [Table(title, ("", ">value", "unit"), rows, notes)]
        levels = Table.of("traffic over each level of the memory", LevelTraffic, self.levels, self._worth_work())
        levels = levels.with_names("memory", [level.title for level in self.levels])
        return [*tables, levels] if self.levels else tables

    def _beside(self) -> Mapping[str, int]:
        """The inputs of a call with features that its compulsory traffic leaves out [B]."""
        call = self.workload
        if not isinstance(call, Call) or not call.features:
            return {}
        return inputs_beside(self.cost.algorithm, call, **self.cost.options)

    @property
    def _chosen(self) -> dict[str, Any]:
        """The options that decide the blocks: the splits, and packed rows."""
        options = self.cost.options
        return {name: options[name] for name in ("splits", "packed") if options.get(name, 1) not in (1, False)}

    def _worth_work(self) -> list[str]:
        """State the level whose traffic above the bound takes the most time, if that is a hundredth of the whole."""
        excess = self.excess_seconds
        level = max(self.levels, key=lambda level: excess.get(level.name, 0), default=None)
        if level is None or excess.get(level.name, 0) < self.seconds / 100:
            return []
        time, unit = self.time_in(excess[level.name])
        times = " to ".join(dict.fromkeys(f"{ratio:,.1f}" for ratio in level.distance))
        return [f"worth work: {level.name}, {times} times its bound; the traffic above it takes {time} {unit} alone"]
