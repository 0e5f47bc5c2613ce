"""Times and rates of a replica with a full batch, derived from its steps; under an engine approximate.

A prefill runs outside CUDA graphs, so that the host launches each kernel; a server receives, tokenises and schedules
the request. Decode steps run as graphs, and the host prepares the next one meanwhile.

Of a full batch, batch / (output - 1) requests end with each step, and as many prompts begin. An engine that mixes puts
their tokens beside the decoded ones, up to the tokens of a step; linear layers then run once for both, and attention
once for each (A. Agrawal et al., *Taming throughput-latency tradeoff in LLM inference with Sarathi-Serve*, OSDI 2024,
section 4). Other engines prefill the prompts that wait together, in a step of their own. Data-parallel groups step
together, and take their prompts in the same steps. Tokens of a prompt that are in the prefix cache take no step. A
model that computes drafts prefills each prompt in a step of its own.

A load is a closed loop of clients, each of which sends its next request when its last one ends, as in the benchmarks of
engines. They print two times of it: TTFT, from sending a request to its first token, and TPOT, (latency - TTFT) over
the tokens behind the first (benchmarks/benchmark_serving.py of vLLM). With lengths that vary a little, ends are spread
over the steps: a prompt waits for those of the requests that end with the same step, (batch - 1) / (output - 1) in the
mean, and the prefills of all others come between the tokens of the request. TTFT and TPOT so add up to the cycle in
which every request ends once; with more clients than requests in the batch, a request waits for whole cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from iomodel.common.results import column
from iomodel.devices.device import Hardware
from iomodel.planning.engines import Engine
from iomodel.planning.formatting import rate, seconds
from iomodel.planning.service import Service
from iomodel.planning.step.step_result import StepTime
from iomodel.planning.steps import ReplicaSteps

LAUNCH = 15e-6
"""Host time per kernel of a prefill [s]: Llama 2 7B on an A100 under TensorRT-LLM with 128 tokens, a calibration row of
tests/measured/serving.csv."""
EAGER = 3.5e-5
"""The same under an eager framework [s]: that of the kernels of FlashAttention called through PyTorch, from short rows
of arXiv:2205.14135, as for `Parameters.host_launch`."""
REQUEST = 15e-3
"""Time of a request in the server [s]: time to the first token of Llama 3.1 70B on H200 and B200, calibration rows."""


def prefill_host(prefill: StepTime, launch: float = LAUNCH) -> float:
    """Compute the host time of a prefill [s]."""
    return launch * sum(part.times for part in prefill.parts)


def server_host(prefill: StepTime) -> float:
    """Compute the host time of a request before its first token, in a server and an eager framework [s]."""
    return REQUEST + prefill_host(prefill, EAGER)


@dataclass(frozen=True)
class Figures:
    """Figures of one replica with a full batch: when a request ends, the next one is prefilled.

    Attributes
    ----------
    batch : int
        Requests decoded together.
    ttft : float
        Mean time to the first token in a closed loop of as many clients as the batch has requests, or of the stated
        clients of the replica [s]; with an engine, including its host time.
    step : float
        Decode step, averaged over the output; with speculation over the expected tokens of a step [s].
    tpot : float
        Mean time per output token behind the first at that load, (latency - TTFT) / (output - 1); None without such
        tokens [s].
    requests_per_second, tokens_per_second : float
        Requests, and output tokens, of one replica [1/s].
    ttft_alone : float
        Time to the first token of a request on an idle replica [s].
    cycle_per_token : float
        Time in which every request of the batch ends once, over the output tokens behind the first [s].
    """

    batch: int = field(metadata=column(">batch", ","))
    ttft: float = field(metadata=column(">TTFT", seconds))
    step: float = field(metadata=column(">decode step", seconds))
    tpot: float | None = field(metadata=column(">TPOT", seconds, none="-"))
    requests_per_second: float = field(metadata=column(">requests/s", rate))
    tokens_per_second: float = field(metadata=column(">tokens/s", ",.0f"))
    ttft_alone: float = 0.0
    cycle_per_token: float = 0.0


class Cycle(NamedTuple):
    """Time in which every request of a batch ends once, and the part of it before the first token of a request [s]."""

    seconds: float
    first: float


def figures(service: Service, device: Hardware, batch: int, clients: int | None = None) -> Figures:
    """Compute the figures of one replica at a batch; with `clients` in a server, whose host a first token waits for.

    While one request takes its steps, every request of the batch ends once, so one prompt per request is prefilled: a
    cycle lasts steps * step + batch * prefill, and serves the batch. A pipeline has a prefill in each stage at once, so
    the time of its longest stage counts, not that of the entire prefill. With an engine, prompts share steps as in
    :mod:`iomodel.planning.replica_figures`. Loads of cached tokens run beside the steps, one request after the other.
    """
    steps = ReplicaSteps(service, device)
    step = steps.decode_seconds(batch)
    if service.engine is not None and service.layout.pipeline_parallel == 1:
        cycle = cycle_with_engine(steps, service.engine, step, batch)
    else:
        cycle = _cycle(steps, step, batch)
    loads = batch * steps.load_seconds() / service.layout.data_parallel  # beside the steps
    whole = max(cycle.seconds, loads)
    rate = batch / whole
    first = min(cycle.first, whole)
    tpot = max(step, (whole - first) / service.steps) if service.steps else None
    waiting = whole * (max(0, (clients or batch) - batch) / batch)
    host = 0.0 if service.engine is None else prefill_host(steps.prefill())
    host = host if clients is None else server_host(steps.prefill())
    alone = steps.first_token_seconds() + host
    each = whole / service.steps if service.steps else 0.0
    ttft = max(alone, first + host) + waiting
    return Figures(batch, ttft, step, tpot, rate, rate * service.output, alone, each)


def together(batch: float, decodes: int) -> float:
    """Return the mean number of other prompts that wait with a prompt: those of requests that end with the same step.

    >>> together(64, 21), together(64, 0)
    (3.0, 63.0)
    """
    return max(0.0, batch - 1) / max(1, decodes)


def _cycle(steps: ReplicaSteps, step: float, batch: int) -> Cycle:
    """Compute the cycle of an engine that prefills one prompt after the other, before any decode step."""
    service, occupied = steps.service, steps.occupied()
    groups = service.layout.data_parallel
    waiting = together(batch / groups, service.steps) * occupied * groups
    return Cycle(service.steps * step + batch * occupied, steps.first_token_seconds() + waiting)


def cycle_with_engine(steps: ReplicaSteps, engine: Engine, step: float, batch: int) -> Cycle:
    """Compute the cycle of an engine that prefills prompts together, or beside decode steps.

    Parameters
    ----------
    steps : ReplicaSteps
        Steps of the replica; all data-parallel groups run each step together.
    engine : Engine
        The engine.
    step : float
        Mean decode step of the batch [s].
    batch : int
        Requests in the replica [-].
    """
    service = steps.service
    groups, decodes, computed = service.layout.data_parallel, service.steps, steps.computed
    budget = service.limits(steps.device)[0]
    each = batch / groups
    ending = each / decodes if decodes else each
    drafted = each * steps.drafted_seconds()
    waiting = 1 + together(each, decodes)
    if not engine.mixes or not decodes:
        prompts = max(1, min(budget // computed, int(ending)))
        prefill = steps.prefill_seconds(groups * prompts)[0]
        first = max(1.0, waiting / prompts) * prefill + steps.drafted_seconds() + steps.load_seconds()
        return Cycle(decodes * step + each / prompts * prefill + drafted, first)
    room = max(1.0, budget - each)
    tokens = min(room, max(computed, ending * computed))
    shared = each * computed / tokens
    mixed = mixed_seconds(steps, batch, int(tokens))
    first = max(1.0, waiting * computed / tokens) * mixed + steps.drafted_seconds() + steps.load_seconds()
    return Cycle(max(0.0, decodes - shared) * step + shared * mixed + drafted, first)


def mixed_seconds(steps: ReplicaSteps, batch: int, tokens: int) -> float:
    """Time a step with the decoded tokens of a batch and `tokens` tokens of prompts in each group [s].

    Everything but attention takes the time of both kinds of tokens together.
    """
    service, groups = steps.service, steps.service.layout.data_parallel
    decode = steps.decode(batch, sum(service.contexts) // 2)
    rows = tokens + -(-batch // groups)
    products = steps.products_seconds(rows, groups)
    own = steps.prefill(batch=groups)
    outputs = steps.output_seconds(batch) - steps.output_seconds(groups) if batch > groups else 0.0
    attention = decode.attention_seconds + own.attention_seconds * tokens / steps.computed
    return products + attention + outputs + steps.host_seconds
