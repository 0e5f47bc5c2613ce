"""Steps of a replica for many loads at once, from steps at knots.

Prefills and batches are interpolated as for one load. Decode steps are computed at four contexts for each factor of
two and where windows are full, so that they are approximate between these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.devices.device import Hardware
from iomodel.planning.service import Service
from iomodel.planning.steps import LENGTHS, Knots, ReplicaSteps, around, powers


class LoadSteps(ReplicaSteps):
    """The steps of one replica for loads of different lengths; times are arrays with one element for each load.

    Parameters
    ----------
    service : Service
        Service without a prefix cache, whose lengths do not matter.
    device : Hardware
        The device.
    prompts, outputs : array of int
        Tokens of a prompt, and of its output.

    Examples
    --------
    >>> from iomodel.devices.device import hardware
    >>> from iomodel.planning.service import as_service
    >>> one = as_service("llama-3.2-1b", 1000, 100), hardware("h100-sxm5")
    >>> steps = LoadSteps(*one, np.array([500, 1000]), np.array([10, 100]))
    >>> bool(steps.prefill_seconds()[0][1] == ReplicaSteps(*one).prefill_seconds()[0])
    True
    """

    def __init__(self, service: Service, device: Hardware, prompts: Any, outputs: Any) -> None:
        super().__init__(service, device)
        self._prompts, self._outputs = prompts, outputs
        self.draft = None if service.draft is None else LoadSteps(service.draft, device, prompts, outputs)

    @property
    def computed(self) -> Any:
        """Tokens of each prompt [-]."""
        return self._prompts

    @property
    def output(self) -> Any:
        """Tokens of each output [-]."""
        return self._outputs

    def at(self, places: Any) -> LoadSteps:
        """Return the steps for some of the loads."""
        return LoadSteps(self.service, self.device, self._prompts[places], self._outputs[places])

    def at_batches(self, batch: Any, timed: Callable[[ReplicaSteps, int], Any], knots: Knots = powers) -> Any:
        """Interpolate times between knots around batches, one for each load; they never fall [s]."""
        low, high = knots(batch)
        ends = np.array([low, high])
        times = np.empty(ends.shape)
        for size in np.unique(ends):
            here = ends == size
            some = here.any(axis=0)
            column = np.empty(len(low))
            column[some] = timed(self.at(some), int(size))
            times = np.where(here, column, times)
        below, above = times
        return below + np.maximum(0.0, above - below) * (batch - low) / np.maximum(1, high - low)

    def mean_decode(self, batch: int, each: float) -> Any:
        """Average the decode steps of a batch over each output, each for some tokens [s]."""
        times = np.array([self.decode_step_seconds(batch, context) for context in self._knots])
        return _mean(np.array(self._knots), times / each, *self._contexts)

    def beside(self, batch: int) -> Any:
        """Compute attention and the output layer of a decode step of a batch in the middle of each output [s]."""
        times = [self.decode(batch, context).attention_seconds for context in self._knots]
        return np.interp(sum(self._contexts) // 2, self._knots, times) + self.output_seconds(batch, self._knots[0])

    @property
    def _contexts(self) -> tuple[Any, Any]:
        """Keys visible to the first and the last decode step of each load [-]."""
        return self._prompts + 1, self._prompts + np.maximum(1, self.decodes)

    @cached_property
    def _knots(self) -> list[int]:
        """Contexts around those of all loads at which decode steps are computed.

        They do not depend on the loads, so that neither does a load on the others: lengths that fill tiles, those with
        one token more, because most prompts are powers of two, and the ends of windows.
        """
        first, last = self._contexts
        low, high = around(int(first.min()))[0], around(int(last.max()))[1]
        ends = self.full(low, high) | {1 << power for power in range(low.bit_length() - 1, high.bit_length())}
        pairs = {context for end in ends for context in (end, end + 1)}
        return sorted({*LENGTHS[(low <= LENGTHS) & (high >= LENGTHS)].tolist(), *(one for one in pairs if low <= one)})


def _mean(knots: Any, values: Any, first: Any, last: Any) -> Any:
    """Average a function that is linear between knots over spans; over an empty span it is the value there."""
    sums = np.concatenate([[0.0], np.cumsum(np.diff(knots) * (values[1:] + values[:-1]) / 2)])

    def integral(x: Any) -> Any:
        place = np.searchsorted(knots, x, side="right") - 1
        slopes = np.append(np.diff(values) / np.diff(knots), 0.0)
        return sums[place] + (x - knots[place]) * (values[place] + slopes[place] * (x - knots[place]) / 2)

    span = last - first
    return np.where(span > 0, (integral(last) - integral(first)) / np.maximum(1, span), np.interp(first, knots, values))
