"""The programs of one call: how many there are of each, what they do one by one, and together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.coverage import View
from iomodel.expressions import declared, kind_of
from iomodel.symbols import BY_NAME
from iomodel.tracing.compile import programs
from iomodel.tracing.events import Event
from iomodel.tracing.machine import Machine
from iomodel.tracing.program import Program
from iomodel.tracing.rates import Rates
from iomodel.tracing.sight import sight_of
from iomodel.tracing.summary import EventTotals, TraceSummary, summed
from iomodel.workload import Attention


@dataclass(frozen=True)
class Run:
    """An algorithm on a call at given tiles."""

    algorithm: str
    workload: Attention
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    rates: Rates

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """Every kernel, ready to run."""
        kind = kind_of(self.workload)
        nest = declared(find_algorithm(self.algorithm), kind, self.options)
        numbers = {**self.workload.numbers, **self.options, **self.tiles}
        values = {BY_NAME[name]: number for name, number in numbers.items() if name in BY_NAME}
        return programs(nest, values, View(kind.mask, self.options["packed"]))

    @property
    def heads(self) -> int:
        """Query heads of the call, batches included [-]."""
        return self.workload.batch * self.workload.heads

    def times(self, per: str, heads: int) -> int:
        """How often a kernel runs for the first heads [-]."""
        return 1 if per == "call" else heads if self._alone(per) else -(-heads // self.workload.group)

    def _alone(self, per: str) -> bool:
        """Whether each query head has a program to itself."""
        return per == "head" and not self.options["packed"]

    def events(self, heads: int) -> Iterator[Event]:
        """Every event of the first heads: kernel after kernel, in each one program after the other."""
        for program in self.programs:
            each = self.workload.heads if self._alone(program.per) else self.workload.kv_heads
            for i in range(self.times(program.per, heads)):
                yield from self._events(program, *divmod(i, each))

    def _events(self, program: Program, batch: int = 0, head: int = 0) -> Iterator[Event]:
        group = self.workload.group if self.options["packed"] else 1
        return Machine(program, sight_of(self.workload, group), self.rates, batch, head).events()

    @cached_property
    def _event_totals(self) -> list[tuple[str, EventTotals]]:
        return [(program.per, EventTotals().add(self._events(program))) for program in self.programs]

    def summary(self, heads: int) -> TraceSummary:
        """What the events of the first heads add up to: all programs of a kernel do the same."""
        return summed(((found, self.times(per, heads)) for per, found in self._event_totals), self.rates)
