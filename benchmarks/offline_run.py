"""Time of an offline benchmark whose requests are all there at the start, for benchmarks/serving_accuracy.py.

`trtllm-bench throughput` queues every request at once. The steps that fill the batch and those that empty it are a
large part of a run with few requests for each place in the batch, so that a steady state does not describe it. Requests
of one length are admitted as soon as a place is free and their prompt fits the tokens of the step, and stay to their
end. Groups of attention ranks have the same requests and step together, so that one group is followed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import ceil

import numpy as np

from iomodel.planning.replica_figures import mixed_seconds
from iomodel.planning.steps import ReplicaSteps


class Times:
    """Times of the steps of a group, interpolated between powers of two of its requests and of the new prompts."""

    def __init__(self, steps: ReplicaSteps, most: int) -> None:
        self.steps, self.groups = steps, steps.service.layout.data_parallel
        self.knots = [*(1 << power for power in range(most.bit_length()) if 1 << power < most), most]
        self.ends = steps.service.contexts
        self.decodes = [
            self._over(lambda batch, context=context: steps.decode(batch, context).seconds)  # type: ignore[misc]
            for context in self.ends
        ]
        self.mixed: dict[int, list[float]] = {}

    def _over(self, compute: Callable[[int], float]) -> list[float]:
        return [compute(self.groups * batch) for batch in self.knots]

    def decode(self, running: int, context: float) -> float:
        """Return the time of a decode step with some requests at the mean of their contexts [s]."""
        first, last = (float(np.interp(running, self.knots, values)) for values in self.decodes)
        low, high = self.ends
        return first + (last - first) * (context - low) / max(1, high - low) + self.steps.host_seconds

    def with_prompts(self, running: int, prompts: int, context: float) -> float:
        """Return the time of a step with whole prompts beside the decoded tokens [s]."""
        if not running:
            return self.steps.prefill(batch=self.groups * prompts).seconds + self.steps.host_seconds
        low = 1 << (prompts.bit_length() - 1)
        near = (low, low if low == prompts else 2 * low)
        below, above = (float(np.interp(running, self.knots, self._mixed(count))) for count in near)
        mixed = below + (above - below) * (prompts - low) / low
        return mixed + self.decode(running, context) - self.decode(running, sum(self.ends) // 2)

    def _mixed(self, prompts: int) -> list[float]:
        """Compute steps with some prompts, at each knot [s]."""
        if prompts not in self.mixed:
            tokens = prompts * self.steps.service.prompt
            self.mixed[prompts] = self._over(lambda batch: mixed_seconds(self.steps, batch, tokens))
        return self.mixed[prompts]


def run_seconds(steps: ReplicaSteps, batch: int, requests: int, budget: int) -> float:
    """Compute the time of a run [s].

    Parameters
    ----------
    steps : ReplicaSteps
        Steps of the replica.
    batch : int
        Most requests in the replica [-].
    requests : int
        Requests of the run [-].
    budget : int
        Most tokens of a step of a group [tokens].
    """
    service, groups = steps.service, steps.service.layout.data_parallel
    most, waiting = max(1, batch // groups), ceil(requests / groups)
    most = min(most, waiting)
    times = Times(steps, most)
    cohorts: deque[tuple[int, int]] = deque()  # requests, and the step with which they end
    clock, step, running, contexts = 0.0, 0, 0, 0
    while waiting or running:
        prompts = min(waiting, most - running, max((budget - running) // service.prompt, not running))
        if prompts > 0:
            clock += times.with_prompts(running, prompts, contexts / running if running else 0)
            count = 1
        else:
            count = cohorts[0][1] - step  # until the first requests end
            clock += count * times.decode(running, contexts / running + count / 2)
        step += count
        contexts += count * running
        if prompts > 0:
            waiting -= prompts
            running += prompts
            contexts += prompts * service.prompt
            cohorts.append((prompts, step + service.steps))
        while cohorts and cohorts[0][1] <= step:
            ended, _ = cohorts.popleft()
            running -= ended
            contexts -= ended * (service.prompt + service.steps)
    return clock
