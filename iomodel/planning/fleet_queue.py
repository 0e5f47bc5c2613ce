"""One replica under load: requests in flight, TTFT and TPOT, and the highest sustainable load.

The model is approximate. Requests arrive at random (Poisson) and all have the same lengths. Prefills are served one at
a time and before any decode step: an M/D/1 queue with vacations of one decode step when it runs empty (Fuhrmann and
Cooper 1985, Oper. Res. 33:1117: the wait of M/G/1 plus the residual vacation). Decoding has the share of the time that
prefills leave. The requests in flight are approximately Poisson, and their mean plus some deviations must fit in
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, inf, sqrt

from iomodel.common.results import column
from iomodel.planning.formatting import seconds

HALVINGS = 40
"""Bisection steps in the search for the highest load: a relative precision of 10^-12."""


@dataclass(frozen=True)
class Operating:
    """One replica at a load.

    Attributes
    ----------
    load : float
        Arrival rate of requests [1/s].
    ttft, tpot : float
        Mean time to the first token, including queueing, and mean time per output token after it [s].
    in_flight : float
        Mean number of decoding requests [-].
    batch : int
        Batch that sets the step time: the mean in flight, rounded up [-].
    prefilling : float
        Share of the time spent in prefills [-].
    """

    load: float
    ttft: float = field(metadata=column(">TTFT", seconds))
    tpot: float = field(metadata=column(">TPOT", seconds))
    in_flight: float = field(metadata=column(">in flight", ",.1f", extra=3))
    batch: int
    prefilling: float


@dataclass(frozen=True)
class Replica:
    """Capacity of one replica.

    Attributes
    ----------
    prefill : float
        Time of one prefill without queueing [s].
    occupied : float
        Part of the prefill during which no other can start: shorter with a pipeline, which holds several [s].
    step : callable
        Time of a decode step at a batch [s]; non-decreasing, and at most proportional to the batch.
    steps : int
        Decode steps of a request: its output tokens except the first [-].
    fits : int
        Requests that fit the memory [-].
    deviations : float
        Number of standard deviations above the mean requests in flight that must fit [-].
    """

    prefill: float
    occupied: float
    step: Callable[[int], float]
    steps: int
    fits: int
    deviations: float = 2.0

    @property
    def room(self) -> float:
        """Highest mean number of requests in flight: n + deviations * sqrt(n) = fits [-].

        >>> Replica(0.1, 0.1, lambda batch: 0.01, 100, fits=120, deviations=2.0).room
        100.0
        """
        z = self.deviations
        return ((sqrt(z * z + 4 * self.fits) - z) / 2) ** 2

    def at(self, load: float, tpot: float = inf) -> Operating | None:
        """Evaluate the replica at a load; None if requests in flight do not fit, or a token takes longer than `tpot`.

        >>> busy = Replica(0.1, 0.1, lambda batch: 0.01, 100, fits=120).at(5.0)  # half of the time is spent in prefills
        >>> busy.prefilling, busy.tpot  # (0.01 s + 0.75 prefills of 0.1 s / 100 tokens) / (1 - 0.5)
        (0.5, 0.0215)
        """
        busy = load * self.occupied
        if busy >= 1:
            return None
        waiting = busy + busy**2 / (2 * (1 - busy))  # prefills queued behind one prefill, served before decoding

        def in_flight(batch: int) -> float:
            return load * (self.steps * self.step(batch) + waiting * self.occupied) / (1 - busy)

        most = min(self.room, load * self.steps * tpot)  # more in flight would break the target, or not fit
        low, batch = 0, 1  # find the least batch of at least the requests in flight
        while self.steps and in_flight(batch) > batch:
            if batch >= most or self.step(batch) > tpot:
                return None
            low, batch = batch, 2 * batch
        while batch - low > 1:
            middle = (low + batch) // 2
            low, batch = (low, middle) if in_flight(middle) <= middle else (middle, batch)
        mean = in_flight(batch) if self.steps else 0.0
        return self._operating(load, busy, batch, mean) if mean <= self.room else None

    def _operating(self, load: float, busy: float, batch: int, mean: float) -> Operating:
        step = self.step(batch) if self.steps else 0.0
        queued = self.occupied * busy / (2 * (1 - busy))
        running = (1 - exp(-mean)) * step / 2  # residual time of the running step when a prefill arrives
        tpot = mean / load / self.steps if self.steps else 0.0
        return Operating(load, self.prefill + queued + running, tpot, mean, batch, busy)

    def most(self, ttft: float, tpot: float) -> Operating | None:
        """Evaluate the replica at the highest load at which both targets hold; None if they never hold."""
        low, high, best = 0.0, 1 / self.occupied, None
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            operating = self.at(middle, tpot)
            if operating is not None and operating.ttft <= ttft and operating.tpot <= tpot:
                low, best = middle, operating
            else:
                high = middle
        return best
