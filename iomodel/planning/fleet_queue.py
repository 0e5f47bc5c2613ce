"""One replica under load: how many requests are in flight, what TTFT and TPOT become, and the most load it takes.

The model, which is approximate: requests arrive at random (Poisson) and all have the same lengths. Prefills are served
one at a time and before any decode step: an M/D/1 queue whose server, when it runs empty, is away for a decode step
(Fuhrmann and Cooper 1985, Oper. Res. 33:1117: the wait of M/G/1, and what is left of a vacation). Decode has the share
of the time that prefills leave. The requests in flight are about Poisson, and some deviations above their mean must
find room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, sqrt

HALVINGS = 40
"""Of the loads that a replica could take: to a part in 10^12 of what it could do."""


@dataclass(frozen=True)
class Operating:
    """A replica at a load.

    Attributes
    ----------
    load : float
        Requests that arrive [1/s].
    ttft, tpot : float
        Mean time to the first token, queueing included, and mean time per output token after it [s].
    in_flight : float
        Requests that decode, in the mean [-].
    batch : int
        The batch whose step time counts: the mean in flight, rounded up [-].
    prefilling : float
        Share of the time that prefills take [-].
    """

    load: float
    ttft: float
    tpot: float
    in_flight: float
    batch: int
    prefilling: float


@dataclass(frozen=True)
class Replica:
    """What one replica can do.

    Attributes
    ----------
    prefill : float
        Time of one prefill that does not wait [s].
    occupied : float
        The part of it in which the replica starts no other: less with a pipeline, which holds several [s].
    step : callable
        Time of a decode step [s] at a batch: it never falls as the batch grows, and never grows faster than that.
    steps : int
        Decode steps of a request: its output tokens but for the first [-].
    fits : int
        Requests that fit the memory [-].
    deviations : float
        How many standard deviations of the requests in flight must fit above their mean [-].
    """

    prefill: float
    occupied: float
    step: Callable[[int], float]
    steps: int
    fits: int
    deviations: float = 2.0

    @property
    def room(self) -> float:
        """The most requests in flight in the mean: n + deviations * sqrt(n) = fits [-].

        >>> Replica(0.1, 0.1, lambda batch: 0.01, 100, fits=120, deviations=2.0).room
        100.0
        """
        z = self.deviations
        return ((sqrt(z * z + 4 * self.fits) - z) / 2) ** 2

    def at(self, load: float, tpot: float = inf) -> Operating | None:
        """The replica at a load; None where what is in flight does not fit, or where a token takes longer than `tpot`.

        >>> busy = Replica(0.1, 0.1, lambda batch: 0.01, 100, fits=120).at(5.0)  # half of the time prefills
        >>> busy.prefilling, busy.tpot  # (0.01 s + 0.75 prefills of 0.1 s / 100 tokens) / (1 - 0.5)
        (0.5, 0.0215)
        """
        busy = load * self.occupied
        if busy >= 1:
            return None
        waiting = busy + busy**2 / (2 * (1 - busy))  # prefills that a prefill leaves behind it, which go first

        def in_flight(batch: int) -> float:
            return load * (self.steps * self.step(batch) + waiting * self.occupied) / (1 - busy)

        low, batch = 0, 1  # the least batch that is no smaller than what is in flight
        while self.steps and in_flight(batch) > batch:
            if batch >= self.room or self.step(batch) > tpot:
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
        running = (1 - exp(-mean)) * step / 2  # what is left of the step under way when the prefills could begin
        tpot = mean / load / self.steps if self.steps else 0.0
        return Operating(load, self.prefill + queued + running, tpot, mean, batch, busy)

    def most(self, ttft: float, tpot: float) -> Operating | None:
        """The replica at the most load at which both targets hold; None where they hold at none."""
        low, high, best = 0.0, 1 / self.occupied, None
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            found = self.at(middle, tpot)
            if found is not None and found.ttft <= ttft and found.tpot <= tpot:
                low, best = middle, found
            else:
                high = middle
        return best
