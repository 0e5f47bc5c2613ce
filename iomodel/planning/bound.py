"""Limiting resource of a step: weights, KV cache, matrix units, links, or overheads."""

from __future__ import annotations

from iomodel.planning.step.step import StepPart, StepTime

STREAMS = {"linear": "weights", "attention": "KV cache", "other": "activations"}
"""Data streamed by an HBM-bound part, by kind."""
NAMES = {"l2": "L2", "llc": "last-level cache", "exp": "exponentials", "fp32": "fp32 work"}


def bound_of(step: StepTime) -> str:
    """Name the cause with the largest share of a step's time.

    >>> from iomodel.planning.step.step import step
    >>> bound_of(step("llama-3-8b", "h100-sxm5", batch=1, q_len=1, kv_len=1024))
    'weights'
    """
    causes: dict[str, float] = {}
    for part in step.parts:
        causes[cause_of(part)] = causes.get(cause_of(part), 0.0) + part.seconds
    return max(causes, key=causes.__getitem__)


def cause_of(part: StepPart) -> str:
    """Name the cause that limits one part."""
    if part.kind == "communication":
        return "communication"
    if part.bound == "hbm":
        return STREAMS[part.kind]
    return NAMES.get(part.bound, part.bound)
