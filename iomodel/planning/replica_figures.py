"""Times and rates of a replica with a full batch, derived from its steps; under an engine approximate.

A prefill runs outside CUDA graphs, so that the host launches each kernel; a server receives, tokenises and schedules
the request. Decode steps run as graphs, and the host prepares the next one meanwhile.

Of a full batch, batch / (output - 1) requests end with each step, and as many prompts begin. An engine that mixes puts
their tokens beside the decoded ones, up to the tokens of a step; linear layers then run once for both, and attention
once for each (A. Agrawal et al., *Taming throughput-latency tradeoff in LLM inference with Sarathi-Serve*, OSDI 2024,
section 4). Other engines prefill the prompts that wait together, in a step of their own. Data-parallel groups step
together, and take their prompts in the same steps. Tokens of a prompt that are in the prefix cache take no step. A
model that computes drafts prefills each prompt in a step of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from iomodel.common.results import column
from iomodel.devices.device import Hardware
from iomodel.planning.engines import Engine, step_limits
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
    :mod:`iomodel.planning.replica_figures`. Loads of cached tokens run beside the steps, one request after the other.
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


def cycle_with_engine(steps: ReplicaSteps, engine: Engine, step: float, batch: int) -> float:
    """Compute the time in which every request of a batch ends once, and its successor is prefilled [s].

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
    budget = service.step_tokens or step_limits(engine, steps.device)[0]
    each = batch / groups
    ending = each / decodes if decodes else each
    drafted = each * steps.drafted_seconds()
    if not engine.mixes or not decodes:
        together = max(1, min(budget // computed, int(ending)))
        return decodes * step + each / together * steps.prefill(batch=groups * together).seconds + drafted
    room = max(1.0, budget - each)
    tokens = min(room, max(computed, ending * computed))
    shared = each * computed / tokens
    mixed = mixed_seconds(steps, batch, int(tokens))
    return max(0.0, decodes - shared) * step + shared * mixed + drafted


def mixed_seconds(steps: ReplicaSteps, batch: int, tokens: int) -> float:
    """Time a step with the decoded tokens of a batch and `tokens` tokens of prompts in each group [s].

    Everything but attention takes the time of both kinds of tokens together.
    """
    service, groups = steps.service, steps.service.layout.data_parallel
    decode = steps.decode(batch, sum(service.contexts) // 2)
    rows = tokens + -(-batch // groups)
    both = steps.chunk(rows, rows, groups)
    own = steps.prefill(batch=groups)
    outputs = steps.output_seconds(batch) - steps.output_seconds(groups) if batch > groups else 0.0
    attention = decode.attention_seconds + own.attention_seconds * tokens / steps.computed
    return both.seconds - both.attention_seconds + attention + outputs
