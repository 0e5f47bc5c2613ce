"""Decision trees of least regret over integer features of calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

import numpy as np

LEAST = 4
"""Calls on either side of a comparison [-]."""
CUTS = 48
"""Values of a feature with which the calls of a node are compared [-]."""
GAIN = 1e-6
"""Least gain of a comparison for each call, in the unit of the losses."""
PRIOR = 2
"""Calls with the mean losses of the node above that a node adds to its own, so that few calls decide little [-]."""
DEEPEST = 40
"""Most nested comparisons; a function is indented by as many spaces [-]."""


@dataclass
class Branch:
    """A node of a tree: its calls, its best launch, and the comparison that divides it best, if any does.

    Its `level` is the least gain of all comparisons made up to its own; infinite where refused launches need it.
    """

    calls: Any
    best: int
    depth: int
    gain: float = 0.0
    feature: int = -1
    most: int = 0
    level: float = 0.0
    halves: tuple[Branch, ...] = ()


@dataclass(frozen=True)
class Grower:
    """Calls to learn from: losses by call and launch, features by feature and call."""

    losses: Any
    features: Any

    def grown(self, most: int, legal: Any, kinds: Mapping[int, int]) -> Branch:
        """Grow a tree of up to so many comparisons, the most useful first.

        Comparisons of the features `kinds`, below a limit of each, come first, until all calls of a node have the same
        `legal` launches: no other call of the domain then reaches a launch that its kernels refuse.
        """
        root = self._branch(np.arange(len(self.losses)), 0)
        number, level = count(), inf
        waiting: list[tuple[float, int, Branch]] = []
        for branch in self._alike(root, legal, kinds):
            self._compare(branch, range(len(self.features)))
            heappush(waiting, (-branch.gain, next(number), branch))
        while waiting and most > 0:
            gain, _, branch = heappop(waiting)
            if -gain < GAIN * len(self.losses) or branch.depth >= DEEPEST:
                continue
            level, most = min(level, -gain), most - 1
            for half in self._divided(branch, level):
                self._compare(half, range(len(self.features)))
                heappush(waiting, (-half.gain, next(number), half))
        return root

    def _branch(self, calls: Any, depth: int, prior: Any = 0.0) -> Branch:
        return Branch(calls, int((self.losses[calls].sum(axis=0) + prior).argmin()), depth)

    def _alike(self, branch: Branch, legal: Any, kinds: Mapping[int, int]) -> Iterator[Branch]:
        """Divide a node until all its calls have the same legal launches."""
        here = legal[branch.calls]
        alike = (here == here[0]).all()
        if not alike:
            self._compare(branch, [*kinds], 1, (here != here[0]).astype(float), kinds)
        if alike or branch.feature < 0:
            yield branch
            return
        for half in self._divided(branch, inf):
            yield from self._alike(half, legal, kinds)

    def _divided(self, branch: Branch, level: float) -> tuple[Branch, ...]:
        below = self.features[branch.feature][branch.calls] <= branch.most
        prior = PRIOR * self.losses[branch.calls].mean(axis=0) if level < inf else 0.0
        halves = (branch.calls[where] for where in (below, ~below))
        branch.level = level
        branch.halves = tuple(self._branch(calls, branch.depth + 1, prior) for calls in halves)
        return branch.halves

    def _compare(
        self,
        branch: Branch,
        features: Sequence[int],
        least: int = LEAST,
        losses: Any = None,
        limits: Mapping[int, int] | None = None,
    ) -> None:
        """Find the comparison that saves a node the most."""
        here = self.losses[branch.calls] if losses is None else losses
        whole = here.sum(axis=0)
        branch.gain = 0.0 if limits is None else -inf
        for feature in features:
            values = self.features[feature][branch.calls]
            if limits is not None:
                values = np.minimum(values, limits[feature])
            order = np.argsort(values, kind="stable")
            ascending = values[order]
            cuts = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
            cuts = cuts[(cuts >= least) & (cuts <= len(values) - least)]
            if not len(cuts):
                continue
            if len(cuts) > CUTS:
                cuts = cuts[np.linspace(0, len(cuts) - 1, CUTS).astype(int)]
            sums = np.add.reduceat(here[order], np.concatenate([[0], cuts]), axis=0).cumsum(axis=0)[:-1]
            left = (
                _impurity(sums, cuts[:, None]) + _impurity(whole - sums, len(values) - cuts[:, None])
                if limits is not None
                else (sums.min(axis=1) + (whole - sums).min(axis=1))
            )
            saved = (_impurity(whole[None], len(values))[0] if limits is not None else whole.min()) - left
            best = int(saved.argmax())
            if saved[best] > branch.gain + 1e-12:
                low, high = int(ascending[cuts[best] - 1]), int(ascending[cuts[best]])
                branch.gain, branch.feature, branch.most = float(saved[best]), feature, roundest(low, high)


def roundest(low: int, high: int) -> int:
    """Return the number from `low` to below `high` that the highest power of two divides.

    Lengths at which launches change places are multiples of tiles, and calls that were not drawn lie between the two.
    """
    power = 1
    while high > low + 1 and -(-low // (2 * power)) * 2 * power < high:
        power *= 2
        if power > high:
            return 0
    return -(-low // power) * power


def _impurity(different: Any, calls: Any) -> Any:
    """Sum the variances of flags over launches."""
    return (different - different**2 / calls).sum(axis=1)
