"""Solutions: the best tiles with their exact cost and certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from iomodel.algorithms import discovered
from iomodel.common import labels
from iomodel.common.display import ANSWER, LIMIT, Mark, Result, Table, assumed, choice_text, percent, sizes_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Deferred, nothing
from iomodel.counting.bounds import divided_keys
from iomodel.counting.choice import ChosenTiles, chosen_options
from iomodel.counting.cost import Cost
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, IOModelError
from iomodel.nests.alphabet import LAUNCH, TILES
from iomodel.nests.implementation import kernels_title
from iomodel.placement.budget import Budget
from iomodel.solving.certificate import TIE, Certificate, RunnerUp
from iomodel.timing.error_interval import interval
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.window import open_ended

if TYPE_CHECKING:
    from iomodel.placement.check import Check

T = TypeVar("T")
FULL = 64
"""Heads of a call that fills a device, for the note about a call of one head."""
COMPARED = ("certificate", "budget", "saturated", "placed", "known_dram_bytes")
"""Fields that are computed when they are first read, as they need other tiles."""


def _binding(name: str) -> str:
    """Name what keeps the tiles from growing, in words."""
    return "none: larger tiles fit, and are slower" if name == "time" else name


@dataclass(frozen=True)
class Solution(Deferred, Result):
    """The best tiles of a call with their exact cost and certificate.

    With the objective "time", the placement, the certificate and the DRAM traffic are computed when first read.

    Attributes
    ----------
    tiles : mapping of tile name to int
        The tiles chosen [rows]; the verbs that take them apply the `searched` options too.
    choice : mapping of str to Any
        The tiles, the warps and stages, and every option that is chosen or not the default: what ``tiles=`` of
        :func:`iomodel.cost`, `estimate`, `check`, `trace` and `diagnose` takes.
    cost : Cost
        Traffic and operations at these tiles.
    certificate : Certificate
        The limiting resource, the next infeasible step, the runner-up and the lower bound.
    budget : Budget
        The memory that the tiles must fit.
    epsilon : float
        The share of the least traffic allowed in exchange for a larger block_kv [-].
    saturated : bool
        True if every tile fits, so that more memory has no effect.
    placed : Check or None
        With an implementation: the placement of the tiles, the use of each resource, and the blocks per SM; in both
        directions that of the slower pass, as the limits in the certificate.
    implementation : str
        The kernels that the tiles are of; "textbook" for one memory that holds all live data of a block.
    timed : bool
        True if the time of the tiles is known.
    seconds : float
        The time of the call with these tiles [s]; InputError with the reason where it is not known.
    dram_bytes : tuple of int
        Bounds of the DRAM traffic [B]; the requests are ``cost.hbm_bytes``. InputError where they are not known.
    known_seconds, known_dram_bytes : float, tuple of int or None
        The same, and None where they are not known.
    searched : tuple of str
        Options that the solver chose.
    ranked : tuple of RunnerUp
        With ``top`` above 1: so many choices of tiles, warps, stages and options, the fastest first.
    notes : tuple of str
        Assumptions, such as a textbook's machine in place of a device whose kernels are not known.
    hardware : Hardware or None
        With an implementation: the device.
    """

    later: ClassVar[Mapping[str, str]] = FrozenDict(Check="iomodel.placement.check")
    derived = ("footprint", "options")
    unless_none = ("placed", "hardware")
    keys = FrozenDict(known_seconds="seconds", known_dram_bytes="dram_bytes")
    enclosing = ("relative",)

    algorithm: str
    tiles: Mapping[str, int]
    cost: Cost
    certificate: Certificate
    budget: Budget
    epsilon: float
    saturated: bool
    placed: Check | None = field(default_factory=nothing)
    implementation: str = "textbook"
    known_seconds: float | None = None
    known_dram_bytes: tuple[int, int] | None = field(default_factory=nothing)
    searched: tuple[str, ...] = ()
    ranked: tuple[RunnerUp, ...] = ()
    notes: tuple[str, ...] = ()
    hardware: Hardware | None = None

    @classmethod
    def comparing(cls, compared: Callable[[], Mapping[str, Any]], **known: Any) -> Self:
        """Make a solution of the known fields, and of a function that compares its tiles with others for the rest."""
        whole = cache(compared)
        made = cls.deferring({name: lambda _, name=name: whole()[name] for name in COMPARED}, epsilon=0.0, **known)  # type: ignore[misc]
        made.__post_init__()
        return made

    def __post_init__(self) -> None:
        chosen = {name: self.cost.options[name] for name in self.searched}
        self.__dict__["tiles"] = ChosenTiles(self.tiles, chosen) if chosen else self.tiles

    @property
    def timed(self) -> bool:
        """True if the time of the tiles is known."""
        return self.known_seconds is not None

    @property
    def seconds(self) -> float:
        """The time of the call with these tiles [s]; InputError where they are not timed."""
        return self._decided("seconds", self.known_seconds)

    @property
    def dram_bytes(self) -> tuple[int, int]:
        """Bounds of the DRAM traffic, beside the requests in ``cost.hbm_bytes`` [B]; InputError where not timed."""
        return self._decided("dram_bytes", self.known_dram_bytes)

    def _decided(self, name: str, value: T | None) -> T:
        if value is None:
            reason = "; ".join(self.notes) or f"the tiles are those of least traffic in {self.budget}"
            raise InputError(f"{name}: not known, because {reason}; allowed: where .timed is True, on a device by time")
        return value

    @property
    def choice(self) -> Mapping[str, Any]:
        """The tiles with their warps and stages, and every option that is chosen or not the default."""
        options = chosen_options(self.algorithm, self.cost.workload, self.options, self.searched)
        return FrozenDict({**self.tiles, **options})

    @property
    def options(self) -> Mapping[str, Any]:
        """Every option of the algorithm, chosen ones included."""
        return self.cost.options

    @property
    def footprint(self) -> int:
        """The on-chip memory of the tiles, in the unit of the budget."""
        if self.placed is not None:
            return self.placed.resources["shared memory"].used
        return self.cost.footprint_bytes if self.budget.unit == "B" else self.cost.footprint_elements

    def headline(self) -> str:
        """Return the answer in a few words."""
        by = "" if self.implementation == "textbook" else f", {self.implementation}"
        where = self.budget if self.hardware is None else self.hardware.label
        chosen = choice_text(self.tiles, {name: self.options[name] for name in self.searched})
        answer = f"{self.seconds * 1e6:,.1f} us" if self.timed else f"{self.cost.hbm_bytes:,} B"
        return f"{self.algorithm}{by} on {where}: {chosen}, {answer}"

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        unit, why, step = self.budget.unit, self.certificate, self.certificate.next_step
        units = {entry.name: entry.unit for entry in (*TILES, *LAUNCH)}
        rows: list[tuple[str, str, str]] = [
            (name, Mark(f"{size:,}", ANSWER), units[name]) for name, size in self.tiles.items()
        ]
        rows += [(name, Mark(str(self.options[name]), ANSWER), "") for name in self.searched]
        if self.timed:
            rows.append(("time", Mark(f"{self.seconds * 1e6:,.1f}", ANSWER), "us"))
        if self.known_dram_bytes is not None:
            low, high = self.known_dram_bytes
            ends = {labels.DRAM: low} if low == high else {labels.LEAST_DRAM: low, labels.MOST_DRAM: high}
            rows += [(label, f"{size:,}", "B") for label, size in ends.items()]
        rows.append((labels.REQUESTS, f"{self.cost.hbm_bytes:,}", "B"))
        rows += [] if self.placed else [("HBM accesses", f"{self.cost.hbm_elements:,}", "elements")]
        rows += [
            (labels.OVER_REQUESTS, f"{self.cost.intensity:,.1f}", "FLOP/B"),
            *(
                self.placed.resource_rows()
                if self.placed
                else [(f"SRAM used of {self.budget.amount:,}", f"{self.footprint:,}", unit)]
            ),
            ("binding constraint", Mark(_binding(why.binding), LIMIT), ""),
            (f"{step.tile} = {step.size:,} would exceed the {step.resource} by", f"{step.excess:,}", step.unit or unit),
        ]
        rows += self._paper_rows()
        if why.runner_up is not None:
            slower = why.runner_up.seconds
            shown = (f"{why.runner_up.hbm_bytes:,}", "B") if slower is None else self._slower(slower)
            rows.append((f"runner-up: {self._choice(why.runner_up.tiles)}", *shown))
        if why.shipped is not None:
            label = f"shipped: {self._choice(why.shipped.tiles)}"
            rows.append((label, *self._slower(why.shipped.seconds or 0.0)))
        if why.ties is not None and why.ties > 1:
            rows.append((f"choices within {100 * TIE:g} %, equal to the model", f"{why.ties:,}", "-"))
        if why.least_traffic is not None:
            rows.append(
                (f"fewest requests: {self._choice(why.least_traffic.tiles)}", f"{why.least_traffic.hbm_bytes:,}", "B")
            )
        elif why.least_hbm_bytes != self.cost.hbm_bytes:
            rows.append((labels.LEAST_REQUESTS, f"{why.least_hbm_bytes:,}", "B"))
        if why.lower_bound != why.any_schedule:
            rows.append((f"lower bound ({why.lower_bound.name})", f"{why.lower_bound.bytes:,}", "B"))
        rows += [
            (f"lower bound for every schedule ({why.any_schedule.name})", f"{why.any_schedule.bytes:,}", "B"),
            *self._splits_rows(),
            *([("memory assumed by the bounds (shared + registers)", f"{why.memory:,}", "B")] if self.placed else []),
            (f"{labels.REQUESTS} / lower bound", f"{why.ratio:,.3f}", "-"),
            ("tiles examined", f"{why.examined:,}", "-"),
        ]
        rows += [
            (f"{place}: {self._choice(choice.tiles)}", f"{(choice.seconds or 0) * 1e6:,.1f}", "us")
            for place, choice in enumerate(self.ranked, 1)
        ]
        title = f"{kernels_title(self.algorithm, self.implementation)} on {self.budget.label or self.budget}"
        notes = *open_ended(getattr(self.cost.workload, "mask", None)), *self.notes, *self._of_one_head()
        return [Table(title, ("", ">value", "unit"), rows, assumed(notes))]

    def _of_one_head(self) -> list[str]:
        """Name the tiles that fill the device, where the call is one head of one sequence and has others."""
        call = self.cost.workload
        if self.hardware is None or self.placed is None or not self.timed or not isinstance(call, Attention):
            return []
        if call.batch * call.heads > 1:
            return []
        from iomodel.solving.solve import solve

        many = call.model_copy(update={"heads": FULL, "kv_heads": FULL})
        given = {name: value for name, value in self.options.items() if name not in self.searched}
        try:
            full = solve(self.algorithm, many, self.hardware, implementation=self.implementation, **given)
        except IOModelError:  # kernels of the user's own, as in the map of times
            return []
        if full.tiles == self.tiles:
            return []
        return [f"one head of one sequence; {FULL} heads take {self._choice(full.tiles)}"]

    def _paper_rows(self) -> list[tuple[str, str, str]]:
        """State the tiles of the paper's rule for one memory, and their numbers; empty without a rule."""
        call, known = self.cost.workload, discovered().get(self.algorithm)
        share = None if known is None else known.paper_share
        if share is None or self.placed or not isinstance(call, Attention) or call.direction != "forward":
            return []
        memory = self.budget.amount // (call.element_size if self.budget.unit == "B" else 1)
        keys = -(-memory // (share * call.head_dim))
        queries = min(keys, call.head_dim)
        label = f"tiles by the paper's rule: B_r = {queries:,}, B_c = {keys:,}"
        return [(label, f"{-(-call.q_len // queries):,} x {-(-call.kv_len // keys):,}", "T_r x T_c")]

    def _slower(self, seconds: float) -> tuple[str, str]:
        """Write the time of another choice, and whether it lies within the error of the time model."""
        assert self.hardware is not None
        within = seconds <= interval(self.hardware, self.cost.workload, self.seconds)[1]
        return f"{seconds * 1e6:,.1f}", "us, within the error" if within else "us"

    def _splits_rows(self) -> list[tuple[str, str, str]]:
        """State what so many splits must move, and how many fill the machine; of calls whose blocks divide the keys."""
        call, splits = self.cost.workload, self.options.get("splits")
        if splits is None or not isinstance(call, Attention) or call.latent:
            return []
        one_tile = (call.group == 1 or self.options["packed"]) and call.group * call.q_len <= self.tiles["block_q"]
        if not one_tile or (call.mask != "full" and call.q_len > 1):
            return []
        groups = call.batch * call.kv_heads
        least = divided_keys(call, groups * splits)
        rows = [
            (f"lower bound for {groups * splits:,} busy blocks (divided-keys)", f"{least.bytes:,}", "B"),
            ("requests above this bound", f"{self.cost.hbm_bytes - least.bytes:,}", "B"),
        ]
        units = None if self.hardware is None else self.hardware.compute.units
        if units is not None:
            processors = int(units.value)
            rows.append(
                (f"splits that give {processors:,} processors a block each", f"{-(-processors // groups):,}", "")
            )
        return rows

    def _choice(self, sizes: Mapping[str, int]) -> str:
        """Write tiles, launch configuration and options, each option in the type that the call takes."""
        switches = {name for name, value in self.options.items() if isinstance(value, bool)}
        return sizes_text({name: bool(size) if name in switches else size for name, size in sizes.items()})

    def sketch(self) -> str:
        """Draw the share of each resource that the tiles take, the times of the other tiles, and a map of all times."""
        from iomodel.common.sketch import BarRow, bars

        used = {"SRAM": (self.footprint, self.budget.amount)}
        if self.placed is not None:
            used = {name: (use.used, use.limit) for name, use in self.placed.resources.items() if use.limit}
        shares = bars(
            [BarRow(name, {name: amount}, percent(amount / limit), limit) for name, (amount, limit) in used.items()],
            each=True,
        )
        why = self.certificate
        others = {"runner-up": why.runner_up, "shipped": why.shipped, "fewest requests": why.least_traffic}
        known = {name: tile.seconds for name, tile in others.items() if tile is not None and tile.seconds is not None}
        times = {"these tiles": self.seconds, **known} if self.timed else {}
        rows = [BarRow(name, {name: time}, f"{time * 1e6:,.1f} us") for name, time in times.items() if time is not None]
        return shares + (bars(rows) if len(rows) > 1 else "") + self._map()

    def _map(self) -> str:
        """Draw the times of all tiles; empty where they are not known by name, or not timed."""
        call = self.cost.workload
        if self.hardware is None or not self.timed or not isinstance(call, Attention | VarlenAttention):
            return ""
        from iomodel.solving.tile_times import tile_times

        given = {name: value for name, value in self.options.items() if name not in self.searched}
        try:
            times = tile_times(self.algorithm, call, self.hardware, implementation=self.implementation, **given)
        except IOModelError:  # an algorithm or kernels of the user's own
            return ""
        return times.sketch()
