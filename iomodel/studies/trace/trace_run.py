"""Programs of a call: their numbers, their events and the sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from iomodel.counting.coverage import View
from iomodel.counting.expressions import declared
from iomodel.counting.folds import READS, WRITES
from iomodel.counting.kinds import kind_of
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Nest, walk
from iomodel.nests.symbols import BY_NAME
from iomodel.studies.trace.compile import Numbers, programs
from iomodel.studies.trace.events import Event
from iomodel.studies.trace.machine import TraceMachine
from iomodel.studies.trace.program import Program
from iomodel.studies.trace.rates import TraceRates
from iomodel.studies.trace.summary import EventTotals, TraceSummary, summed
from iomodel.workloads.attention import Attention
from iomodel.workloads.masks.spans import MaskSpans
from iomodel.workloads.workload import Shape

if TYPE_CHECKING:
    from sympy import Symbol


@dataclass(frozen=True)
class TraceRun:
    """A run of an algorithm on a call at given tiles."""

    algorithm: Algorithm
    workload: Shape
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    rates: TraceRates

    @cached_property
    def nest(self) -> Nest:
        """The declaration for this call."""
        return declared(self.algorithm, kind_of(self.workload), self.options)

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The compiled kernels."""
        return programs(self.nest, self._values, self._view)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The elements of each tensor in HBM, of one head [-]."""
        number = Numbers(self._values, self._view)
        tensors = {leaf.tensor for leaf, _ in walk(self.nest) if isinstance(leaf, READS + WRITES)}
        tensors |= {tensor for kernel in self.nest for tensor in kernel.keeps}
        whole = (tensor for tensor in tensors if not tensor.inside)
        return {tensor.name: prod(number(axis.length) for axis in tensor.axes) for tensor in whole}

    @property
    def _values(self) -> dict[Symbol, int]:
        numbers = {**self.workload.numbers, **self.options, **self.tiles}
        return {BY_NAME[name]: number for name, number in numbers.items() if name in BY_NAME}

    @property
    def _view(self) -> View:
        return View(kind_of(self.workload).mask, bool(self.options.get("packed")))

    @property
    def heads(self) -> int:
        """Heads of the call, batches included; 1 for a call without heads [-]."""
        numbers = self.workload.numbers
        return numbers.get("batch", 1) * numbers.get("heads", 1)

    def times(self, per: str, heads: int) -> int:
        """Count the runs of a kernel for the first heads [-]."""
        return 1 if per == "call" else -(-heads // self._shared(per))

    def _shared(self, per: str) -> int:
        """Return the heads of one program of a kernel: one, those of a group, or all of a sequence."""
        numbers = self.workload.numbers
        if per == "batch":
            return numbers["heads"]
        if per == "key_head":
            return numbers["heads"] // numbers["key_heads"]
        return 1 if per == "head" else numbers["group"]

    def events(self, heads: int) -> Iterator[Event]:
        """Yield the events of the first heads, by kernel and then by program."""
        for program in self.programs:
            programs_per_batch = 1
            if program.per != "call":
                programs_per_batch = self.workload.numbers["heads"] // self._shared(program.per)
            for i in range(self.times(program.per, heads)):
                yield from self._events(program, *divmod(i, programs_per_batch))

    def _events(self, program: Program, batch: int = 0, head: int = 0) -> Iterator[Event]:
        w = self.workload
        mask = MaskSpans("full", 1, 1, 1)
        if isinstance(w, Attention):
            mask = MaskSpans(w.mask, w.q_len, w.kv_len, program.group)
        return TraceMachine(program, mask, self.rates, batch, head).events()

    @cached_property
    def _event_totals(self) -> list[tuple[str, EventTotals]]:
        return [(program.per, EventTotals().add(self._events(program))) for program in self.programs]

    def summary(self, heads: int) -> TraceSummary:
        """Sum the events of the first heads; all programs of a kernel are equal."""
        return summed(((totals, self.times(per, heads)) for per, totals in self._event_totals), self.rates)
