"""Decode steps at many batches and contexts, and the context at which attention overtakes the linear layers."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice, as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import UnknownNameError
from iomodel.models.registry import ModelSpec
from iomodel.planning.call_arguments import DEGREES
from iomodel.planning.service_options import TimedStepOptions
from iomodel.planning.step.step import step
from iomodel.planning.step.step_arguments import as_model


def decode_seconds(
    model: ModelSpec | str,
    hardware: Hardware | str,
    batch: ArrayLike,
    kv_len: ArrayLike,
    **options: Unpack[TimedStepOptions],
) -> NDArray[np.float64]:
    """Time decode steps at many batches and contexts, which broadcast [s].

    Kernels that do not depend on the context are timed once per batch.

    Parameters
    ----------
    model : ModelSpec or str
        A model, or the name of one.
    hardware : Hardware or str
        A device, or the name of one.
    batch, kv_len : integers or arrays of them
        Sequences [-] and keys of each [rows].
    **options
        Options of :func:`step`.

    Raises
    ------
    UnknownNameError, InputError, SpecError, InfeasibleError
        As for :func:`step`.

    Examples
    --------
    >>> seconds = decode_seconds("llama-3-8b", "h100-sxm5", [[1], [64]], [1024, 8192])
    >>> seconds.shape, bool((seconds[:, 1] > seconds[:, 0]).all())
    ((2, 2), True)
    """
    spec, device = as_model(model), as_device(hardware)
    options = _in_one_layout(spec, device, options)
    batches, lengths = np.broadcast_arrays(np.asarray(batch), np.asarray(kv_len))
    known: dict[tuple[Any, Any], float] = {}
    seconds = np.empty(batches.shape, dtype=np.float64)
    for place in np.ndindex(batches.shape):
        point: tuple[Any, Any] = (batches[place], lengths[place])
        if point not in known:
            known[point] = step(spec, device, batch=point[0], q_len=1, kv_len=point[1], **options).seconds
        seconds[place] = known[point]
    return seconds


@strict
def crossover_context(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    batch: int = 1,
    phase: Literal["prefill", "decode"] = "decode",
    longest: int = 1 << 20,
    **options: Unpack[TimedStepOptions],
) -> int | None:
    """Find the context from which attention takes longer than all linear layers [tokens].

    Parameters
    ----------
    model : ModelSpec or str
        A model, or the name of one.
    hardware : Hardware or str
        A device, or the name of one.
    batch : int
        Sequences [-].
    phase : {"prefill", "decode"}
        All tokens of the context at once, or one new token after it.
    longest : int
        Longest context searched [tokens].
    **options
        Options of :func:`step`.

    Returns
    -------
    int or None
        A context at which attention takes at least as long, but not with one token less; None if there is none up to
        `longest`.

    Raises
    ------
    UnknownNameError, InputError, SpecError, InfeasibleError
        As for :func:`step`; the phase is unknown.

    Examples
    --------
    >>> crossover_context("llama-3-8b", "h100-sxm5", longest=1024) is None  # the weights take longer
    True
    """
    as_choice("phase", phase, ("prefill", "decode"))
    known = tuple(TimedStepOptions.__annotations__)
    for name in options:
        if name not in known:
            raise UnknownNameError("option of crossover_context", name, known)
    spec, device, most = as_model(model), as_device(hardware), as_integer("longest", longest)
    options = _in_one_layout(spec, device, options)

    def lead(context: int) -> float:
        """Time by which attention is ahead of the linear layers [s]."""
        q_len = context if phase == "prefill" else 1
        timed = step(spec, device, batch=batch, q_len=q_len, kv_len=context, **options)
        return timed.attention_seconds - timed.linear_seconds

    return first_lead(lead, most)


def _in_one_layout(spec: ModelSpec, device: Hardware, options: TimedStepOptions) -> TimedStepOptions:
    """Return the options with a layout for steps of all lengths: by default that of a step on one key."""
    if options.get("layout") is not None:
        return options
    layout = step(spec, device, q_len=1, kv_len=1, **options).layout
    others = {name: value for name, value in options.items() if name not in DEGREES}
    return cast("TimedStepOptions", {**others, "layout": layout})


START = 1024
"""Context from which the search for the first lead begins [tokens]."""


def first_lead(lead: Callable[[int], float], most: int) -> int | None:
    """Find a number up to `most` from which a growing function is not negative, but is one below; None without one.

    Attention grows nearly evenly with the context, so that a secant halves the interval many times at once; every
    third probe halves it for certain.

    >>> first_lead(lambda context: context - 1e5, 1 << 20), first_lead(lambda context: -1.0, 10)
    (100000, None)
    """
    low, below, high = 0, 0.0, min(START, most)
    above = lead(high)
    while above < 0:
        if high >= most:
            return None
        low, below, high = high, above, min(4 * high, most)
        above = lead(high)
    probes = 0
    while high - low > 1:
        probes += 1
        share = below / (below - above) if low and probes % 3 else 0.5
        middle = min(max(low + 1, low + ceil((high - low) * share)), high - 1)
        ahead = lead(middle)
        low, below, high, above = (low, below, middle, ahead) if ahead >= 0 else (middle, ahead, high, above)
    return high
