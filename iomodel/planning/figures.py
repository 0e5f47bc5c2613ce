"""What a replica reaches when it is always full: times, rates, and how they follow from the steps."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.hardware import Hardware
from iomodel.planning.service import Service
from iomodel.planning.steps import Steps


@dataclass(frozen=True)
class Figures:
    """One replica with a batch always full: as soon as a request ends, the next is prefilled.

    Attributes
    ----------
    batch : int
        Requests that decode together.
    ttft : float
        Time to the first token of a request that does not wait [s].
    step : float
        A decode step, in the mean over the output [s].
    tpot : float
        Time per output token with the prefills of others in between [s].
    requests_per_second, tokens_per_second : float
        Requests, and output tokens, of one replica [1/s].
    """

    batch: int
    ttft: float
    step: float
    tpot: float
    requests_per_second: float
    tokens_per_second: float


def figures(service: Service, device: Hardware, batch: int) -> Figures:
    """One replica at a batch.

    While a request takes its steps, each of the batch ends once, so that as many prompts are prefilled: a cycle lasts
    steps * step + batch * prefill, and serves the batch. A pipeline has a prefill in each stage at once: there the time
    of its longest stage counts, not that of the whole prefill.
    """
    steps = Steps(service, device)
    step = steps.decode_seconds(batch)
    between = batch * steps.occupied()
    cycle = service.steps * step + between
    tpot = cycle / service.steps if service.steps else 0.0
    rate = batch / cycle
    return Figures(batch, steps.prefill().seconds, step, tpot, rate, rate * service.output)
