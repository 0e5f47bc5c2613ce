"""Decode steps at many batches and contexts, and the context at which attention overtakes the linear layers."""

from __future__ import annotations

from inspect import signature
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iomodel.common.validation import as_choice, as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import UnknownNameError
from iomodel.models.registry import ModelSpec
from iomodel.planning.step.step import step
from iomodel.planning.step.step_arguments import as_model

POINT = ("model", "hardware", "batch", "q_len", "kv_len")
OPTIONS = tuple(name for name in signature(step).parameters if name not in POINT)
"""Options of a step other than the timed point."""


def decode_seconds(
    model: ModelSpec | str, hardware: Hardware | str, batch: ArrayLike, kv_len: ArrayLike, **options: Any
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
    batches, lengths = np.broadcast_arrays(np.asarray(batch), np.asarray(kv_len))
    known: dict[tuple[Any, Any], float] = {}
    seconds = np.empty(batches.shape, dtype=np.float64)
    for place in np.ndindex(batches.shape):
        point: tuple[Any, Any] = (batches[place], lengths[place])
        if point not in known:
            known[point] = step(spec, device, batch=point[0], q_len=1, kv_len=point[1], **options).seconds
        seconds[place] = known[point]
    return seconds


def crossover_context(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    batch: int = 1,
    phase: Literal["prefill", "decode"] = "decode",
    longest: int = 1 << 20,
    **options: Any,
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
    for name in options:
        if name not in OPTIONS:
            raise UnknownNameError("option of crossover_context", name, OPTIONS)
    spec, device, most = as_model(model), as_device(hardware), as_integer("longest", longest)

    def overtaken(context: int) -> bool:
        q_len = context if phase == "prefill" else 1
        timed = step(spec, device, batch=batch, q_len=q_len, kv_len=context, **options)
        return timed.attention_seconds >= timed.linear_seconds

    high = 1
    while not overtaken(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    low = high // 2  # not overtaken, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if overtaken(middle) else (middle, high)
    return high
