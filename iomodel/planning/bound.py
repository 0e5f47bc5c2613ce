"""What a step waits for most: the stream of weights or of the cache, the matrix units, the links, or overheads."""

from __future__ import annotations

from iomodel.decoder.step import StepPart, StepTime

STREAMS = {"linear": "weights", "attention": "KV cache", "other": "activations"}
"""What a part that HBM binds waits for."""
NAMES = {"l2": "L2", "exp": "exponentials", "fp32": "fp32 work"}


def bound_of(step: StepTime) -> str:
    """The cause that holds up a step for the longest.

    >>> from iomodel.decoder.step import step
    >>> bound_of(step("llama-3-8b", "h100-sxm5", batch=1, q_len=1, kv_len=1024))
    'weights'
    """
    causes: dict[str, float] = {}
    for part in step.parts:
        causes[cause_of(part)] = causes.get(cause_of(part), 0.0) + part.seconds
    return max(causes, key=causes.__getitem__)


def cause_of(part: StepPart) -> str:
    """What one part waits for."""
    if part.kind == "communication":
        return "communication"
    if part.bound == "hbm":
        return STREAMS[part.kind]
    return NAMES.get(part.bound, part.bound)
