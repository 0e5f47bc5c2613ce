"""Times and rates of a replica with a full batch, derived from its steps; under an engine approximate.

A prefill runs outside CUDA graphs, so that the host launches each kernel; a server receives, tokenises and schedules
the request. Decode steps run as graphs, and the host prepares the next one meanwhile.

Of a full batch, batch / (output - 1) requests end with each step, and as many prompts begin. An engine that mixes puts
their tokens beside the decoded ones, up to the tokens of a step; linear layers then run once for both, and attention
once for each (A. Agrawal et al., *Taming throughput-latency tradeoff in LLM inference with Sarathi-Serve*, OSDI 2024,
section 4). Where prompts need more steps than outputs do, all steps are full, and requests whose prompts wait decode in
none. Other engines prefill the prompts that wait together, in a step of their own. Data-parallel groups step together,
and take their prompts in the same steps. Tokens of a prompt that are in the prefix cache take no step. A model that
computes drafts prefills each prompt in a step of its own.

A load is a closed loop of clients, each of which sends its next request when its last one ends, as in the benchmarks of
engines. They print two times of it: TTFT, from sending a request to its first token, and TPOT, (latency - TTFT) over
the tokens behind the first (benchmarks/benchmark_serving.py of vLLM). With lengths that vary a little, ends are spread
over the steps: a prompt waits for those of the requests that end with the same step, (batch - 1) / (output - 1) in the
mean, and the prefills of all others come between the tokens of the request. TTFT and TPOT so add up to the cycle in
which every request ends once; with more clients than requests in the batch, a request waits for whole cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from iomodel.common.results import column
from iomodel.devices.device import Hardware
from iomodel.planning.engines import Engine
from iomodel.planning.formatting import rate, seconds
from iomodel.planning.service import Service
from iomodel.planning.steps import ReplicaSteps, around

LAUNCH = 15e-6
"""Host time per kernel of a prefill [s]: Llama 2 7B on an A100 under TensorRT-LLM with 128 tokens, a calibration row of
tests/measured/serving.csv."""
EAGER = 3.5e-5
"""The same under an eager framework [s]: that of the kernels of FlashAttention called through PyTorch, from short rows
of arXiv:2205.14135, as for `Parameters.host_launch`."""
REQUEST = 15e-3
"""Time of a request in the server [s]: time to the first token of Llama 3.1 70B on H200 and B200, calibration rows."""


def prefill_host(steps: ReplicaSteps, launch: float = LAUNCH) -> Any:
    """Compute the host time of a prefill [s]."""
    return launch * steps.prefilled().kernels


def engine_host(steps: ReplicaSteps) -> Any:
    """Compute the host time of a request before its first token under the engine of a service; 0 without one [s]."""
    return 0.0 if steps.service.engine is None else prefill_host(steps)


def server_host(steps: ReplicaSteps) -> Any:
    """Compute the host time of a request before its first token, in a server and an eager framework [s].

    The benchmark of an engine runs in its process, without a server.
    """
    engine = steps.service.engine
    return engine_host(steps) if engine is not None and engine.tuned else REQUEST + prefill_host(steps, EAGER)


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

    seconds: Any
    first: Any


def figures(service: Service, device: Hardware, batch: int, clients: int | None = None) -> Figures:
    """Compute the figures of one replica at a batch; with `clients` in a server, whose host a first token waits for.

    While one request takes its steps, every request of the batch ends once, so one prompt per request is prefilled: a
    cycle lasts steps * step + batch * prefill, and serves the batch. A pipeline has a prefill in each stage at once, so
    the time of its longest stage counts, not that of the entire prefill. With an engine, prompts share steps as in
    :mod:`iomodel.planning.replica_figures`. Loads of cached tokens run beside the steps, one request after the other.
    """
    found: dict[str, Any] = {}
    for name, value in load_figures(ReplicaSteps(service, device), batch, clients).items():
        found[name] = None if value is None else float(value)
    return Figures(batch, **found)


def load_figures(steps: ReplicaSteps, batch: Any, clients: int | None = None) -> dict[str, Any]:
    """Compute the figures of one load, or arrays of those of loads that all decode, or that all have one token.

    Parameters
    ----------
    steps : ReplicaSteps
        Steps of the replica, for one load or for several.
    batch : int or array of int
        Requests decoded together [-].
    clients : int, optional
        Clients of the replica, in a server.
    """
    engine, several = steps.service.engine, np.maximum(1, steps.decodes)
    step = steps.decode_seconds(batch)
    if engine is not None and steps.service.layout.pipeline_parallel == 1:
        cycle = cycle_with_engine(steps, engine, step, batch)
    else:
        cycle = _cycle(steps, step, batch)
    whole = np.maximum(cycle.seconds, batch * steps.load_seconds() / steps.groups)  # loads beside the steps
    rate = batch / whole
    first = np.minimum(cycle.first, whole)
    waiting = whole * (np.maximum(0, (batch if clients is None else clients) - batch) / batch)
    host = engine_host(steps) if clients is None else server_host(steps)
    alone = steps.first_token_seconds() + host
    decoding = np.any(steps.decodes)
    return {
        "ttft": np.maximum(alone, first + host) + waiting,
        "step": step,
        "tpot": np.maximum(step, (whole - first) / several) if decoding else None,
        "requests_per_second": rate,
        "tokens_per_second": rate * steps.output,
        "ttft_alone": alone,
        "cycle_per_token": whole / several if decoding else 0.0,
    }


def together(batch: Any, decodes: Any) -> Any:
    """Return the mean number of other prompts that wait with a prompt: those of requests that end with the same step.

    >>> float(together(64, 21)), float(together(64, 0))
    (3.0, 63.0)
    """
    return np.maximum(0.0, batch - 1) / np.maximum(1, decodes)


def _cycle(steps: ReplicaSteps, step: Any, batch: Any) -> Cycle:
    """Compute the cycle of an engine that prefills one prompt after the other, before any decode step."""
    occupied, groups = steps.occupied(), steps.groups
    waiting = together(batch / groups, steps.decodes) * occupied * groups
    return Cycle(steps.decodes * step + batch * occupied, steps.first_token_seconds() + waiting)


def cycle_with_engine(steps: ReplicaSteps, engine: Engine, step: Any, batch: Any) -> Cycle:
    """Compute the cycle of an engine that prefills prompts together, or beside decode steps.

    Parameters
    ----------
    steps : ReplicaSteps
        Steps of the replica, for one load or for several; all data-parallel groups run each step together.
    engine : Engine
        The engine.
    step : float or array of float
        Mean decode step of the batch [s].
    batch : int or array of int
        Requests in the replica [-].
    """
    groups, decodes, computed = steps.groups, steps.decodes, steps.computed
    budget = steps.service.limits(steps.device)[0]
    each = batch / groups
    ending = each / np.maximum(1, decodes)
    drafted, alone = steps.drafted_seconds(), steps.drafted_seconds() + steps.load_seconds()
    waiting = 1 + together(each, decodes)
    if not engine.mixes or not np.any(decodes):
        most = np.maximum(1, budget // computed)
        prompts = np.minimum(most, np.maximum(1, ending))
        first = np.maximum(1.0, waiting / most) * prefills_seconds(steps, np.minimum(most, waiting)) + alone
        prefills = each / prompts * prefills_seconds(steps, prompts)
        return Cycle(decodes * step + prefills + each * drafted, first)
    room = np.maximum(1.0, budget - each)
    tokens = np.minimum(room, np.maximum(computed, ending * computed))
    shared = each * computed / tokens
    shared = np.minimum(shared, np.maximum(each * (computed + decodes) / budget, decodes))
    decoding = np.maximum(1.0, batch * np.minimum(1.0, decodes / shared))  # the others wait for their prompts
    mixed = mixed_seconds(steps, decoding, np.floor(np.maximum(tokens, each * computed / shared)))
    waits = waiting * computed  # prompts that wait together share a step
    first = np.maximum(1.0, waits / room) * mixed_seconds(steps, batch, np.floor(np.minimum(room, waits))) + alone
    return Cycle(np.maximum(0.0, decodes - shared) * step + shared * mixed + each * drafted, first)


def prefills_seconds(steps: ReplicaSteps, prompts: Any) -> Any:
    """Time prefills of a mean number of prompts in each group together [s]."""
    return steps.at_batches(prompts, lambda part, size: part.prefill_seconds(steps.groups * size)[0], around)


def mixed_seconds(steps: ReplicaSteps, batch: Any, tokens: Any) -> Any:
    """Time a step with the decoded tokens of a batch and `tokens` tokens of prompts in each group [s].

    Everything but attention and the output layer takes the time of both kinds of tokens together.
    """
    groups = steps.groups
    rows = steps.service.tokens_at_once * -(-batch // groups)
    products = steps.products_seconds(tokens + rows, groups)
    prompts = steps.prefilled(groups).attention * tokens / steps.computed
    decoded = steps.at_batches(batch, lambda part, size: part.beside(size))
    return products + prompts + decoded + steps.host_seconds
