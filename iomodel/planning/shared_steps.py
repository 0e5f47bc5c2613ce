"""Steps that prompts share with each other, or with decode steps, under an engine in its steady state: approximate.

Of a full batch, batch / (output - 1) requests end with each step, and as many prompts begin. An engine that mixes puts
their tokens beside the decoded ones, up to the tokens of a step; linear layers then run once for both, and attention
once for each (A. Agrawal et al., *Taming throughput-latency tradeoff in LLM inference with Sarathi-Serve*, OSDI 2024,
section 4). Other engines prefill the prompts that wait together, in a step of their own. Data-parallel groups step
together, and take their prompts in the same steps. Tokens of a prompt that are in the prefix cache take no step. A
model that computes drafts prefills each prompt in a step of its own.
"""

from __future__ import annotations

from iomodel.planning.engine_memory import step_limits
from iomodel.planning.engines import Engine
from iomodel.planning.steps import ReplicaSteps


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
