"""The default kernel of a call on a device: the fastest of those that its libraries launch for it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import inf

from iomodel.algorithms import answering
from iomodel.common.frozen_dict import FrozenDict
from iomodel.devices.rates import has_rates
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.implementation import Implementation
from iomodel.placement.front_ends import launched_first
from iomodel.placement.implementations import lacks_kernels, refusal_on
from iomodel.solving.certificate import TIE
from iomodel.solving.default_tiles import as_launched
from iomodel.solving.question import Question
from iomodel.workloads.call import Call


@lru_cache(maxsize=1024)
def ranked_kernels(question: Question) -> tuple[Implementation, ...]:
    """Order the implementations that run a call, the default one first, then the others by their times.

    The time of an implementation is that of :func:`iomodel.estimate`: at the tile and the options that its library
    takes for the call, and at its fastest tile where the library has no rule. Of several within `TIE` of the fastest
    the first in the order of declaration is the default. Kernels that libraries launch where no other runs the call
    come last. Without the rates of a time, the order is that of declaration.
    """
    usual, others = launched_first(question.kernels)
    if len(usual) > 1 and isinstance(question.call, Call) and has_rates(question.device, question.call.dtype):
        times = {known: _seconds(question.by(known)) for known in usual}
        least = min(times.values())
        if least == inf:  # none of them fits
            return (*usual, *others)
        first = next(known for known in usual if times[known] <= least * (1 + TIE))
        usual = [first, *sorted((known for known in usual if known is not first), key=times.__getitem__)]
    return (*usual, *others)


def check_kernels(question: Question) -> None:
    """Raise InputError for a call that kernels of the algorithm run, but none of them on this device.

    Simulated devices have no kernels, and so have algorithms that declare none.
    """
    if question.implementation is None and not question.memory and without_kernels(question):
        raise InputError(absence(question))


def without_kernels(question: Question) -> bool:
    """Check that an algorithm has kernels, and that none of them runs a call on a real device.

    A device of the user's own without an architecture is as good as simulated.
    """
    device = question.hardware
    if device is None or device.simulated or (device.id is None and device.architecture is None):
        return False
    return lacks_kernels(question.algorithm, question.call, device)


def absence(question: Question) -> str:
    """State that no kernel runs a call on a device, with the nearest kernel that does, and the reason."""
    device, call = question.device, question.call
    others = [
        other
        for known in answering(call)
        if known is not question.algorithm
        and (other := replace(question, algorithm=known, options=FrozenDict(), implementation=None)).ranked
    ]
    best = min(others, key=lambda other: _seconds(other.by(other.library)), default=None)
    nearest = "nor has another algorithm" if best is None else f"{best.library.name}: {best.algorithm.name!r}"
    reason = refusal_on(question.algorithm, call, device)
    for_call = "" if reason is None else f" this call ({reason}) on"
    return (
        f"algorithm: {question.algorithm.title} has no kernel for{for_call} {device.name}; {nearest}; "
        "allowed: implementation='textbook', an idealised machine"
    )


def _seconds(question: Question) -> float:
    try:
        return as_launched(question).seconds
    except (InfeasibleError, InputError):
        return inf
