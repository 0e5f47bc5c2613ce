"""Result of an estimate at arrays of shapes, tiles and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.common.deprecation import warn_renamed
from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import check_keys, decoded_values, named, plain
from iomodel.common.tabular import Tabular, flat_columns
from iomodel.counting.arrays.calls import Calls
from iomodel.counting.arrays.elements import Elements
from iomodel.counting.arrays.integers import at_place
from iomodel.counting.cost_array import CostArray
from iomodel.counting.evaluation.array_engine import exact_ratio
from iomodel.devices.device import Hardware
from iomodel.devices.rates import Rates
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.nests.implementation import Implementation
from iomodel.studies.estimate import estimate
from iomodel.timing.error_interval import interval
from iomodel.timing.estimate_result import Estimate
from iomodel.timing.parameters import Parameters


@dataclass(frozen=True, eq=False)
class EstimateArray(Elements[Estimate], Result, Tabular):
    """The quantities of :class:`~iomodel.Estimate` as arrays of one shape.

    Attributes
    ----------
    algorithm : str
        The algorithm.
    hardware : Hardware
        The device.
    costs : CostArray
        The exact counts of the same points; counts of chosen options, such as `splits`, are those of `at`.
    seconds : array of float
        Time of each call [s]; NaN where the tiles do not fit and ``infeasible="mark"`` was given.
    breakdown : mapping of str to array
        Time each resource would take if it were the only limit, and the times of trips, tails and launches [s].
    streamed_bytes : array of float
        DRAM traffic behind the time [B].
    chosen : mapping of str to array
        Warps and stages of the fastest launch, the options that the kernels choose per call, and the tiles that are not
        given.
    implementations : array of str
        The implementation that is timed at each point, of both passes in a call of both.
    """

    renamed = FrozenDict(bound=("limited_by", ".limited_by"))

    algorithm: str
    hardware: Hardware
    costs: CostArray = field(repr=False)
    seconds: Any
    breakdown: Mapping[str, Any] = field(repr=False)
    streamed_bytes: Any = field(repr=False)
    chosen: Mapping[str, Any] = field(repr=False)
    rates: Rates = field(repr=False)
    parameters: Parameters
    implementation: str | Implementation | None
    arguments: Mapping[str, Any] = field(repr=False)
    implementations: Any = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape of all arguments."""
        shape: tuple[int, ...] = self.seconds.shape
        return shape

    @property
    def feasible(self) -> Any:
        """True where the tiles fit."""
        return ~np.isnan(self.seconds)

    @cached_property
    def limited_by(self) -> Any:
        """The entry of `breakdown` that takes longest, as an array of names."""
        names = np.array(list(self.breakdown))
        stacked = np.stack([np.broadcast_to(values, self.shape) for values in self.breakdown.values()])
        longest = names[stacked.argmax(axis=0)]
        longest.setflags(write=False)
        return longest

    @property
    def error(self) -> tuple[Any, Any]:
        """Interval in which eight in ten measured times are expected, as :attr:`iomodel.Estimate.error` [s]."""
        decodes = np.equal(self.costs.calls.number("q_len"), 1) if isinstance(self.costs.calls, Calls) else False
        call = self.costs.calls.first
        ends = [interval(self.hardware, call, self.seconds, decoding) for decoding in (True, False)]
        low, high = (np.where(decodes, *pair) for pair in zip(*ends, strict=True))
        return low, high

    @property
    def flops_per_second(self) -> Any:
        """FLOPs of the visible pairs over the time [FLOP/s]."""
        return np.asarray(self.costs.useful_flops, dtype=np.float64) / self.seconds

    @property
    def mfu(self) -> Any:
        """Share of the matrix peak used by the visible pairs [-]."""
        return self.flops_per_second / self.rates.peak

    @property
    def intensity(self) -> Any:
        """FLOPs of the visible pairs over the DRAM traffic behind the time [FLOP/B]."""
        return exact_ratio(np.asarray(self.costs.useful_flops), np.asarray(self.streamed_bytes))

    def element(self, place: tuple[int, ...]) -> Estimate:
        """Return the estimate at one place, by :func:`iomodel.estimate`, with its interval of DRAM traffic.

        >>> import iomodel
        >>> w = iomodel.Attention(q_len=1024, head_dim=64)
        >>> times = iomodel.estimate_array("flash2", w, "h100-sxm5", q_len=[1024, 4096], block_q=128, block_kv=64)
        >>> bool(times[1].seconds == times.seconds[1])
        True
        """
        calls = self.costs.calls
        fields = {name: at_place(value, place, self.shape) for name, value in self.arguments.items()}
        sizes = {name: fields.pop(name) for name in list(fields) if name in TILE_NAMES | LAUNCH_NAMES}
        options = {name: value for name, value in fields.items() if name in self.costs.options}
        return estimate(
            self.algorithm, calls.call(place, self.shape), self.hardware, sizes or None, parameters=self.parameters,
            implementation=self.implementation, **options,
        )  # fmt: skip

    def at(self, *index: int) -> Estimate:
        """Return the estimate at one index: an old spelling of ``times[index]``."""
        warn_renamed("EstimateArray.at(i)", "times[i]")
        return self[index]

    def records(self) -> dict[str, Any]:
        """Return a column per array argument and quantity, with a row per point."""
        inputs = {name: value for name, value in self.arguments.items() if isinstance(value, np.ndarray)}
        times = {f"{name} [s]": values for name, values in self.breakdown.items()}
        low, high = self.error
        known = {
            "seconds": self.seconds,
            "error_low": low,
            "error_high": high,
            "limited_by": self.limited_by,
            "mfu": self.mfu,
            "streamed_bytes": self.streamed_bytes,
        }
        known = {"implementation": self.implementations, **known}
        return flat_columns({**inputs, **self.chosen, **known, **times}, self.shape)

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments, and every quantity as nested lists, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            **named("hardware", self.hardware),
            "parameters": self.parameters.to_dict(),
            "implementation": plain(self.implementation),
            "arguments": plain(self.arguments),
            "seconds": _listed(self.seconds),
            "breakdown": {name: _listed(values) for name, values in self.breakdown.items()},
            "streamed_bytes": _listed(self.streamed_bytes),
            "chosen": {name: _listed(values) for name, values in self.chosen.items()},
            "implementations": self.implementations.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EstimateArray:
        """Time the arguments of plain data again; the quantities are not read."""
        wanted = {
            "algorithm": str, "hardware": Hardware, "parameters": Parameters,
            "implementation": str | Implementation | None, "arguments": Mapping[str, Any],
        }  # fmt: skip
        known = decoded_values(wanted, (), data, cls.__name__)
        computed = ("seconds", "breakdown", "streamed_bytes", "chosen", "implementations")
        check_keys(data, (*known, "hardware_data", *computed))
        from iomodel.studies.estimate_array import estimate_array

        more = {name: known[name] for name in ("parameters", "implementation")}
        arguments = {**known["arguments"], **more, "infeasible": "mark"}
        return estimate_array(known["algorithm"], None, known["hardware"], **arguments)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EstimateArray):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.algorithm, self.shape))

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        rows = [("points", f"{self.seconds.size:,}", "", "-")]
        if self.feasible.any():
            least, most = (f"{end(self.seconds) * 1e6:,.1f}" for end in (np.nanmin, np.nanmax))
            rows.append(("time", least, most, "us"))
        return [Table(f"{self.algorithm} on {self.hardware.name}", ("quantity", ">least", ">most", "unit"), rows)]


def _listed(values: Any) -> Any:
    """Return an array as nested lists, with None where there is no value."""
    return np.asarray(np.where(np.isnan(values), None, values.astype(object))).tolist()
