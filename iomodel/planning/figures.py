"""Times and rates of a replica with a full batch, derived from its steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from iomodel.common.results import column
from iomodel.devices.device import Hardware
from iomodel.planning.host import prefill_host
from iomodel.planning.service import Service
from iomodel.planning.shared_steps import cycle_with_engine
from iomodel.planning.steps import ReplicaSteps
from iomodel.planning.text import rate, seconds


@dataclass(frozen=True)
class Figures:
    """Figures of one replica with a full batch: when a request ends, the next one is prefilled.

    Attributes
    ----------
    batch : int
        Requests decoded together.
    ttft : float
        Time to the first token of a request without queueing [s]; with an engine, including its host time.
    step : float
        Decode step, averaged over the output; with speculation over the expected tokens of a step [s].
    tpot : float
        Time per output token, including the prefills of other requests in between [s].
    requests_per_second, tokens_per_second : float
        Requests, and output tokens, of one replica [1/s].
    """

    batch: int = field(metadata=column(">batch", ","))
    ttft: float
    step: float = field(metadata=column(">decode step", seconds))
    tpot: float = field(metadata=column(">TPOT", seconds))
    requests_per_second: float = field(metadata=column(">requests/s", rate))
    tokens_per_second: float = field(metadata=column(">tokens/s", ",.0f"))


def figures(service: Service, device: Hardware, batch: int) -> Figures:
    """Compute the figures of one replica at a batch.

    While one request takes its steps, every request of the batch ends once, so one prompt per request is prefilled: a
    cycle lasts steps * step + batch * prefill, and serves the batch. A pipeline has a prefill in each stage at once, so
    the time of its longest stage counts, not that of the entire prefill. With an engine, prompts share steps as in
    :mod:`iomodel.planning.shared_steps`. Loads of cached tokens run beside the steps, one request after the other.
    """
    steps = ReplicaSteps(service, device)
    step = steps.decode_seconds(batch)
    if service.engine is not None and service.layout.pipeline_parallel == 1:
        cycle = cycle_with_engine(steps, service.engine, step, batch)
    else:
        cycle = service.steps * step + batch * steps.occupied()
    cycle = max(cycle, batch * steps.load_seconds() / service.layout.data_parallel)  # loads run beside the steps
    prefill = steps.prefill()
    ttft = steps.first_token_seconds() + (0.0 if service.engine is None else prefill_host(prefill))
    tpot = cycle / service.steps if service.steps else 0.0
    rate = batch / cycle
    return Figures(batch, ttft, step, tpot, rate, rate * service.output)
