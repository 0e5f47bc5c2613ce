"""Decode steps of requests whose tokens are drafted ahead, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from iomodel.planning.speculation import Speculation


def decode_steps(output: Any, speculation: Speculation | None, seed: int) -> Any:
    """Draw the decode steps of each request behind its first token [-].

    A step yields a token of the model behind the drafts that it accepts: those before the first that it does not.

    >>> decode_steps(np.array([1, 9, 9]), None, 0).tolist()
    [0, 8, 8]
    >>> decode_steps(np.array([1, 9, 9]), Speculation(tokens=3, acceptance=1.0), 0).tolist()
    [0, 2, 2]
    """
    left = output - 1
    if speculation is None:
        return left
    rng = np.random.default_rng([seed, 2])
    steps = np.zeros_like(left)
    waiting = np.flatnonzero(left)
    left = left[waiting]
    while len(waiting):
        steps[waiting] += 1
        left -= 1 + _accepted(rng, speculation, len(waiting))
        more = left > 0
        waiting, left = waiting[more], left[more]
    return steps


def _accepted(rng: np.random.Generator, speculation: Speculation, count: int) -> Any:
    """Draw the accepted drafts of a step of each of some requests."""
    if speculation.acceptance == 1:
        return np.full(count, speculation.tokens)
    return np.minimum(rng.geometric(1 - speculation.acceptance, count) - 1, speculation.tokens)
